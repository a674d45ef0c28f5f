// Package offcpu is what fetches are blocked in: the kernel's account of what the
// first thread of each worker waits for (traces.OffCpu), as far as that was while
// it fetched. Fetches of the training process are left out: what it waits for
// between them is no part of them.
package offcpu

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is what the workers of each loader were blocked in.
var Source = &collect.Source[ByLoader]{
	Name:   "what fetches are blocked in",
	Tables: []string{"batch_fetch", "off_cpu"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[ByLoader] { return &waits{map[*traces.Part]map[uint32]*thread{}} },
}

// Kind is what a thread waits for, in words that follow "blocked: ".
type Kind string

// All kinds, in the order in which equal ones are told.
const (
	Reading Kind = "reading files"
	Pages   Kind = "page faults: mapped files, swap"
	Names   Kind = "opening files"
	Channel Kind = "pipes, sockets, devices"
	Locks   Kind = "locks, other threads"
	Sleep   Kind = "sleep"
	Child   Kind = "child processes"
	Writing Kind = "writing files"
	Other   Kind = "other waits, or stopped"
)

var kinds = [len(amounts{})]Kind{Reading, Pages, Names, Channel, Locks, Sleep, Child, Writing, Other}

// ByLoader is what the workers of each loader were blocked in, on each of its ranks.
type ByLoader map[*timeline.Loader]*Blocked

// Of some loaders together; where nothing is known, an empty one.
func (m ByLoader) Of(loaders ...*timeline.Loader) *Blocked {
	all := &Blocked{In: map[Kind]time.Duration{}}
	for _, l := range loaders {
		if b := m[l]; b != nil {
			all.merge(b)
		}
	}
	return all
}

// Blocked is for how long workers were blocked while they fetched.
type Blocked struct {
	Workers int           // processes
	Fetches time.Duration // of all of them: from their begin to their samples
	In      map[Kind]time.Duration
}

// Part is one kind.
type Part struct {
	Kind
	Share float64 // of the fetches' time, 0 to 1
}

// Parts is all kinds, the longest first.
func (b *Blocked) Parts() (all []Part) {
	for _, k := range kinds {
		if d := b.In[k]; d > 0 {
			all = append(all, Part{k, b.Share(d)})
		}
	}
	slices.SortStableFunc(all, func(x, y Part) int { return cmp.Compare(y.Share, x.Share) })
	return all
}

// Share of the fetches' time, 0 to 1.
func (b *Blocked) Share(of time.Duration) float64 {
	if b.Fetches <= 0 {
		return 0
	}
	return of.Seconds() / b.Fetches.Seconds()
}

// Files is the share of the fetches' time that was waited for what is stored: a
// disk, or a file system that gets it from elsewhere. 0 to 1; 0 where nothing is known.
func (b *Blocked) Files() float64 { return b.Share(b.In[Reading] + b.In[Pages] + b.In[Names]) }

// Sum of all kinds.
func (b *Blocked) Sum() (sum time.Duration) {
	for _, d := range b.In {
		sum += d
	}
	return sum
}

func (b *Blocked) merge(o *Blocked) {
	b.Workers, b.Fetches = b.Workers+o.Workers, b.Fetches+o.Fetches
	for k, d := range o.In {
		b.In[k] += d
	}
}

type waits struct {
	of map[*traces.Part]map[uint32]*thread
}

// thread is a worker's, which fetches from its first fetch to its last.
type thread struct {
	pass    uint32 // one of those that it did that in
	worker  int32
	from    int64
	to      int64
	fetches int64
	idle    int64 // for an index, between them
	last    traces.OffCpu
	known   bool // last is
	in      amounts
}

// amounts is nanoseconds of each of kinds, in their order.
type amounts [9]int64

func of(r *traces.OffCpu) amounts {
	return amounts{r.ReadNS, r.PageNS, r.NameNS, r.ChannelNS, r.LockNS, r.SleepNS, r.ChildNS, r.WriteNS, r.OtherNS}
}

// aside is where among kinds that lies which a worker waits for outside of fetches:
// Channel, Locks, Other.
var aside = []int{channel, 4, 8}

const channel = 3

// Add takes the rows of one batch: of a part the fetches come first.
func (c *waits) Add(b traces.Batch) {
	here := c.of[b.Part]
	if here == nil {
		here = map[uint32]*thread{}
		c.of[b.Part] = here
	}
	switch rows := b.Rows.(type) {
	case []traces.BatchFetch:
		for i := range rows {
			if rows[i].Worker >= 0 && rows[i].Loader == 0 {
				fetched(here, &rows[i])
			}
		}
	case []traces.OffCpu:
		for i := range rows {
			if t := here[rows[i].Proc]; t != nil {
				t.take(&rows[i])
			}
		}
	}
}

func fetched(here map[uint32]*thread, r *traces.BatchFetch) {
	t := here[r.Proc]
	if t == nil {
		t = &thread{pass: r.Pass, worker: r.Worker, from: r.TsNS}
		here[r.Proc] = t
	} else {
		t.idle += max(r.WaitNS, 0)
	}
	t.fetches += max(r.FetchNS, 0)
	t.to = max(t.to, r.TsNS+max(r.FetchNS, 0)+max(r.CollateNS, 0))
}

// take adds what was waited for since the row before. A forked process begins with
// nothing; what another one did before it was first looked at is not told apart.
func (t *thread) take(r *traces.OffCpu) {
	before, known := t.last, t.known
	t.last, t.known = *r, true
	switch {
	case !known && !r.Inherits:
		return
	case !known:
		before = traces.OffCpu{Head: traces.Head{TsNS: t.from}}
	}
	inside := min(r.TsNS, t.to) - max(before.TsNS, t.from)
	if inside <= 0 {
		return
	}
	// Before its first fetch and behind its last one a worker waits for an index, for its
	// feeder thread, or to be ended.
	outside := r.TsNS - before.TsNS - inside
	was, now := of(&before), of(r)
	for _, k := range aside {
		n := min(now[k]-was[k], outside)
		now[k], outside = now[k]-n, outside-n
	}
	for k, ns := range now {
		t.in[k] += min(ns-was[k], inside) // less than nothing, if the last row has said too much of a wait
	}
}

// Merge takes over the threads of other parts.
func (c *waits) Merge(o collect.Collector[ByLoader]) { maps.Copy(c.of, o.(*waits).of) }

// Build adds up what belongs to one loader.
func (c *waits) Build(e *collect.Evidence) ByLoader {
	t, found := collect.Of(e, timeline.Source), ByLoader{}
	for part, here := range c.of {
		for proc, one := range here {
			w := t.Worker(part, proc, 0, one.pass, one.worker)
			if !one.known || w == nil || w.Pass == nil {
				continue
			}
			l := w.Pass.Loader
			if found[l] == nil {
				found[l] = &Blocked{In: map[Kind]time.Duration{}}
			}
			found[l].merge(one.blocked())
		}
	}
	return found
}

// blocked leaves out what it waits for between its fetches: an index comes through a pipe.
func (t *thread) blocked() *Blocked {
	b := &Blocked{Workers: 1, Fetches: time.Duration(t.fetches), In: map[Kind]time.Duration{}}
	t.in[channel] -= t.idle
	for i, ns := range t.in {
		if ns > 0 {
			b.In[kinds[i]] = time.Duration(ns)
		}
	}
	return b
}
