package copies

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Rank is how the batches of one loader got to the device on one rank.
type Rank struct {
	Loader *timeline.Loader
	// Bare: nothing of CUDA was seen in the process, and nothing that it may have done was missed.
	Bare      bool
	Unwatched string // why the process's copies are not known; "" they are
	Steps     int    // that were looked at: from one delivery to the next
	Copies    int    // of them, by the first thread
	Aside     int    // by other threads
	Captured  int    // copies of the process into a graph, which are made when it is replayed
	Spread    string // why what is copied is not told to be the loader's; "" it is
	Foreign   int    // copies in those steps that are not the batch's
	ToHost    bool   // or not known: in most steps the process waits for the device anyway, as for a value of its
	Slots     []Slot // the copies of a batch, in their order
	Of        map[Class]int
	// Taken is what the copies of batches took of the steps, by the kind of memory that they read from.
	Taken [Reached + 1]Taken
	// Lost says what is missing of the rows that tell of copies: there may have been more of them; "" nothing is.
	Lost string
	// Hook: the copies are those that the program has asked torch for (record --copies), not those that the driver was.
	Hook bool
	cost map[Class]*Cost
	part *traces.Part
	all  bool // tensors whose bytes are known are among the copies
	odd  bool // what the batch's tensors take is known, and is none of the copies
}

// Class of a copy.
type Class uint8

// Classes of copies.
const (
	Unjudged Class = iota // of memory that is managed, or not known; or it failed
	Quick                 // of pageable memory, and the call took less than any copy out of it could
	Async                 // of pinned memory, and the thread went on
	Waited                // of pinned memory, and the thread waited for the copy's stream right after
	Device                // of pinned memory, and the thread waited for the whole device right after
	Staged                // of pageable memory: the call took as long as a copy out of it does
	Reaching              // of pageable memory that the device may read by itself
)

const (
	// bus is the bytes that a copy moves in a nanosecond at the most. A call that took
	// less than its bytes need has not waited for them.
	bus = 25
	// staging is how long a copy takes at the least that goes through the driver's buffer; any call may take less.
	staging = 15_000
)

func (c *copied) class() Class {
	after := stages.RightAfter(c.gap)
	switch c.kind {
	case Reached:
		return Reaching
	case Pinned:
		switch {
		case c.hook && !c.async: // torch waits for the stream then, as memcpy_and_sync does
			return Waited
		case after && c.after == streamSync:
			return Waited
		case after && c.after == contextSync:
			return Device
		}
		return Async
	case Pageable:
		if c.call >= max(c.bytes/bus, staging) {
			return Staged
		}
		return Quick // as memory would be that is pinned by a call which is not watched
	}
	return Unjudged
}

// waits reports whether a wait for the copy's stream comes right after it.
func (c *copied) waits() bool { return stages.RightAfter(c.gap) && c.after == streamSync }

// blocked is how long the thread was in the copy's call, and in the wait that belongs
// to it.
func (c *copied) blocked() int64 {
	if c.waits() || c.class() == Device {
		return c.call + c.next
	}
	return c.call
}

func (c *collector) Build(e *collect.Evidence) *Copies {
	t := collect.Of(e, timeline.Source)
	all := &Copies{map[*timeline.Loader]*Rank{}}
	for part, rows := range c.parts {
		for _, process := range t.Processes {
			if process.Part != part || len(process.Loaders) == 0 {
				continue
			}
			r := rows.proc(process.Proc)
			r.choose()
			if len(r.copies) > 0 {
				rows.classify(t, process, r)
			}
			windows, lost := r.windows(process), ""
			if incomplete(t, process) {
				lost = t.LossesOf(part, []*timeline.Process{process}, told)
			}
			for _, l := range process.Loaders {
				all.of[l] = rows.rank(l, r, windows[l], c.tensors(t, part, l))
				if !all.of[l].Bare || r.driver != nil {
					all.of[l].Lost = lost
				}
			}
		}
	}
	for _, l := range t.Loaders {
		if all.of[l] == nil { // of a part without any row
			all.of[l] = &Rank{Loader: l, Bare: true, part: l.Process.Part}
		}
	}
	return all
}

func (p *partRows) rank(l *timeline.Loader, r *procRows, windows []window, known []tensors) *Rank {
	k := &Rank{Loader: l, Steps: len(windows), Captured: r.captured, Of: map[Class]int{}, cost: map[Class]*Cost{}, part: l.Process.Part}
	k.Bare, k.Unwatched = p.seen(r)
	k.Hook = r.hooked()
	for i := range windows {
		k.Copies += len(windows[i].copies)
		k.Aside += windows[i].aside
	}
	k.ToHost = r.waitsAnyway()
	if k.Copies == 0 {
		return k
	}
	k.slots(windows, known)
	if k.Spread == "" {
		k.weigh(p, windows)
	}
	return k
}

