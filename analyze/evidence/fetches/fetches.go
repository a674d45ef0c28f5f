// Package fetches is where the time of a loader's fetches goes, as some of them
// were looked at (traces.FetchSplit): on a processor, waiting for one, or blocked.
// The kernel does not tell what a thread is blocked in; what it has read meanwhile
// is beside it.
package fetches

import (
	"maps"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is what the fetches of each loader's workers, or of its own process, were
// seen to spend their time on.
var Source = &collect.Source[ByLoader]{
	Name:   "splits of fetches",
	Tables: []string{"transform", "fetch_split"},
	Proof:  []string{"fetch_split"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[ByLoader] { return &splits{map[*traces.Part]*partRows{}} },
}

// ByLoader is the splits of each loader, on each of its ranks.
type ByLoader map[*timeline.Loader]*Split

// Of some loaders together; where no fetch was looked at, an empty one.
func (m ByLoader) Of(loaders ...*timeline.Loader) *Split {
	all := &Split{}
	for _, l := range loaders {
		if s := m[l]; s != nil {
			all.merge(s)
		}
	}
	return all
}

// Split is the sum of some fetches, from their begin to their samples: OnCPU,
// Queue and Blocked are all of Wall.
type Split struct {
	Fetches int
	Samples int
	Wall    time.Duration
	OnCPU   time.Duration
	Queue   time.Duration // ready to run, waiting for a processor; part of Blocked where QueueKnown is not Fetches
	Blocked time.Duration // in reading, in a sleep, waiting for locks or other threads
	Others  time.Duration // CPU time of the process's other threads meanwhile

	QueueKnown int // fetches of which the kernel says Queue
	ReadKnown  int // and of which it says what was read
	Read       int64
	Calls      int64 // that have read it
	Disk       int64 // bytes that had to come from a disk

	blocked moments // of each fetch, as a share of its wall time
	places  map[Place]*Spent
}

// add takes a row, without the time that looking at transforms took. of: which
// places the numbers of its process mean.
func (s *Split) add(r *traces.FetchSplit, of map[uint32]Place) {
	own := max(r.OwnNS, 0)
	if r.WallNS <= own {
		return
	}
	wall := time.Duration(r.WallNS - own)
	cpu := min(max(time.Duration(r.CPUNS-own), 0), wall) // the clocks are not read at the same moment
	queue := min(max(time.Duration(r.QueueNS), 0), wall-cpu)
	s.Fetches++
	s.Samples += int(max(r.Samples, 0))
	s.Wall, s.OnCPU, s.Queue, s.Blocked = s.Wall+wall, s.OnCPU+cpu, s.Queue+queue, s.Blocked+wall-cpu-queue
	s.Others += max(time.Duration(r.OthersNS), 0)
	if r.QueueNS >= 0 {
		s.QueueKnown++
	}
	if r.ReadBytes >= 0 && r.Reads >= 0 && r.DiskBytes >= 0 {
		s.ReadKnown++
		s.Read, s.Calls, s.Disk = s.Read+r.ReadBytes, s.Calls+r.Reads, s.Disk+r.DiskBytes
	}
	s.blocked.add((wall - cpu - queue).Seconds() / wall.Seconds())
	s.timed(r, of, wall)
}

func (s *Split) merge(o *Split) {
	s.Fetches, s.Samples = s.Fetches+o.Fetches, s.Samples+o.Samples
	s.Wall, s.OnCPU, s.Queue, s.Blocked, s.Others = s.Wall+o.Wall, s.OnCPU+o.OnCPU, s.Queue+o.Queue, s.Blocked+o.Blocked, s.Others+o.Others
	s.QueueKnown, s.ReadKnown = s.QueueKnown+o.QueueKnown, s.ReadKnown+o.ReadKnown
	s.Read, s.Calls, s.Disk = s.Read+o.Read, s.Calls+o.Calls, s.Disk+o.Disk
	s.blocked.merge(&o.blocked)
	for place, spent := range o.places {
		s.at(place).merge(spent)
	}
}

// Share of the fetches' time, 0 to 1.
func (s *Split) Share(of time.Duration) float64 {
	if s.Wall <= 0 {
		return 0
	}
	return of.Seconds() / s.Wall.Seconds()
}

// Deviation is the standard deviation of the share that the single fetches were
// blocked, 0 to 1; 0 of fewer than two.
func (s *Split) Deviation() float64 { return s.blocked.deviation(s.Fetches) }

// key of a process that fetches for a loader: workers do not know which, it is 0.
type key struct{ proc, loader uint32 }

type splits struct{ of map[*traces.Part]*partRows }

// partRows are those of one part.
type partRows struct {
	places map[uint32]map[uint32]Place // by process and number
	splits map[key]*shared
}

// shared is what one process has fetched for one loader.
type shared struct {
	Split
	pass   uint32 // one of those that it did that in
	worker int32
}

// Add takes the rows of one batch.
func (c *splits) Add(b traces.Batch) {
	here := c.of[b.Part]
	if here == nil {
		here = &partRows{map[uint32]map[uint32]Place{}, map[key]*shared{}}
		c.of[b.Part] = here
	}
	switch rows := b.Rows.(type) {
	case []traces.Transform:
		for i := range rows {
			here.place(&rows[i])
		}
	case []traces.FetchSplit:
		for i := range rows {
			r := &rows[i]
			k := key{r.Proc, r.Loader}
			if here.splits[k] == nil {
				here.splits[k] = &shared{pass: r.Pass, worker: r.Worker}
			}
			here.splits[k].add(r, here.places[r.Proc])
		}
	}
}

// Merge takes over the splits of other parts.
func (c *splits) Merge(o collect.Collector[ByLoader]) { maps.Copy(c.of, o.(*splits).of) }

// Build adds up what belongs to one loader.
func (c *splits) Build(e *collect.Evidence) ByLoader {
	t, found := collect.Of(e, timeline.Source), ByLoader{}
	for part, here := range c.of {
		for k, s := range here.splits {
			w := t.Worker(part, k.proc, k.loader, s.pass, s.worker)
			if w == nil || w.Pass == nil {
				continue
			}
			l := w.Pass.Loader
			if found[l] == nil {
				found[l] = &Split{}
			}
			for _, place := range here.places[k.proc] {
				if place.loader == k.loader {
					found[l].at(place)
				}
			}
			found[l].merge(&s.Split)
		}
	}
	return found
}
