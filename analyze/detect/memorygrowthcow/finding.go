package memorygrowthcow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

func proof(r memory.Round) string {
	if r[0].Tier() == memory.Kernel {
		return "kernel"
	}
	return "hook"
}

func (c *copies) finding() finding.Finding {
	return finding.Finding{
		Certainty: c.certainty,
		Proof:     proof(c.round),
		Title:     c.title(),
		Evidence: slices.Concat(c.counted(), c.curve(), c.why(), c.written(c.round), c.grown(), c.rest(),
			limits(c.round, c.limit, c.forecast), c.parent()),
		Cost:  c.cost(),
		Fix:   c.fix(),
		Facts: objects{},
	}
}

// objects is what a finding knows that names the containers whose objects lie on the copied pages.
type objects struct{}

// excuses of copies: what is named is Python objects, which are copied by being looked at; nobody means to.
var excuses = []detect.Excuse{{
	Text: "the workers are meant to have this memory to themselves, such as buffers that they write to.",
	Excluded: func(_ *detect.Case, f *finding.Finding) bool {
		_, named := f.Facts.(objects)
		return named
	},
}}

func (c *copies) title() string {
	workers, what := words.Count(len(c.round.Workers()), "worker"), names(c.round[0].Ranked())
	copied := words.Bytes(c.limit.Load)
	var title string
	switch {
	case c.certainty == finding.Proven:
		title = fmt.Sprintf("%s copy %s: %s in each, %s in all", workers, what, c.each(), copied)
	case c.forecast > 0 && c.projected.Share() >= significant && c.limit.Share() < significant:
		title = fmt.Sprintf("%s are copying %s: %s so far, %s when they are through", workers, what, copied, words.Bytes(c.forecast))
	case c.certainty == finding.Likely:
		title = fmt.Sprintf("%s have %s of %s to themselves, %s each", workers, copied, what, c.each())
	case c.limit.Bytes > 0:
		title = fmt.Sprintf("%s copied %s of %s, %s of the memory there is", workers, copied, what, words.Percent(c.limit.Share()))
	default:
		title = fmt.Sprintf("%s copied %s of %s", workers, copied, what)
	}
	if again := c.again(); again != "" {
		title += ", " + again
	}
	if ranks := c.round.Ranks(); len(ranks) > 1 {
		title += ", on " + words.Ints("rank", ranks)
	}
	return title
}

// each is what a worker copied: one number, or from least to most.
func (c *copies) each() string {
	var least, most int64 = -1, 0
	for _, s := range c.round.Workers() {
		if least < 0 || s.Copied < least {
			least = s.Copied
		}
		most = max(most, s.Copied)
	}
	if a, b := words.Bytes(least), words.Bytes(most); float64(least) < 0.9*float64(most) {
		return a + " to " + b
	}
	return words.Bytes(c.limit.Load / int64(len(c.round.Workers())))
}

// again says in how many passes it happened, if workers live for one.
func (c *copies) again() string {
	if c.round[0].Persistent || len(c.rounds) < 2 {
		return ""
	}
	n, all := 0, 0
	for _, r := range c.rounds {
		if r[0].Passes[0].Delivered == 0 {
			continue
		}
		all++
		if 2*r.Sum((*memory.WorkerSet).Copied) >= c.limit.Load {
			n++
		}
	}
	if n == all && n > 1 {
		return fmt.Sprintf("in each of %d passes", n)
	}
	return fmt.Sprintf("in %d of %d passes", n, all)
}

func (c *copies) cost() string {
	r := c.round
	cost := fmt.Sprintf("%s per worker × %s = %s", c.each(), words.Count(len(r.Workers()), "worker"), words.Bytes(c.limit.Load))
	if c.limit.Bytes > 0 {
		cost += fmt.Sprintf(", %s of %s", words.Percent(c.limit.Share()), words.Memory(c.limit.Bytes, c.limit.Group()))
	}
	if c.forecast > 0 {
		cost += fmt.Sprintf("; forecast %s", words.Bytes(c.forecast))
		if c.limit.Bytes > 0 {
			cost += " (" + words.Percent(c.projected.Share()) + ")"
		}
	}
	return cost
}

// unnamedFinding tells of what lies on no container that we know.
func (c *copies) unnamedFinding() finding.Finding {
	workers := c.unnamed.Workers()
	n := int64(len(workers))
	var refs []finding.Ref
	var each []string
	for _, w := range workers[:min(len(workers), listed)] {
		refs = append(refs, w.Refs...)
		each = append(each, fmt.Sprintf("worker %d %s", w.Number, words.Bytes(w.Outside)))
	}
	count, all, one := words.Count(len(workers), "worker"), words.Bytes(c.nameless.Load), words.Bytes(c.nameless.Load/n)
	counted := finding.Evidence{Refs: refs, Text: "Of heap and anonymous memory on which no container of the dataset " +
		"that dptrace can reach lies: " + strings.Join(each, ", ") + " copied, in several steps with batches in between (counted by the kernel)."}
	return finding.Finding{
		Certainty: finding.Likely,
		Proof:     proof(c.unnamed),
		Title:     fmt.Sprintf("%s copy %s of inherited memory that dptrace could not name: %s each", count, all, one),
		Evidence:  slices.Concat([]finding.Evidence{counted}, c.written(c.unnamed), limits(c.unnamed, c.nameless, 0)),
		Cost: fmt.Sprintf("%s per worker × %s = %s, %s of %s", one, count, all, words.Percent(c.nameless.Share()),
			words.Memory(c.nameless.Bytes, c.nameless.Group())),
		Fix: "Find what the workers use or write to that the main process has made before: Python objects in containers that are not\n" +
			"reachable from the dataset's attributes (a C extension, a closure), or arrays that they write to in place.",
	}
}

// names of containers, for a title.
func names(extents []traces.Extent) string {
	switch len(extents) {
	case 0:
		return "the dataset" // their rows are lost
	case 1:
		return extents[0].Path
	case 2:
		return extents[0].Path + " and " + extents[1].Path
	}
	return fmt.Sprintf("%s and %d more containers", extents[0].Path, len(extents)-1)
}

// class of a container without the module of builtins.
func class(e traces.Extent) string { return strings.TrimPrefix(e.Class, "builtins.") }