// seen says what of a process's calls can be known.
func (p *partRows) seen(r *procRows) (bare bool, unwatched string) {
	asked := len(r.copies) > 0 || r.captured > 0 || len(r.memory) > 0 || len(r.calls) > 0
	switch {
	case asked:
		return false, ""
	case r.driver != nil && r.driver.How == "":
		return false, "calls of CUDA could not be watched: " + cmp.Or(r.driver.Note, "the reason is not known")
	case r.driver != nil || p.watched:
		return true, ""
	case p.refused != "":
		return false, "calls of CUDA could not be watched: " + p.refused
	case len(r.pins) > 0 || strings.Contains(p.host.Accelerators, "nvidia"):
		return false, "copies to a device were not recorded: that takes the kernel tier, or record --copies" + r.asking.text()
	}
	return true, ""
}

// waitsAnyway reports whether the process waits for the device about once for each batch besides
// its copies to it: by copies to the host, as of .item(), or by waiting for the device or an event.
func (r *procRows) waitsAnyway() bool {
	if len(r.calls) == 0 {
		return true
	}
	waits := uint64(0)
	for name, calls := range r.calls {
		switch {
		case strings.Contains(name, "DtoH"), strings.HasPrefix(name, "cuCtxSynchronize"), name == "cuEventSynchronize":
			waits += calls
		case strings.HasPrefix(name, "cuMemcpy") && !strings.Contains(name, "HtoD") && !strings.Contains(name, "DtoD"): // of any direction
			waits += calls - min(r.toDevice[name], calls)
		}
	}
	return 2*waits >= uint64(r.all)
}

// Cost is what copies of one class take of a step.
type Cost struct {
	Copies  int
	Steps   int // with such copies
	Waits   int // of the copies: those with a wait right after
	Bytes   int64
	Blocked time.Duration // of a step, on average without the longest of the steps
	Step    time.Duration // of these steps
	Total   time.Duration // blocked in all steps that were looked at
	Call    time.Duration // median of the copies' calls
	Wait    time.Duration // median of the waits
	Gap     time.Duration // median of the times between them
	Refs    []finding.Ref
	Sites   []Site // that were looked at, the one first that blocks longest
}

// Share of a step in which the thread is blocked.
func (c *Cost) Share() float64 {
	if c == nil || c.Step <= 0 {
		return 0
	}
	return float64(c.Blocked) / float64(c.Step)
}

// Cost of a class; nil: there were no copies of it.
func (k *Rank) Cost(class Class) *Cost { return k.cost[class] }

// longest is the share of the steps, those in which the thread is blocked longest, that are left out, and one more.
const longest = 0.02

// weigh adds up what the copies of each class take.
func (k *Rank) weigh(p *partRows, windows []window) {
	type step struct{ blocked, took int64 }
	of := map[Class][]copied{}
	steps := map[Class][]step{}
	for i := range windows {
		w := &windows[i]
		blocked := map[Class]int64{}
		for s := range w.copies {
			if len(w.copies) != len(k.Slots) || !k.Slots[s].counted {
				k.Foreign++
				continue
			}
			c := &w.copies[s]
			class := c.class()
			k.Of[class]++
			k.Slots[s].Of[class]++
			if c.made {
				k.Slots[s].Made++
			}
			k.Taken[c.kind].add(c, class)
			of[class] = append(of[class], *c)
			blocked[class] += c.blocked()
		}
		for class := Unjudged; class <= Reaching; class++ {
			steps[class] = append(steps[class], step{blocked[class], w.next - w.from})
		}
	}
	for class, all := range of {
		c := costOf(all, k.part)
		c.Sites = p.asked(all, k.Loader.Process.Cwd)
		list := steps[class]
		slices.SortFunc(list, func(a, b step) int { return cmp.Compare(b.blocked, a.blocked) })
		for _, s := range list {
			c.Total += time.Duration(s.blocked)
			if s.blocked > 0 {
				c.Steps++
			}
		}
		list = list[int(longest*float64(len(list)))+min(1, len(list)-1):]
		var sum step
		for _, s := range list {
			sum.blocked += s.blocked
			sum.took += s.took
		}
		n := int64(len(list))
		c.Blocked, c.Step = time.Duration(sum.blocked/n), time.Duration(sum.took/n)
		k.cost[class] = c
	}
}

// costOf copies of one class, but what they take of a step.
func costOf(all []copied, part *traces.Part) *Cost {
	c := &Cost{Copies: len(all)}
	var calls, waits, gaps []int64
	bytes := map[int64]int{}
	for i := range all {
		x := &all[i]
		calls = append(calls, x.call)
		bytes[x.bytes]++
		if x.blocked() > x.call || x.waits() {
			c.Waits++
			waits, gaps = append(waits, x.next), append(gaps, x.gap)
		}
		if len(c.Refs) < 4 {
			c.Refs = append(c.Refs, ref(part, x.seq))
		}
	}
	c.Bytes = mostOften(bytes)
	c.Call, c.Wait, c.Gap = median(calls), median(waits), median(gaps)
	return c
}

func median(all []int64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return time.Duration(all[len(all)/2])
}

// mostOften is the number that is there most often; of several the largest.
func mostOften[T cmp.Ordered](counts map[T]int) (most T) {
	best := 0
	for n, count := range counts {
		if count > best || count == best && n > most {
			most, best = n, count
		}
	}
	return most
}
