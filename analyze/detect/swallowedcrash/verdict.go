package swallowedcrash

import (
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

const (
	// together is how far apart one signal to many arrives.
	together = int64(5 * time.Second)
	// patience is how long after it was asked to a process may end badly on its way.
	patience = int64(time.Minute)
)

// crashed is one process that ended badly.
type crashed struct {
	*timeline.Process
	certainty finding.Certainty
	raised    *traces.Exception // that nobody caught; nil: not known
	retried   *timeline.Process // the same command, run later, that ended well
	orphan    bool
	by        *timeline.Process // who hid it: the nearest above that ended well
	read      reading
	doubts    []doubt
}

// verdict says whether a process crashed, and counts it if nobody knows. It is
// asked only if the command exited with 0.
func (r *run) verdict(p *timeline.Process) *crashed {
	c := &crashed{Process: p, raised: uncaught(p)}
	switch {
	case p.EndKnown() && !p.EndedBadly():
		return nil
	case !p.EndKnown() && c.raised == nil:
		if p.Exit != nil || !r.Kernel(r.part) && !strings.Contains(p.Note, "still running") { // else it lives on
			r.unknown++
		}
		return nil
	case c.raised != nil && c.raised.Type == "KeyboardInterrupt", r.toldToEnd(p), r.outlived(p):
		return nil
	}
	c.orphan = timeline.Exact(p.Exit) && endedBefore(p.Parent, p.Exit.TsNS)
	if c.orphan && p.Fatal() != nil && timeline.BySelf(p, p.Fatal()) {
		return nil // it ends itself when its parent is gone
	}
	c.retried = r.retry(p)
	c.by, c.read = r.reader(p)
	c.certainty = finding.Proven
	if c.retried != nil || c.read == looked {
		c.certainty = finding.Note
	}
	c.doubts = r.doubtsOf(c)
	return c
}

// uncaught is the exception that ended a process; nil: none was seen.
func uncaught(p *timeline.Process) *traces.Exception {
	for i := range p.Raised {
		if p.Raised[i].Stage == "exit" {
			return &p.Raised[i]
		}
	}
	return nil
}

// toldToEnd reports whether the process was ended by its parent or theirs, or with
// the command by one signal to all.
func (r *run) toldToEnd(p *timeline.Process) bool {
	if f := p.Fatal(); f != nil && timeline.FromAbove(p, f) {
		return true
	}
	if f := p.AskedFromAbove(); f != nil && p.Exit != nil && p.Exit.TsNS-f.TsNS <= patience {
		return true
	}
	if r.target == nil {
		return false
	}
	for i := range p.Signals {
		for j := range r.target.Signals {
			if sameSignal(&p.Signals[i], &r.target.Signals[j]) {
				return true
			}
		}
	}
	return false
}

// sameSignal reports whether two processes got one signal, from one sender or from
// the terminal.
func sameSignal(a, b *traces.Signal) bool {
	if a.Signal != b.Signal || max(a.TsNS, b.TsNS)-min(a.TsNS, b.TsNS) > together {
		return false
	}
	return a.SiCode == 128 && b.SiCode == 128 || a.SiCode <= 0 && timeline.Ends(a.Signal) && a.SenderPid == b.SenderPid
}

// outlived reports whether the process ended after the command: there was nobody
// left to report it.
func (r *run) outlived(p *timeline.Process) bool {
	return p.Exit != nil && p.Exit.Source == "kernel" && endedBefore(r.target, p.Exit.TsNS)
}

func endedBefore(p *timeline.Process, ns int64) bool {
	return p != nil && p.Final().Exit != nil && p.Final().Exit.Source != "gone" && p.Final().Exit.TsNS < ns
}

// retry is a later process of the same command line that ended well, as far as
// is known.
func (r *run) retry(p *timeline.Process) *timeline.Process {
	if p.Cmdline == "" || p.Kind == "fork" {
		return nil
	}
	end := p.End
	if p.Exit != nil {
		end = p.Exit.TsNS
		if p.Exit.Source == "gone" && uncaught(p) != nil {
			end = uncaught(p).TsNS // it was noticed later that it was gone
		}
	}
	for _, q := range r.torch {
		later := q.Begin >= end-int64(time.Second) && q.Begin > p.Begin
		if q != p && later && q.Cmdline == p.Cmdline && q.Rank == p.Rank && !q.EndedBadly() && uncaught(q) == nil {
			return q
		}
	}
	return nil
}

// trained reports whether a process did what trainings do.
func trained(p *timeline.Process) bool {
	return len(p.Loaders) > 0 || p.Optimizers > 0 || p.Stepped
}

func (r *run) anyTrained() bool {
	if r.target != nil && trained(r.target) {
		return true
	}
	return slices.ContainsFunc(r.torch, trained)
}

// probe reports whether a process is `python -c`: a question that is asked of an
// installation, whose answer may be no.
func probe(p *timeline.Process) bool {
	if spawned(p) {
		return false
	}
	for i, word := range strings.Fields(p.Cmdline) {
		switch {
		case i == 0 || word == "-u" || word == "-B" || word == "-O":
		case word == "-c" || word == "-uc" || word == "-":
			return true
		default:
			return false
		}
	}
	return false
}
