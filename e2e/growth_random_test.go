package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze/detect/memorygrowthcache"
)

// leastNamed is the share of the containers that grow whose names must be told.
const leastNamed = 0.95

// TestRandomGrowth is `make growth-check`: it runs only where DPTRACE_GROWTH_PROGRAMS
// says which programs of the seed DPTRACE_GROWTH_SEED: 60, or those of some numbers: 3,17.
// What grows must be named, and what stops must not be called a leak.
func TestRandomGrowth(t *testing.T) {
	which := os.Getenv("DPTRACE_GROWTH_PROGRAMS")
	if which == "" {
		t.Skipf("%s: DPTRACE_GROWTH_PROGRAMS is not set: this is a test of make growth-check", t.Name())
	}
	seed, err := strconv.ParseUint(os.Getenv("DPTRACE_GROWTH_SEED"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	numbers, err := programNumbers(which)
	if err != nil {
		t.Fatal(err)
	}
	p := python(t)
	t.Logf("seed %d, %d programs", seed, len(numbers))
	var grow, named, sure, stop, accused, unjudged int
	for _, n := range numbers {
		drawn := drawProgram(seed, n)
		said := recordRandom(t, p, fmt.Sprintf("program%d.py", n), drawn)
		verdict := "as it should be"
		switch {
		case !drawn.grows:
			if stop++; said.rank > 1 {
				accused++
				verdict = "WRONG: it stops"
			}
		case said.named:
			grow, named = grow+1, named+1
			if said.rank > 1 {
				sure++
			}
		default:
			grow++
			verdict = "MISSED: " + drawn.title
		}
		if said.status == "cannot-tell" {
			unjudged++
		}
		t.Logf("%2d  %s\n        %s\n        %s: %s\n        %s", n, drawn.what, drawn.where, said.status, said.text, verdict)
	}
	t.Logf("seed %d: %d of %d that grow were named, %d of them likely or proven; %d of %d that stop were called leaks; cannot-tell %d times",
		seed, named, grow, sure, accused, stop, unjudged)
	if float64(named) < leastNamed*float64(grow) {
		t.Errorf("fewer than %.0f %% were named", 100*leastNamed)
	}
	if accused > 0 {
		t.Errorf("%d were called leaks, and stop", accused)
	}
}

// programNumbers reads "60", the first 60, or "3,17".
func programNumbers(text string) (numbers []int, err error) {
	words := strings.Split(text, ",")
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	if len(words) == 1 {
		last := numbers[0]
		for numbers = nil; len(numbers) < last; {
			numbers = append(numbers, len(numbers))
		}
	}
	return numbers, nil
}

// saidOfGrowth is what the report of one program comes to.
type saidOfGrowth struct {
	status, text string
	rank         int  // of the surest finding: 3 proven, 2 likely, 1 note
	named        bool // one of them names the container
}

// recordRandom runs one of them in a control group with a limit.
func recordRandom(t *testing.T, p interpreter, name string, drawn randomProgram) (said saidOfGrowth) {
	t.Helper()
	folder := sharedFolder(t)
	program := filepath.Join(folder, name)
	if err := os.WriteFile(program, []byte(drawn.text), 0o644); err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(folder, "run.dptrace")
	done := run(t, folder, "sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, limitedGroup(t), dptrace, "record", "--quiet",
		"--tier", "hook", "-o", trace, "--", p.Path, program)
	if done.code != 0 {
		t.Fatalf("%s exits %d:\n%s\n%s", name, done.code, drawn.text, done.tail())
	}
	printed := run(t, folder, dptrace, "report", "--format", "json", "--fail-on", "never", trace)
	var r report
	if err := json.Unmarshal([]byte(printed.stdout), &r); err != nil {
		t.Fatalf("report exits %d without JSON: %v\n%s", printed.code, err, printed.tail())
	}
	if keep := os.Getenv("DPTRACE_GROWTH_KEEP"); keep != "" {
		if err := os.CopyFS(filepath.Join(keep, strings.TrimSuffix(name, ".py")), os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
	}
	for _, check := range r.Checks {
		if check.Rule == memorygrowthcache.Rule.ID {
			said.status, said.text = check.Status, check.Reason
		}
	}
	rank := map[string]int{"note": 1, "likely": 2, "proven": 3}
	for _, f := range r.Findings {
		if f.Rule != memorygrowthcache.Rule.ID {
			continue
		}
		said.named = said.named || strings.HasPrefix(f.Title, drawn.title+" ")
		if rank[f.Certainty] >= said.rank {
			said.rank, said.text = rank[f.Certainty], f.Certainty+": "+f.Title
		}
	}
	return said
}
