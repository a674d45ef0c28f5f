// Package docs holds the pages that `dptrace explain` prints, one per rule.
package docs

import (
	"embed"
	"strings"
)

//go:embed rules/*.md
var pages embed.FS

// Rule is the page of a rule, in Markdown; ok is false if there is none.
func Rule(id string) (page string, ok bool) {
	b, err := pages.ReadFile("rules/" + id + ".md")
	return string(b), err == nil
}

// Rules are the ids of the rules that have a page, sorted.
func Rules() []string {
	entries, err := pages.ReadDir("rules")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	var ids []string
	for _, e := range entries {
		ids = append(ids, strings.TrimSuffix(e.Name(), ".md"))
	}
	return ids
}

// Example is a whole Python program of a rule's page: the rule finds something
// in the one of Kind "failing" and nothing in the one of Kind "fixed".
type Example struct {
	Kind      string
	Certainty string // of what is found in a failing one: proven, or at least so much
	Code      string
}

// Examples are the programs of a page in their order: the blocks that begin
// with "```python failing" or "```python fixed". "```python failing note" is for
// one where what is found depends on the machine, and is a note at least;
// "timing" for one that is about time: on a machine that is short of processors it may
// not be told; "shm" for one that is run where /dev/shm has 16 MB; "kernel" for one that
// is told by the kernel tier only; "cuda" for one that takes a CUDA device besides.
func Examples(page string) []Example {
	var examples []Example
	for {
		_, after, found := strings.Cut(page, "\n```python ")
		if !found {
			return examples
		}
		kind, body, _ := strings.Cut(after, "\n")
		kind, certainty, ok := strings.Cut(kind, " ")
		if !ok {
			certainty = "proven"
		}
		code, rest, _ := strings.Cut(body, "\n```")
		examples = append(examples, Example{Kind: kind, Certainty: certainty, Code: code + "\n"})
		page = rest
	}
}
