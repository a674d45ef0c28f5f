package docs_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/docs"
)

// headings that every page has, in this order.
var headings = []string{
	"## What it is",
	"## Why it costs",
	"## How it is proved",
	"## A program that has it",
	"## The same program repaired",
	"## What is not a bug",
	"## Certainty",
}

func TestEveryRuleHasItsPage(t *testing.T) {
	var ids []string
	for _, rule := range analyze.Rules {
		ids = append(ids, rule.ID)
		page, ok := docs.Rule(rule.ID)
		if !ok {
			t.Errorf("write docs/rules/%s.md: `dptrace explain` prints it", rule.ID)
			continue
		}
		checkPage(t, rule.ID, rule.DP, page)
	}
	for _, id := range docs.Rules() {
		if !slices.Contains(ids, id) {
			t.Errorf("docs/rules/%s.md: no rule of this name in analyze.Rules", id)
		}
	}
}

func checkPage(t *testing.T, id, dp, page string) {
	t.Helper()
	if !strings.HasPrefix(page, "# "+id+"\n") {
		t.Errorf("%s: does not begin with its name as the title", id)
	}
	if dp != "" && !strings.Contains(page, "\nAlias: "+dp+".\n") {
		t.Errorf("%s: no line %q", id, "Alias: "+dp+".")
	}
	var found []string
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "## ") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(found, headings) {
		t.Errorf("%s: headings are %q, want %q", id, found, headings)
	}
	for _, word := range []string{"`proven`", "`likely`", "`clean`", "`cannot-tell`"} {
		if _, certainty, _ := strings.Cut(page, "## Certainty"); !strings.Contains(certainty, word) {
			t.Errorf("%s: does not say when it is %s", id, word)
		}
	}
	var kinds []string
	for _, e := range docs.Examples(page) {
		kinds = append(kinds, e.Kind)
		if n := strings.Count(e.Code, "\n"); n > 40 {
			t.Errorf("%s: the %s program has %d lines, more than 40", id, e.Kind, n)
		}
		parse(t, id+" "+e.Kind, e.Code)
	}
	if !slices.Equal(kinds, []string{"failing", "fixed"}) {
		t.Errorf("%s: programs are %q, want a failing and a fixed one", id, kinds)
	}
}

// parse compiles a program without running it. That the failing one is found
// and the fixed one is not is tested in e2e, with torch.
func parse(t *testing.T, name, code string) {
	t.Helper()
	python := exec.Command("python3", "-c", "import ast, sys; ast.parse(sys.stdin.read(), feature_version=(3, 8))")
	python.Stdin = strings.NewReader(code)
	if out, err := python.CombinedOutput(); err != nil {
		t.Errorf("%s: does not parse: %v\n%s", name, err, out)
	}
}

func TestExamples(t *testing.T) {
	page := "# x\n\n```python failing\na = 1\n\nb = 2\n```\ntext\n```sh\nls\n```\n\n```python fixed\nc = 3\n```\n\n```python failing note\nd = 4\n```\n"
	got := docs.Examples(page)
	want := []docs.Example{{Kind: "failing", Certainty: "proven", Code: "a = 1\n\nb = 2\n"}, {Kind: "fixed", Certainty: "proven", Code: "c = 3\n"},
		{Kind: "failing", Certainty: "note", Code: "d = 4\n"}}
	if !slices.Equal(got, want) {
		t.Errorf("Examples = %q, want %q", got, want)
	}
}
