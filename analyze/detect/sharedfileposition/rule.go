// Package sharedfileposition is the rule shared-file-position: workers read a
// file that was opened before they were forked, and move its one position under
// each other. docs/rules/shared-file-position.md explains it.
package sharedfileposition

import (
	"fmt"
	"slices"
	"sync"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/contents"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "shared-file-position",
	Title:   "Workers move the position of one open file under each other",
	Sources: []collect.Any{moved, contents.Source},
	Excuses: []detect.Excuse{{
		Text: "one process alone reads the file, or each seek and its read are behind a lock that the processes share.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool {
			return f.Facts.(*file).taken > 0 || f.Facts.(*file).buffered()
		},
	}, {
		Text:     "the place that the processes seek is where they begin to share the rest of the file out among them.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*file).everywhere() },
	}},
	Judge: judge,
}

// several looks at a position that found it further back than the look before:
// somebody seeks. One may be a rewind.
const several = 3

func judge(c *detect.Case) detect.Verdict {
	if !inherits(c) {
		return detect.NotApplicable("no worker is forked: none inherits an open file")
	}
	p := detect.Of(c, moved)
	var found, notes []finding.Finding
	seen := sync.OnceValue(func() []finding.Evidence { return delivered(c) }) // the same for all files
	for _, f := range p.filesOf(c) {
		switch {
		case f.taken > 0:
			found = append(found, proof(f, seen()))
		case f.buffered():
			found = append(found, torn(f, seen()))
		case !f.kernel && f.back >= several && len(f.workers()) > 1:
			found = append(found, sighting(f))
		case f.queued():
			notes = append(notes, note(f))
		}
	}
	if len(found) > 0 {
		f := found[0].Facts.(*file)
		return detect.Found(amount(f), append(found, notes...)...)
	}
	return p.without(c).Noting(notes...)
}

// inherits reports whether a worker of the loader may have inherited open files:
// those that are spawned have not.
func inherits(c *detect.Case) bool {
	for _, l := range c.Loaders {
		for i := range l.Objects {
			if o := &l.Objects[i]; o.NumWorkers > 0 && o.StartMethod != "spawn" {
				return true
			}
		}
	}
	return false
}

// without says what it means that no read was seen to go astray.
func (p *positions) without(c *detect.Case) detect.Verdict {
	shared, reads, loose, contended := 0, uint64(0), uint64(0), 0
	for _, f := range p.filesOf(c) {
		shared++
		reads += f.reads
		if f.inTurns() && !f.queued() {
			loose += f.loose + f.asked
		}
		if f.inTurns() && f.seeks > 0 && f.reads > 0 && !f.queued() {
			contended++
		}
	}
	seen, all := p.seen(c)
	kernel := p.counted(c)
	switch {
	case all == 0:
		return detect.CannotTell("no worker was seen")
	case kernel && loose > 0:
		return detect.CannotTell(fmt.Sprintf("%s times a process went on from where another one had left the position (%s): in the middle of a "+
			"record, if it is of a buffered file", words.Number(int64(loose)), count(reads, "read")))
	case kernel && contended > 0: // between a seek and its read there are microseconds: that nobody else seeks there is no proof of a lock
		return detect.CannotTell(fmt.Sprintf("%s several processes move the position of in turns, and all of %s began where they were to, "+
			"in this run: they share a lock, or it went well by chance", words.Count(shared, "open file"), count(reads, "read")))
	case kernel && shared > 0:
		return detect.Clean(fmt.Sprintf("%s several processes move the position of, and all of %s began where they were to",
			words.Count(shared, "open file"), count(reads, "read")))
	case kernel:
		return detect.Clean("no open file whose position several processes move")
	case shared > 0:
		return detect.CannotTell("the workers share an open file, and who moves its position is visible in the kernel tier only")
	case seen < all:
		return detect.CannotTell(fmt.Sprintf("which files %s inherited was not seen", words.Of(all-seen, all, "worker")))
	}
	return detect.Clean("no data file was open before the workers were forked")
}

// counted reports whether the kernel counted on all ranks.
func (p *positions) counted(c *detect.Case) bool {
	for _, l := range c.Loaders {
		if !p.watched[l.Process.Part] {
			return false
		}
	}
	return true
}

// seen counts the workers whose descriptors were looked at.
func (p *positions) seen(c *detect.Case) (seen, all int) {
	looked := map[process]bool{}
	for k := range p.rows {
		looked[process{k.part, k.proc}] = true
	}
	for _, l := range c.Loaders {
		for _, w := range l.WorkerProcesses {
			all++
			if w.Process != nil && looked[process{w.Process.Part, w.Process.Proc}] {
				seen++
			}
		}
	}
	return seen, all
}

func amount(f *file) string {
	if f.buffered() {
		return fmt.Sprintf("%s of %s began where another process had left the position of %s", words.Number(int64(f.loose)),
			count(f.reads, "read"), f.path)
	}
	if f.kernel {
		return fmt.Sprintf("%s of %s began at another place of %s than was sought", words.Number(int64(f.taken)),
			count(f.reads, "read"), f.path)
	}
	return f.path + " was open before the workers were forked, and its position moves"
}

// numbers of the workers among the movers, each once.
func (f *file) numbers() []int {
	var all []int
	for _, m := range f.workers() {
		all = append(all, m.worker.Number)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
