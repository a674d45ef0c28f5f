package analyze_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/detecttest/brokenoff"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// passes plays one loader on one rank; each pass is left after so many batches
// (0: after all).
func passes(t *testing.T, cut bool, leave ...int) *traces.Run {
	r := NewRun(t)
	o := r.Process(-1, 0).Open(Loader{Workers: 2, Start: noGens})
	for _, n := range leave {
		how := Train
		how.Break = n
		o.Pass(how)
	}
	if !cut {
		r.Seal()
	}
	return r.Open(t)
}

func noGens(int, int) []*Gen { return nil }

// TestNewRule: what a rule takes from scratch.
func TestNewRule(t *testing.T) {
	for _, c := range []struct {
		name      string
		cut       bool
		leave     []int
		status    finding.Status
		certainty finding.Certainty
		excuse    bool
	}{
		{"all to the end", false, []int{0, 0}, finding.Clean, 0, false},
		{"the same, cut", true, []int{0, 0}, finding.CannotTell, 0, false},
		{"left at one number of batches: the excuse is open", false, []int{4, 4}, finding.Found, finding.Likely, true},
		{"left here and there", false, []int{4, 7}, finding.Found, finding.Proven, false},
		{"one pass", false, []int{0}, finding.CannotTell, 0, false},
	} {
		r, err := analyze.Run(passes(t, c.cut, c.leave...), []detect.Rule{brokenoff.Rule})
		if err != nil || len(r.Checks) != 1 {
			t.Fatalf("%s: %v, %v", c.name, err, r)
		}
		if r.Checks[0].Status != c.status || len(r.Findings) != min(1, int(c.certainty)) {
			t.Fatalf("%s: %v %v", c.name, r.Checks, r.Findings)
		}
		if c.certainty == 0 {
			continue
		}
		f := r.Findings[0]
		if f.Certainty != c.certainty || (f.NotABugIf != "") != c.excuse {
			t.Errorf("%s: %v, no bug if %q", c.name, f.Certainty, f.NotABugIf)
		}
		if f.Rule != "broken-off" || f.Loader.ID != 1 || f.Loader.Role != "train" || f.Verify == "" || f.Proof != "hook" {
			t.Errorf("%s: the frame has not filled in %+v", c.name, f)
		}
	}
	source, err := os.ReadFile("detect/detecttest/brokenoff/rule.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), "\n"); n >= 60 {
		t.Errorf("a small rule takes %d lines", n)
	}
}

