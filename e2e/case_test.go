package e2e

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testCase is one way to run a program of programs/ or legitimate/ and what must
// be said about it. It is written at the top of the program, under its docstring:
//
//	# e2e ARGUMENT...           one case; torchrun:N in front starts N ranks
//	#   expect: RULE CERTAINTY [WORD...]   a finding that says the words in this order; of an rng rule also how much was drawn
//	#   check: RULE STATUS      how the rule must end for one of the program's loaders
//	#   exit: 1                 the exit code of the program; 0 where it says nothing
//	#   torch: >=1.9            run only there
//	#   needs: MODULE           run only where it can be imported
//	#   run: often              by `make test`, too; `make test-all` runs all
//	#   fix: printed            the printed fix, put in verbatim (fix_test.go), must leave nothing to find
//	#   order: kept             with the fix each rank still asks for the same samples in the same order
//
// A [torch<1.9] behind the key limits its line to these versions. What is not
// expected must be found neither proven nor likely.
type testCase struct {
	folder   string // of the program
	program  string // file name
	ranks    int    // of torchrun; 0: plain
	args     []string
	torch    string
	needs    string
	often    bool // run by go test -short
	expect   []expectation
	checks   []check
	exit     int
	printFix bool
	order    bool // kept by the fix
}

type expectation struct {
	rule, certainty string
	words           []string
}

type check struct{ rule, status string }

func (c testCase) name() string {
	return strings.Join(append([]string{strings.TrimSuffix(c.program, ".py")}, c.args...), "_")
}

var keyLine = regexp.MustCompile(`^#   (\w+)(?:\[torch([<>=0-9.]+)\])?: (.*)$`)

// readCases reads the cases of all programs of a folder as they are for one version of torch.
func readCases(t *testing.T, folder, torch string) []testCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.py"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no programs in %s: %v", folder, err)
	}
	var all []testCase
	for _, file := range files {
		cases, err := parseCases(file, torch)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, cases...)
	}
	return all
}

func parseCases(file, torch string) ([]testCase, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var cases []testCase
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "# e2e" || strings.HasPrefix(line, "# e2e ") {
			c := testCase{folder: filepath.Dir(file), program: filepath.Base(file), args: strings.Fields(line)[2:]}
			if len(c.args) > 0 && strings.HasPrefix(c.args[0], "torchrun:") {
				if c.ranks, err = strconv.Atoi(c.args[0][len("torchrun:"):]); err != nil {
					return nil, fmt.Errorf("%s:%d: %w", file, n, err)
				}
				c.args = c.args[1:]
			}
			cases = append(cases, c)
			continue
		}
		if !strings.HasPrefix(line, "#   ") || len(cases) == 0 {
			continue
		}
		key := keyLine.FindStringSubmatch(line)
		if key == nil {
			return nil, fmt.Errorf("%s:%d: no key: %s", file, n, line)
		}
		if holds, err := versionHolds(torch, key[2]); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		} else if !holds {
			continue
		}
		if err := cases[len(cases)-1].set(key[1], key[3]); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
	}
	return cases, lines.Err()
}

func (c *testCase) set(key, value string) (err error) {
	words := strings.Fields(value)
	switch {
	case key == "expect" && len(words) >= 2:
		c.expect = append(c.expect, expectation{words[0], words[1], words[2:]})
	case key == "check" && len(words) == 2:
		c.checks = append(c.checks, check{words[0], words[1]})
	case key == "torch":
		c.torch = value
	case key == "needs":
		c.needs = value
	case key == "run" && value == "often":
		c.often = true
	case key == "exit":
		c.exit, err = strconv.Atoi(value)
	case key == "fix" && value == "printed":
		c.printFix = true
	case key == "order" && value == "kept":
		c.order = true
	default:
		return fmt.Errorf("cannot read %q: %q", key, value)
	}
	return err
}

// versionHolds compares major.minor with a condition like >=1.9; "" always holds.
func versionHolds(version, condition string) (bool, error) {
	if condition == "" {
		return true, nil
	}
	for _, op := range []string{">=", "<"} {
		if limit, ok := strings.CutPrefix(condition, op); ok {
			have, err := majorMinor(version)
			if err != nil {
				return false, err
			}
			want, err := majorMinor(limit)
			return (have >= want) == (op == ">="), err
		}
	}
	return false, fmt.Errorf("no condition: %q", condition)
}

func majorMinor(version string) (int, error) {
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return 0, fmt.Errorf("no version: %q", version)
	}
	return major*1000 + minor, nil
}

// TestOften holds what `make test` must have of what only whole programs show.
func TestOften(t *testing.T) {
	have := map[string]bool{}
	for _, folder := range []string{"programs", "legitimate"} {
		for _, c := range readCases(t, folder, "1.13") {
			if !c.often {
				continue
			}
			have[folder] = true
			have["ranks"] = have["ranks"] || c.ranks > 0
			have["a printed fix"] = have["a printed fix"] || c.printFix
			have["an order that the fix keeps"] = have["an order that the fix keeps"] || c.order
			have["a program that fails"] = have["a program that fails"] || c.exit != 0
			for _, arg := range c.args {
				have[arg] = true
			}
			for _, e := range c.expect {
				have[e.certainty] = true
			}
			for _, check := range c.checks {
				have[check.status] = true
			}
		}
	}
	for name, cases := range map[string][]tierCase{"death": deathCases, "memory": memoryCases} {
		have[name] = slices.ContainsFunc(cases, func(c tierCase) bool { return c.often })
	}
	for _, want := range []string{"programs", "legitimate", "death", "memory", "ranks", "spawn", "forkserver",
		"a printed fix", "an order that the fix keeps", "a program that fails", "proven", "likely", "clean", "cannot-tell", "not-applicable"} {
		if !have[want] {
			t.Errorf("of the cases that are run often none is for: %s", want)
		}
	}
}

func TestVersionHolds(t *testing.T) {
	for _, c := range []struct {
		version, condition string
		want               bool
	}{
		{"1.8.1", "<1.9", true},
		{"1.13.0a0+gitunknown", "<1.9", false},
		{"2.15.0+cu132", ">=1.10", true},
		{"1.9.0", ">=1.9", true},
		{"1.9.0", "", true},
	} {
		if got, err := versionHolds(c.version, c.condition); got != c.want || err != nil {
			t.Errorf("versionHolds(%q, %q) = %v, %v; want %v", c.version, c.condition, got, err, c.want)
		}
	}
	if _, err := versionHolds("2.0", "==2.0"); err == nil {
		t.Error("an unknown condition was accepted")
	}
}
