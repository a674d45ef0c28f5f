package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// testFix puts the printed fix in where the program says and records again:
// nothing must be left.
func (c testCase) testFix(t *testing.T, p interpreter, r report, trace string) {
	t.Helper()
	fix := c.fix(r)
	if fix == "" {
		t.Fatalf("no finding prints a fix for %s: %+v", c.program, r.Findings)
	}
	source, err := os.ReadFile(filepath.Join(c.folder, c.program))
	if err != nil {
		t.Fatal(err)
	}
	text, err := repair(string(source), fix)
	if err != nil {
		t.Fatalf("%s: %v\n%s", c.program, err, fix)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(c.folder)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, c.program), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "repaired.dptrace")
	recorded, repaired := recordTo(t, again, folder, c.command(p, c.program)...)
	if recorded.code != 0 {
		t.Fatalf("with the printed fix the program exits %d:\n%s\n%s", recorded.code, fix, recorded.tail())
	}
	for _, alarm := range repaired.alarms(nil) {
		t.Errorf("with the printed fix there is still %s\n%s", alarm, fix)
	}
	if c.order {
		compareOrders(t, trace, again)
	}
}

// fix is what is printed for the first rule that the case expects; of rng rules
// the first one that has a function for worker_init_fn.
func (c testCase) fix(r report) string {
	for _, f := range r.Findings {
		if f.Certainty == "note" || len(c.expect) == 0 {
			continue
		}
		if strings.HasPrefix(c.expect[0].rule, "rng-") && printed.MatchString(f.Fix) || f.Rule == c.expect[0].rule && f.Fix != "" {
			return f.Fix
		}
	}
	return ""
}

var (
	workerInit = regexp.MustCompile(`worker_init_fn=\w+`)
	// The line of a printed fix that says how the DataLoader gets its function;
	// the object that it calls collate_fn has this name in the program.
	printed = regexp.MustCompile(`(?m)^# .*DataLoader\(\.\.\., (worker_init_fn=.*)\)`)
	place   = regexp.MustCompile(`^( *)(.*?)# FIX (line|from|argument) (.+)$`)
)

// repair puts a printed fix into a program, where comments say what goes in:
//
//	# FIX                  the whole fix, and its worker_init_fn=... into the DataLoader
//	# FIX line TEXT        the first line of the fix that has the text
//	# FIX from TEXT        this line and the rest of its block
//	# FIX argument NAME    NAME=... of the fix in place of the one in this line
//
// Code before such a comment is what the fix replaces.
func repair(source, fix string) (string, error) {
	if strings.Contains(source, "\n# FIX\n") {
		init := printed.FindStringSubmatch(fix)
		if init == nil || !workerInit.MatchString(source) {
			return "", fmt.Errorf("no place for worker_init_fn")
		}
		source = strings.Replace(source, "\n# FIX\n", "\n"+fix+"\n\n\n", 1)
		return workerInit.ReplaceAllLiteralString(source, init[1]), nil
	}
	lines, places := strings.Split(source, "\n"), 0
	for i, line := range lines {
		at := place.FindStringSubmatch(line)
		if at == nil {
			continue
		}
		places++
		if at[3] == "argument" {
			argument := regexp.MustCompile(`\b` + at[4] + `=[\w.]+`)
			value := argument.FindString(fix)
			if value == "" || !argument.MatchString(at[2]) {
				return "", fmt.Errorf("line %d: the fix or the line has no %s=", i+1, at[4])
			}
			lines[i] = at[1] + argument.ReplaceAllLiteralString(at[2], value)
			continue
		}
		block := blockOf(fix, at[4])
		if block == nil {
			return "", fmt.Errorf("line %d: the fix has no line with %q", i+1, at[4])
		}
		if at[3] == "line" {
			block = block[:1]
		}
		lines[i] = at[1] + strings.Join(block, "\n"+at[1])
	}
	if places == 0 {
		return "", fmt.Errorf("no place for a fix")
	}
	return strings.Join(lines, "\n"), nil
}

// blockOf is the code of a fix from a line with some text to the end of its
// paragraph or of its indented block, with the first line not indented.
func blockOf(fix, text string) (block []string) {
	indent := ""
	for line := range strings.SplitSeq(fix, "\n") {
		switch code := strings.TrimLeft(line, " "); {
		case block == nil && !strings.HasPrefix(code, "#") && strings.Contains(line, text):
			indent = line[:len(line)-len(code)]
			block = append(block, code)
		case block == nil:
		case code == "" || !strings.HasPrefix(line, indent):
			return block
		default:
			block = append(block, strings.TrimPrefix(line, indent))
		}
	}
	return block
}

func TestRepair(t *testing.T) {
	fix := `# train.py:8: tell the sampler
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for batch in loader:
        ...

DataLoader(..., batch_size=8, drop_last=True)

info = get()
for row in islice(rows, info.id):
    yield row`
	for _, c := range []struct{ source, want string }{
		{"  for e in l:\n    # FIX line set_epoch\n    pass", "  for e in l:\n    sampler.set_epoch(epoch)\n    pass"},
		{"    x()  # FIX line set_epoch", "    sampler.set_epoch(epoch)"},
		{"  DataLoader(d, drop_last=False, seed=1)  # FIX argument drop_last", "  DataLoader(d, drop_last=True, seed=1)  "},
		{"  yield from rows  # FIX from info =", "  info = get()\n  for row in islice(rows, info.id):\n      yield row"},
		{"# FIX from sampler", "sampler.set_epoch(epoch)\nfor batch in loader:\n    ..."},
		{"x  # FIX line nothing of this", ""},
		{"DataLoader(d)  # FIX argument drop_last", ""},
		{"no place", ""},
	} {
		got, err := repair(c.source, fix)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("repair(%q) = %q, %v; want %q", c.source, got, err, c.want)
		}
	}
}

// compareOrders wants each rank of two recordings to ask for the same samples in
// the same order, pass by pass.
func compareOrders(t *testing.T, before, after string) {
	t.Helper()
	want, got := readOrders(t, before), readOrders(t, after)
	if len(want) == 0 {
		t.Fatal("no order was recorded")
	}
	for _, key := range slices.SortedFunc(maps.Keys(want), asked.compare) {
		if !slices.Equal(want[key], got[key]) {
			t.Errorf("with the fix rank %d goes through pass %d in another order: %v, before %v", key.rank, key.pass, got[key], want[key])
		}
	}
}

type asked struct {
	rank         int32
	loader, pass uint32
}

func (a asked) compare(b asked) int {
	if a.rank != b.rank {
		return int(a.rank - b.rank)
	}
	return int(a.pass) - int(b.pass)
}

// readOrders is the indices that the loaders of each rank asked for.
func readOrders(t *testing.T, trace string) map[asked][]int64 {
	t.Helper()
	run, err := traces.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	ranks := map[uint32]int32{}
	for _, row := range traces.Rows[traces.Process](run) {
		if row.Rank >= 0 {
			ranks[row.Proc] = row.Rank
		}
	}
	orders := map[asked][]int64{}
	for _, row := range traces.Rows[traces.BatchPut](run) {
		key := asked{ranks[row.Proc], row.Loader, row.Pass}
		orders[key] = append(orders[key], row.Indices...)
	}
	return orders
}
