package rngduplicateworkers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/redraw"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// siblings is children of one process that do one kind of work, and what they
// drew from one generator.
type siblings struct {
	of    *timeline.Process
	kind  string
	key   draws.Key
	drawn []*draws.Draws
}

// children of a Pool, of an Executor, or forked by hand: they inherit one state,
// and nobody seeds them anew.
func children(c *detect.Case) detect.Verdict {
	s := detect.Of(c, draws.Source)
	var found []finding.Finding
	all := families(s)
	for _, f := range all {
		if pairs := redraw.Pairs(f.drawn, func(*draws.Draws, *draws.Draws) finding.Certainty { return finding.Likely }); len(pairs) > 0 {
			found = append(found, f.report(pairs))
		}
	}
	switch {
	case len(found) > 0:
		return detect.Found("the same numbers in several processes", found...)
	case len(all) > 0:
		return detect.Clean(fmt.Sprintf("what %s of other processes drew is distinct", words.Count(len(all), "group")))
	}
	return detect.NotApplicable("no other processes that draw")
}

// families are the siblings of whom at least two drew data.
func families(s *draws.Streams) []*siblings {
	var all []*siblings
	for _, d := range s.Children() {
		p := d.Worker.Process
		if !d.Data() || p.Parent == nil || trains(p) {
			continue
		}
		at := slices.IndexFunc(all, func(f *siblings) bool { return f.of == p.Parent && f.kind == p.Kind && f.key == d.Slot.Key() })
		if at < 0 {
			at = len(all)
			all = append(all, &siblings{of: p.Parent, kind: p.Kind, key: d.Slot.Key()})
		}
		all[at].drawn = append(all[at].drawn, d)
	}
	return slices.DeleteFunc(all, func(f *siblings) bool { return len(f.drawn) < 2 })
}

// trains reports whether a process is a training of its own, or a rank of one:
// its numbers are for the weights too, which may have to agree.
func trains(p *timeline.Process) bool {
	return p.Rank >= 0 || p.Stepped || len(p.Loaders) > 0 || p.Kind == "worker"
}

func (f *siblings) report(pairs []*redraw.Pair) finding.Finding {
	involved := map[*timeline.Process]bool{}
	for _, p := range pairs {
		involved[p.First.Worker.Process], involved[p.Second.Worker.Process] = true, true
	}
	first, slot := pairs[0], pairs[0].First.Slot
	who, same := "process", redraw.Outputs(slot, pairs[0].Words)
	if f.kind == "task" {
		who = "pool process"
	}
	a, b := first.First.Worker.Process, first.Second.Worker.Process
	text := fmt.Sprintf("%s (%s): processes %d and %d drew the same %s outputs. Both were started by process %d, and began with a copy "+
		"of its state.",
		slot.Path, slot.Kind, a.Pid, b.Pid, same, f.of.Pid)
	var distinct draws.IntervalSet
	total := int64(0)
	for _, d := range f.drawn {
		distinct.Add(d)
		total += d.Words
	}
	return finding.Finding{
		Certainty: finding.Likely,
		Title: fmt.Sprintf("%s draw the same random numbers from %s", words.Upper(words.Of(len(involved), len(f.drawn), who)),
			slot.Name()),
		Evidence: []finding.Evidence{{Text: text, Refs: redraw.Refs(first)}},
		Cost: fmt.Sprintf("%s of %s numbers that they drew are distinct", redraw.Outputs(slot, distinct.Words()),
			redraw.Outputs(slot, total)),
		Fix: f.fix(slot),
		NotABugIf: "what they draw leaves no mark on their results (the pause before a second try), or they must agree on it " +
			"(members of an ensemble, repeats that are to be compared).",
	}
}

// fix seeds each process when it starts.
func (f *siblings) fix(slot *draws.Slot) string {
	var b strings.Builder
	b.WriteString("def seed_process():\n")
	switch {
	case slot.Role != "global":
		fmt.Fprintf(&b, "    # %s: make it anew here, from os.urandom\n    ...\n", slot.Path)
	case slot.Path == "numpy":
		b.WriteString("    import numpy, os\n    numpy.random.seed(int.from_bytes(os.urandom(4), \"little\"))\n")
	case slot.Path == "random":
		b.WriteString("    import random\n    random.seed()\n")
	case slot.Path == "cv2":
		b.WriteString("    import cv2, os\n    cv2.setRNGSeed(int.from_bytes(os.urandom(3), \"little\"))\n")
	default:
		b.WriteString("    import torch\n    torch.seed()\n")
	}
	if f.kind == "task" {
		return b.String() + "\n# Pool(..., initializer=seed_process), ProcessPoolExecutor(..., initializer=seed_process)"
	}
	return b.String() + "\n# Call it first in the function that runs in the process."
}