// TestLyingRules: what a rule promises wrongly the frame does not pass on.
func TestLyingRules(t *testing.T) {
	bug := finding.Finding{Certainty: finding.Proven, Title: "a bug"}
	note := finding.Finding{Certainty: finding.Note, Title: "a fact"}
	open := []detect.Excuse{
		{Text: "it is meant so.", Excluded: func(*detect.Case, *finding.Finding) bool { return false }},
		{Text: "pigs fly.", Excluded: func(*detect.Case, *finding.Finding) bool { return true }},
	}
	closed := open[1:]
	var none []int
	for _, c := range []struct {
		name    string
		says    func(*detect.Case) detect.Verdict
		excuses []detect.Excuse
		cut     bool
		want    string // status and certainties
		reason  string // a part of it
	}{
		{"clean in spite of a gap", says(detect.Clean("all is well")), nil, true, "cannot-tell", "cut before the program ended"},
		{"not applicable in spite of a gap", says(detect.NotApplicable("one rank")), nil, true, "cannot-tell", "cut before the program ended"},
		{"clean beside a bug", says(detect.Clean("all is well").Noting(bug)), nil, false, "found proven", "all is well"},
		{"clean beside a note", says(detect.Clean("all is well").Noting(note)), nil, false, "found note", "all is well"},
		{"a bug is one in spite of a gap", says(detect.Found("one", bug)), nil, true, "found proven", "one"},
		{"a note is not, beside a gap", says(detect.Found("one", note)), nil, true, "cannot-tell note", "cut"},
		{"found, and not what", says(detect.Found("three")), nil, false, "cannot-tell", "does not say what: three"},
		{"proven with an open excuse", says(detect.Found("one", bug, note)), open, false, "found likely note", "one"},
		{"proven with none open", says(detect.Found("one", bug)), closed, false, "found proven", "one"},
		{"a panic", func(c *detect.Case) detect.Verdict { return detect.Clean(strings.Repeat("x", none[c.ID()])) }, nil, false, "cannot-tell", "analyze/frame_test.go:"},
		{"a source that it does not name", func(c *detect.Case) detect.Verdict { detect.Of(c, unread); return detect.Clean("") }, nil, false, "cannot-tell", "unread was not read"},
		{"no answer", says(detect.Verdict{}), nil, false, "cannot-tell", "no answer"},
	} {
		rule := detect.Rule{ID: "liar", DP: "DP99", Title: "Lies", Sources: []collect.Any{timeline.Source}, Excuses: c.excuses, Judge: c.says}
		r, err := analyze.Run(passes(t, c.cut, 0, 0), []detect.Rule{rule, brokenoff.Rule})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := string(r.Checks[0].Status)
		for _, f := range r.Findings {
			got += " " + f.Certainty.String()
			if f.Rule != "liar" || f.DP != "DP99" || f.Loader.At != "train.py:88" {
				t.Errorf("%s: %+v", c.name, f)
			}
			if says := strings.Contains(f.NotABugIf, "meant so"); says != (len(c.excuses) == 2) || strings.Contains(f.NotABugIf, "pigs") {
				t.Errorf("%s: no bug if %q", c.name, f.NotABugIf)
			}
		}
		if got != c.want || !strings.Contains(r.Checks[0].Reason, c.reason) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got, r.Checks[0].Reason, c.want, c.reason)
		}
		if len(r.Checks) != 2 || r.Checks[1].Rule != "broken-off" {
			t.Errorf("%s: what the next rule says is lost: %v", c.name, r.Checks)
		}
	}
}

// TestLostLoader: the row that says how a loader was made is not there, and
// nothing says that it was lost. What is guessed in its place (no workers, no
// length, a stream) makes no rule say that it is not about such a loader, or
// that all is well.
func TestLostLoader(t *testing.T) {
	asked := 0
	for i := 0; i < len(programs); i += 5 {
		run := NewRun(t)
		programs[i].play(run)
		whole := run.Open(t)
		reading := collect.NewReading(analyze.Sources(analyze.Rules)...)
		tables := slices.DeleteFunc(slices.Clone(reading.Tables()), func(table string) bool { return table == "loader" })
		if err := whole.Each(tables, func(b traces.Batch) error { reading.Add(b); return nil }); err != nil {
			t.Fatal(err)
		}
		result, err := analyze.Judge(reading.Evidence(whole), analyze.Rules)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range result.Checks {
			if c.Loader == 0 {
				continue
			}
			asked++
			if c.Status == finding.Clean || c.Status == finding.NotApplicable {
				t.Errorf("%s: %s is %s: %s", programs[i].name, c.Rule, c.Status, c.Reason)
			}
		}
	}
	if asked < 100 {
		t.Errorf("%d answers", asked)
	}
}

func says(v detect.Verdict) func(*detect.Case) detect.Verdict {
	return func(*detect.Case) detect.Verdict { return v }
}

var unread = &collect.Source[int]{Name: "unread"}

// failing is a source whose collector or whose evidence panics.
type failing struct{ add, build bool }

func (f failing) Add(traces.Batch) {
	if f.add {
		panic("a row it was not made for")
	}
}
func (f failing) Merge(collect.Collector[int]) {}
func (f failing) Build(*collect.Evidence) int {
	if f.build {
		panic("rows that do not fit together")
	}
	return 7
}

