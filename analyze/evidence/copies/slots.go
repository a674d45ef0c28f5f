package copies

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/words"
)

// Slot is the copy that comes so many-th after each delivery.
type Slot struct {
	Bytes   int64 // most often
	Match   Match // with the batch's tensors
	Of      [Reaching + 1]int
	Made    int // of them, those that torch has cast or made contiguous on the host, of a pinned tensor, as the hook has seen
	counted bool
	wanders bool // its source is not nearly always at the same address, as weights are
}

const (
	// mostTensors of a batch: where more copies come after each delivery, only those whose bytes
	// are the batch's are told to be its.
	mostTensors = 8
	// regular is the share of steps that have the same number of copies, at the least.
	regular = 0.8
	// soon is the share of a step within which a copy of its batch begins, after the delivery or the
	// copy before it.
	soon = 0.25
	// resident is the share of copies from one address from which on it may be weights.
	resident = 0.6
)

// slots finds the copies that come with each batch, and which of them are the batch.
func (k *Rank) slots(windows []window, known []tensors) {
	counts := map[int]int{}
	for i := range windows {
		counts[len(windows[i].copies)]++
	}
	n := mostOften(counts)
	if n == 0 || float64(counts[n]) < regular*float64(len(windows)) {
		k.Spread = fmt.Sprintf("the copies do not come in step with its batches: %s have %s", words.Of(counts[n], len(windows), "step"),
			words.Count(n, "copy"))
		return
	}
	k.Slots = make([]Slot, n)
	sizes := make([]int64, n)
	timely := true
	for s := range k.Slots {
		sizes[s] = k.Slots[s].look(windows, s, n, &timely)
		k.Slots[s].counted = timely
	}
	matched := match(sizes, known)
	k.all = len(known) > 0
	for _, t := range known {
		k.all = k.all && t.copied(matched)
	}
	k.choose(matched, len(known) > 0)
}

// look at one slot; timely is whether it and those before come soon.
func (x *Slot) look(windows []window, s, n int, timely *bool) int64 {
	bytes, sources := map[int64]int{}, map[uint64]int{}
	var leads, steps []int64
	for i := range windows {
		w := &windows[i]
		if len(w.copies) != n {
			continue
		}
		before := w.from
		if s > 0 {
			before = w.copies[s-1].at + w.copies[s-1].blocked()
		}
		leads, steps = append(leads, w.copies[s].at-before), append(steps, w.next-w.from)
		bytes[w.copies[s].bytes]++
		sources[w.copies[s].source]++
	}
	x.Bytes = mostOften(bytes)
	x.wanders = float64(sources[mostOften(sources)]) < resident*float64(len(leads))
	*timely = *timely && float64(median(leads)) <= soon*float64(median(steps))
	return x.Bytes
}

// choose what is counted: where the batch's bytes are among the copies, those copies;
// else all that come soon after the delivery, if they can be the batch at all.
func (k *Rank) choose(matched []Match, known bool) {
	some := false
	for s := range k.Slots {
		k.Slots[s].Match = matched[s]
		some = some || matched[s].Tensor != ""
	}
	counted := 0
	for s := range k.Slots {
		x := &k.Slots[s]
		switch {
		case some:
			x.counted = x.Match.Tensor != ""
		case known:
			x.counted = x.counted && x.wanders
			k.odd = true
		}
		if x.counted {
			counted++
		}
	}
	switch {
	case some:
	case len(k.Slots) > mostTensors:
		k.Spread = fmt.Sprintf("%d copies come between two of its batches, and none is told to be of the batch's", len(k.Slots))
	case counted == 0 && known:
		k.Spread = "what is copied between its batches has other sizes than they, and comes long after them, or from the same places " +
			"each time, as weights do"
	case counted == 0:
		k.Spread = "what is copied between its batches comes long after them"
	}
}

// Wanders reports whether the copies of a class come from other addresses each time.
func (k *Rank) Wanders(class Class) bool {
	for s := range k.Slots {
		if x := &k.Slots[s]; x.counted && x.Of[class] > 0 && !x.wanders {
			return false
		}
	}
	return true
}

// Sure reports whether the copies of a class are told to be the batch's and nothing
// else: by their bytes, or, where those are not known, by coming from other addresses each time.
func (k *Rank) Sure(class Class) bool {
	if k.odd {
		return false
	}
	for s := range k.Slots {
		if x := &k.Slots[s]; x.counted && x.Of[class] > 0 && x.Match.Tensor == "" && !x.wanders {
			return false
		}
	}
	return true
}
