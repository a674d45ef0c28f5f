package swallowedcrash

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// doubt is an excuse that nothing excludes.
type doubt int

const (
	actedOn   doubt = iota // the caller may have read the status, or what was printed
	answer                 // the exit code may be one
	replaced               // another attempt may have taken its place
	helper                 // it may be expected to fail
	orphaned               // nobody was left who could tell
	uncounted              // how it ended was not seen, only why
	handled                // the loader's error may be the end of the data
)

var excuses = []detect.Excuse{
	{Text: "the caller looks at how this process ended, or at what it told, and acts on it.", Excluded: without(actedOn)},
	{Text: "its exit code is an answer that somebody waits for (converged, out of time).", Excluded: without(answer)},
	{Text: "it was tried again with other arguments, which went well.", Excluded: without(replaced)},
	{Text: "it is a helper, whose failure the caller expects.", Excluded: without(helper)},
	{Text: "it was left running on purpose, and nobody waits for it.", Excluded: without(orphaned)},
	{Text: "it did not end by this exception.", Excluded: without(uncounted)},
	{Text: "the program takes this error for the end of its data, or ends because of it on purpose.", Excluded: without(handled)},
}

func without(d doubt) func(*detect.Case, *finding.Finding) bool {
	return func(_ *detect.Case, f *finding.Finding) bool { return !slices.Contains(f.Facts.([]doubt), d) }
}

// doubtsOf is what may excuse a crash.
func (r *run) doubtsOf(c *crashed) (all []doubt) {
	p := c.Process
	if c.read == unseen && (!shell(c.by) || c.by.Looks()) {
		all = append(all, actedOn)
	}
	if c.answered() {
		all = append(all, answer)
	}
	if r.substitute(c) {
		all = append(all, replaced)
	}
	if probe(p) || !trained(p) && (r.anyTrained() || c.raised == nil && p.Fault() == nil) {
		all = append(all, helper)
	}
	if c.orphan {
		all = append(all, orphaned)
	}
	if !p.EndKnown() {
		all = append(all, uncounted)
	}
	return all
}

// answered reports whether a process chose its exit code: it ended in good order,
// and not by an exception.
func (c *crashed) answered() bool {
	return c.raised == nil && c.EndKnown() && c.Exit.Signal == 0 && c.Orderly()
}

// reading is whether a parent looked at how its child ended.
type reading int

const (
	unseen  reading = iota // it was not watched, or has other ways to know
	ignored                // it waited, and nothing looked at what it got
	looked
)

// reader is who hid a crash, and whether they looked at it: the nearest above who
// ended well although what they had started did not.
func (r *run) reader(p *timeline.Process) (by *timeline.Process, read reading) {
	carried := r.carried(p)
	if by = r.target; carried.Parent != nil {
		by = carried.Parent.Final()
	}
	for i := range carried.Told {
		switch carried.Told[i].Read {
		case "yes":
			read = looked
		case "no":
			read = max(read, ignored)
		}
	}
	return by, read
}

// carried is the uppermost process that ended badly because of one: itself, or
// those who passed it on.
func (r *run) carried(p *timeline.Process) *timeline.Process {
	for n := 0; n < 1000 && p.Parent != nil && p.Parent.Final() != r.target && p.Parent.Final().EndedBadly(); n++ {
		p = p.Parent.Final()
	}
	return p
}

// substitute reports whether a later process of the same program, with other
// arguments, ended well.
func (r *run) substitute(c *crashed) bool {
	end := c.End
	if c.Exit != nil {
		end = c.Exit.TsNS
	}
	return slices.ContainsFunc(r.torch, func(q *timeline.Process) bool {
		return q != c.Process && q.Begin > max(c.Begin, end-int64(time.Second)) && name(q) == name(c.Process) && q.Cmdline != c.Cmdline &&
			!q.EndedBadly() && uncaught(q) == nil
	})
}

// shell reports whether a process is one: it shows no one what it does with exit
// codes, but for what its script says.
func shell(p *timeline.Process) bool {
	if p == nil {
		return false
	}
	program := p.Exe
	if program == "" {
		program, _, _ = strings.Cut(p.Cmdline, " ")
	}
	switch filepath.Base(program) {
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "busybox":
		return true
	}
	return false
}