// TestFailingSources: a panic over rows is the cannot-tell of the rules that look
// at them, with its place; the others go on.
func TestFailingSources(t *testing.T) {
	for _, f := range []failing{{false, false}, {true, false}, {false, true}} {
		source := &collect.Source[int]{Name: "fragile", Tables: []string{"batch_next"}, New: func() collect.Collector[int] { return f }}
		rule := detect.Rule{ID: "fragile-rule", Sources: []collect.Any{source}, Judge: func(c *detect.Case) detect.Verdict {
			if detect.Of(c, source) == 7 {
				return detect.Clean("seven")
			}
			return detect.CannotTell("never")
		}}
		r, err := analyze.Run(passes(t, false, 0, 0), []detect.Rule{rule, brokenoff.Rule})
		if err != nil {
			t.Fatal(err)
		}
		first, second := r.Checks[0], r.Checks[1]
		if broken := f.add || f.build; (first.Status == finding.CannotTell) != broken || broken && !strings.Contains(first.Reason, "analyze/frame_test.go:") {
			t.Errorf("%+v: %+v", f, first)
		}
		if second.Status != finding.Clean {
			t.Errorf("%+v: %+v", f, second)
		}
	}
}

// TestExplains: what one rule explains is a line of its evidence, at that loader.
func TestExplains(t *testing.T) {
	draws := func(c *detect.Case) detect.Verdict {
		return detect.Found("one", finding.Finding{Certainty: finding.Proven, Title: "same numbers", Evidence: []finding.Evidence{{Text: "the same numbers"}}})
	}
	shares := func(certainty finding.Certainty, at int) func(*detect.Case) detect.Verdict {
		return func(c *detect.Case) detect.Verdict {
			if c.ID() != at {
				return detect.Clean("")
			}
			return detect.Found("one", finding.Finding{Certainty: certainty, Title: "same samples"})
		}
	}
	for _, c := range []struct {
		name   string
		shares func(*detect.Case) detect.Verdict
		left   int
		status finding.Status
	}{
		{"one bug", shares(finding.Proven, 1), 1, finding.CannotTell},
		{"another loader's", shares(finding.Proven, 2), 1, finding.Found},
		{"samples in common are only a note", shares(finding.Note, 1), 2, finding.Found},
	} {
		rules := []detect.Rule{
			{ID: "draws", Sources: []collect.Any{timeline.Source}, Judge: draws},
			{ID: "shares", Sources: []collect.Any{timeline.Source}, Judge: c.shares, Explains: []detect.Explained{{Rule: "draws", Why: "the samples are the same"}}},
		}
		r, err := analyze.Run(passes(t, false, 0), rules)
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Findings) != c.left || r.Checks[0].Status != c.status {
			t.Errorf("%s: %d findings, %s", c.name, len(r.Findings), r.Checks[0].Status)
		}
		if c.status == finding.CannotTell && (r.Checks[0].Reason != "the samples are the same: shares" || len(r.Findings[0].Evidence) != 1) {
			t.Errorf("%s: %+v %+v", c.name, r.Checks[0], r.Findings)
		}
	}
}

// TestExcuses: each rule says which realistic programs its proofs rule out, in words that complete "no bug if".
func TestExcuses(t *testing.T) {
	for _, rule := range analyze.Rules {
		if len(rule.Excuses) == 0 {
			t.Errorf("%s: no excuses: is there no program in which what it finds is right?", rule.ID)
		}
		var texts []string
		for _, x := range rule.Excuses {
			if x.Excluded == nil || !strings.HasSuffix(x.Text, ".") || strings.HasPrefix(x.Text, "no bug") || slices.Contains(texts, x.Text) {
				t.Errorf("%s: %q does not complete `no bug if` with a full stop, is there twice, or nothing excludes it", rule.ID, x.Text)
			}
			texts = append(texts, x.Text)
		}
	}
}
