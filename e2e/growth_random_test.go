package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze/detect/memorygrowthcache"
)

// leastNamed is the share of the containers that grow whose names must be told.
const leastNamed = 0.95

// TestRandomGrowth is `make growth-check`: it runs only where DPTRACE_GROWTH_PROGRAMS
// says which programs of the seed DPTRACE_GROWTH_SEED: 60, or those of some numbers: 3,17.
// What grows must be named, and what stops must not be called a leak. The programs
// and their traces are copied to the empty folder DPTRACE_GROWTH_KEEP, if it is set.
func TestRandomGrowth(t *testing.T) {
	which := os.Getenv("DPTRACE_GROWTH_PROGRAMS")
	if which == "" {
		t.Skipf("%s: DPTRACE_GROWTH_PROGRAMS is not set: this is a test of make growth-check", t.Name())
	}
	seed, err := strconv.ParseUint(os.Getenv("DPTRACE_GROWTH_SEED"), 10, 64)
	if err != nil {
		t.Fatalf("DPTRACE_GROWTH_SEED: %v", err)
	}
	numbers, err := programNumbers(which)
	if err != nil {
		t.Fatal(err)
	}
	p := python(t)
	t.Logf("seed %d, %d programs", seed, len(numbers))
	var all growthTally
	for _, n := range numbers {
		drawn := drawProgram(seed, n)
		said := recordRandom(t, p, fmt.Sprintf("program%d.py", n), drawn)
		t.Logf("%2d  %s\n        %s\n        %s: %s\n        %s", n, drawn.what, drawn.where, said.status, said.text, all.add(drawn, said))
	}
	t.Logf("seed %d: %+v", seed, all)
	if float64(all.Named) < leastNamed*float64(all.Grow) {
		t.Errorf("fewer than %.0f %% were named", 100*leastNamed)
	}
	if all.Accused > 0 {
		t.Errorf("%d were called leaks, and stop", all.Accused)
	}
}

// growthTally is what came of all.
type growthTally struct {
	Grow, Named      int // the programs in which something grows, and those whose container was named
	NamedAsLeak      int // likely or proven
	Stop, Accused    int // those in which it stops, and those that were called leaks nevertheless
	CannotTell       int
	PaceFrom, PaceTo float64 // the least and the most of what was said to be kept for 1,000 samples, as a share of what is
}

// add counts one and says what is to be said of it.
func (all *growthTally) add(drawn randomProgram, said saidOfGrowth) (verdict string) {
	if said.status == "cannot-tell" {
		all.CannotTell++
	}
	if !drawn.grows {
		all.Stop++
		if said.rank > 1 {
			all.Accused++
			return "WRONG: it stops"
		}
		return "right: it stops"
	}
	all.Grow++
	if !said.named {
		return "MISSED: " + drawn.title
	}
	all.Named++
	if said.rank > 1 {
		all.NamedAsLeak++
	}
	if said.pace == 0 {
		return "right: it grows"
	}
	share := said.pace / drawn.pace
	if all.PaceFrom == 0 || share < all.PaceFrom {
		all.PaceFrom = share
	}
	all.PaceTo = max(all.PaceTo, share)
	return fmt.Sprintf("right: it grows; by %.1f MB, and that is %.2f of what it does", drawn.pace/1e6, share)
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
	rank         int     // of the surest finding: 3 proven, 2 likely, 1 note
	named        bool    // one of them names the container
	pace         float64 // bytes for 1,000 samples, as it says; 0: it does not
}

var paceOfTitle = regexp.MustCompile(`([0-9.]+) (KB|MB|GB) per 1,000 samples$`)

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
		if strings.HasPrefix(f.Title, drawn.title+" ") {
			said.named = true
			if found := paceOfTitle.FindStringSubmatch(f.Title); found != nil {
				number, _ := strconv.ParseFloat(found[1], 64)
				said.pace = number * map[string]float64{"KB": 1e3, "MB": 1e6, "GB": 1e9}[found[2]]
			}
		}
		if rank[f.Certainty] >= said.rank {
			said.rank, said.text = rank[f.Certainty], f.Certainty+": "+f.Title
		}
	}
	return said
}
