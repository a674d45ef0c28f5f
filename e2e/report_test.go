package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// report is the part of `dptrace report --format json` that the tests read.
type report struct {
	Findings []struct {
		Rule, Certainty, Title, Fix, Proof string
		Loader                             struct {
			ID       int
			At, Role string
		}
		Evidence []struct{ Text string }
	}
	Checks []checked
	Lost   []struct {
		Source, Table, Reason string
		Count                 int64
	}
	Overhead struct {
		Percent float64
		Parts   []struct {
			Name, Tier string
			Percent    float64
		}
	}
	Run struct {
		Tier        string
		TierRefused string `json:"tier_refused"`
	}
	Processes struct {
		Seen       int
		Kinds      map[string]int
		KernelOnly int `json:"kernel_only"`
	}
	Unhooked []struct {
		Pid                  int
		Cmdline, Exe, Reason string
		Torch                bool
	}
}

// checked is what came of a rule at one loader.
type checked struct {
	Rule     string
	Loader   int
	At, Role string
	Status   string
	Reason   string
}

// record runs a command under dptrace and returns what it did and what the report says.
func record(t *testing.T, folder string, command ...string) (result, report) {
	t.Helper()
	return recordTo(t, filepath.Join(t.TempDir(), "run.dptrace"), folder, command...)
}

// recordTo is record that says where the trace shall be.
func recordTo(t *testing.T, trace, folder string, command ...string) (result, report) {
	t.Helper()
	recorded := runRecorded(t, dptrace, folder, trace, command)
	r := reportOf(t, trace)
	if t.Failed() {
		t.Logf("record: %s", recorded.tail())
	}
	return recorded, r
}

// reportOf is the report of a trace of which nothing was lost.
func reportOf(t *testing.T, trace string) report {
	t.Helper()
	said := run(t, filepath.Dir(trace), dptrace, "report", "--format", "json", trace)
	var r report
	if err := json.Unmarshal([]byte(said.stdout), &r); err != nil {
		t.Fatalf("report exits %d without JSON: %v\n%s", said.code, err, said.tail())
	}
	for _, lost := range r.Lost {
		t.Errorf("lost: %d of %s (%s)", lost.Count, lost.Table, lost.Source)
	}
	return r
}

// runRecorded runs a command under a dptrace; on torch 1.8 again if it hangs (see run).
func runRecorded(t *testing.T, dptrace, folder, trace string, command []string) result {
	t.Helper()
	whole := append([]string{dptrace, "record", "--quiet", "-o", trace, "--"}, command...)
	if p, err := findPython(); err == nil && p.old() {
		if r, done := try(t, limit/5, folder, whole); done {
			return r
		}
		if err := os.RemoveAll(trace); err != nil {
			t.Fatal(err)
		}
	}
	return run(t, folder, whole...)
}

// draws is how evidence of an rng rule says how much was drawn.
var draws = regexp.MustCompile(`\d[\d,]* (raw )?(draws?|numbers?|outputs?|words?)\b`)

// satisfies says whether a finding is there, and if not what comes nearest.
func (r report) satisfies(e expectation) (bool, string) {
	var near []string
	for _, f := range r.Findings {
		if f.Rule != e.rule {
			continue
		}
		text := f.Title
		for _, each := range f.Evidence {
			text += "\n" + each.Text
		}
		if f.Certainty == e.certainty && inOrder(text, e.words) && (!strings.HasPrefix(e.rule, "rng-") || draws.MatchString(text)) {
			return true, ""
		}
		near = append(near, f.Certainty+": "+text)
	}
	for _, c := range r.Checks {
		if c.Rule == e.rule {
			near = append(near, fmt.Sprintf("check of loader %d: %s %s", c.Loader, c.Status, c.Reason))
		}
	}
	return false, strings.Join(near, "\n")
}

func inOrder(text string, words []string) bool {
	for _, word := range words {
		at := strings.Index(text, word)
		if at < 0 {
			return false
		}
		text = text[at+len(word):]
	}
	return true
}

// ofMachine is the rules about time: a machine that is short of processors makes
// what they say true of programs in which nothing is wrong.
var ofMachine = []string{"loader-bottleneck", "epoch-start-cost", "cpu-oversubscribed"}

// alarms are the findings above a note whose rule is not expected.
func (r report) alarms(expected []expectation) []string {
	var found []string
next:
	for _, f := range r.Findings {
		if f.Certainty == "note" || slices.Contains(ofMachine, f.Rule) {
			continue
		}
		for _, e := range expected {
			if e.rule == f.Rule {
				continue next
			}
		}
		found = append(found, fmt.Sprintf("%s %s: %s %v", f.Rule, f.Certainty, f.Title, f.Evidence))
	}
	return found
}

// ended says whether a rule ended in a status for some loader, and how it ended.
func (r report) ended(rule, status string) (bool, string) {
	var all []string
	for _, c := range r.Checks {
		if c.Rule == rule {
			if c.Status == status {
				return true, ""
			}
			all = append(all, fmt.Sprintf("loader %d: %s %s", c.Loader, c.Status, c.Reason))
		}
	}
	return false, strings.Join(all, "\n")
}
