// Package shmexhausted is the rule shm-exhausted: /dev/shm is too small for the
// batches that workers hand over through it. docs/rules/shm-exhausted.md explains it.
package shmexhausted

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/ends"
	"github.com/dptrace/dptrace/analyze/evidence/shared"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "shm-exhausted",
	DP:      "DP15",
	Title:   "/dev/shm is too small for the loader",
	Sources: []collect.Any{shared.Source, ends.Source},
	Explains: []detect.Explained{{
		Rule: "worker-killed",
		Why:  "the worker died of it",
		If: func(f *finding.Finding) bool {
			return f.Certainty == finding.Proven && f.Facts.(*room).explainsDeaths()
		},
	}},
	Excuses: []detect.Excuse{
		{Text: "the workers never get ahead of the loop: it waits for them at each batch, also while it evaluates or saves.",
			Excluded: func(_ *detect.Case, f *finding.Finding) bool { return len(f.Facts.(*room).effects) > 0 }},
		{Text: "what had no page behind it was a mapped file that became shorter (the kernel tier says what was mapped).",
			Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*room).named() }},
		{Text: "the program tries sizes until one fits, and goes on with that.",
			Excluded: func(_ *detect.Case, f *finding.Finding) bool { return !f.Facts.(*room).wentOn() }},
	},
	Judge: judge,
}

// room is what is known of a loader, on all its ranks.
type room struct {
	*detect.Case
	memory  *shared.Memory
	ends    *ends.Ends
	worst   *need // the machine where the least is left; nil: not known of any
	unknown string
	effects []effect
	// unplaced says that a worker got SIGBUS with /dev/shm half full, and nobody knows where.
	unplaced string
}

func judge(c *detect.Case) detect.Verdict {
	r := &room{Case: c, memory: detect.Of(c, shared.Source), ends: detect.Of(c, ends.Source)}
	workers := false
	for _, l := range c.Loaders {
		for i := range l.Objects {
			workers = workers || l.Objects[i].NumWorkers > 0
		}
	}
	if !workers {
		return detect.NotApplicable("no workers: nothing is handed over through /dev/shm")
	}
	r.weigh()
	r.look()
	switch {
	case len(r.effects) > 0:
		return detect.Found(r.effects[0].short, r.exhausted())
	case r.worst != nil && r.worst.bytes > r.worst.free:
		return detect.Found(r.worst.sum(), r.forecast())
	case r.unplaced != "":
		return detect.CannotTell(r.unplaced)
	case r.unknown != "":
		return detect.CannotTell(r.unknown)
	case r.worst.atMost() > r.worst.free:
		return detect.CannotTell(fmt.Sprintf("%s; %s were free: not enough for one more, which may be there for a moment", r.worst.sum(),
			words.Bytes(r.worst.free)))
	case r.worst.bytes == 0:
		return detect.Clean("batches take no shared memory: they hold no tensors of their own")
	}
	return detect.Clean(fmt.Sprintf("%s; %s were free, %s at the least", r.worst.sum(), words.Bytes(r.worst.free), words.Bytes(r.worst.least)))
}

// need is what a loader's batches take on one machine, where all its ranks there
// are at their most.
type need struct {
	rooms  *shared.Rooms
	ranks  []rankNeed
	bytes  int64 // of all
	free   int64 // before the first of its workers
	least  int64 // that was seen to be free
	loader *timeline.Loader
}

// rankNeed is one rank's.
type rankNeed struct {
	object   int // of Loader.Objects: the one that needs most
	loader   *timeline.Loader
	inFlight int64
	moment   int64 // with what is there for a moment while the loop takes the next batch
	batch    int64 // bytes, on average over those that were looked at
	seen     []shared.Batch
}

// atMost is the bytes of all with those that are there for a moment.
func (n *need) atMost() (bytes int64) {
	for _, r := range n.ranks {
		bytes += r.moment * r.batch
	}
	return bytes
}

// capacity of /dev/shm, in bytes.
func (n *need) capacity() int64 {
	if n == nil {
		return 0
	}
	return n.rooms.All[len(n.rooms.All)-1].Capacity
}

// sum is (4 x 2 + 1) batches, as the finding has it.
func (n *need) sum() string {
	r := n.ranks[0]
	text := fmt.Sprintf("%s of %s at once", words.Count(int(r.inFlight), "batch"), words.Bytes(r.batch))
	if len(n.ranks) > 1 {
		text += fmt.Sprintf(" on each of %s", words.Count(len(n.ranks), "rank"))
	}
	return text + " take " + words.Bytes(n.bytes)
}

// weigh adds up what the loader's batches take, machine by machine.
func (r *room) weigh() {
	type machine struct {
		boot   string
		device int64
	}
	of := map[machine]*need{}
	for _, l := range r.Loaders {
		rooms := r.memory.Of(l)
		if rooms == nil {
			r.unknown = "how full /dev/shm is was not seen"
			continue
		}
		if rooms.All[len(rooms.All)-1].Type != "tmpfs" {
			r.unknown = "/dev/shm is no tmpfs"
			continue
		}
		rank, why := rankOf(l, r.memory.Batches(l))
		if why != "" {
			r.unknown = why
		}
		if rank == nil {
			continue
		}
		key := machine{l.Process.Part.BootID, rooms.Device}
		n := of[key]
		if n == nil {
			n = &need{rooms: rooms, loader: l, free: freeBefore(rooms, l), least: rooms.Least(begin(l), l.Process.End).Free}
			of[key] = n
		}
		n.ranks = append(n.ranks, *rank)
		n.bytes += rank.inFlight * rank.batch
		if r.worst == nil || n.free-n.bytes < r.worst.free-r.worst.bytes {
			r.worst = n
		}
	}
}

// rankOf is the need of one rank; why says what of it is not known. Of a loader
// that is made anew for each epoch, the object that needs most counts.
func rankOf(l *timeline.Loader, seen []shared.Batch) (most *rankNeed, why string) {
	if len(seen) == 0 {
		return nil, "no worker has told what a batch takes of it"
	}
	for i := range l.Objects {
		object := &l.Objects[i]
		rank := rankNeed{object: i, loader: l}
		var sum, longest int64
		for _, b := range seen {
			if b.Of.Object != object.Loader {
				continue
			}
			rank.seen = append(rank.seen, b)
			sum += b.New()
			if !b.Whole {
				why = "part of a batch is of a class that dptrace does not look into"
			}
			if delivered := int64(b.Of.Delivered); !b.Of.Exhausted {
				longest = 1 << 62
			} else {
				longest = max(longest, delivered)
			}
		}
		if len(rank.seen) == 0 {
			continue
		}
		rank.batch = sum / int64(len(rank.seen))
		rank.inFlight, rank.moment = min(object.MostInFlight(), longest), min(object.ForAMomentInFlight(), longest)
		if most == nil || rank.inFlight*rank.batch > most.inFlight*most.batch {
			most = &rank
		}
	}
	if most == nil {
		return nil, "no worker has told what a batch takes of it"
	}
	return most, why
}

// freeBefore is what was free as the loader's first workers were started. It may
// be made larger afterwards.
func freeBefore(rooms *shared.Rooms, l *timeline.Loader) int64 {
	then, last := rooms.At(begin(l)), rooms.All[len(rooms.All)-1]
	return then.Free + max(last.Capacity-then.Capacity, 0)
}

// begin of a loader's first pass.
func begin(l *timeline.Loader) int64 {
	if len(l.Passes) > 0 {
		return l.Passes[0].Begin
	}
	return l.Process.Begin
}
