package copies

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"
)

// Ranks is the copies of one loader's batches, on all ranks that have it.
type Ranks []*Rank

// Enough copies of a class to judge them by, and the share of a step that they have to
// take to be worth a change.
const (
	Enough  = 20
	Matters = 0.01
)

// few is the share of copies that are not judged from which on the others are not all.
const few = 0.1

// Bare reports whether nothing of CUDA was seen on any rank, nor missed.
func (r Ranks) Bare() bool {
	for _, k := range r {
		if !k.Bare {
			return false
		}
	}
	return true
}

// Worst is the rank on which enough copies of a class take the largest share of a step; nil: there is none.
func (r Ranks) Worst(class Class) (worst *Rank) {
	for _, k := range r {
		if c := k.Cost(class); c != nil && c.Copies >= Enough && (worst == nil || c.Share() > worst.Cost(class).Share()) {
			worst = k
		}
	}
	return worst
}

// Count of a class, on all ranks.
func (r Ranks) Count(classes ...Class) (n int) {
	for _, k := range r {
		for _, class := range classes {
			n += k.Of[class]
		}
	}
	return n
}

// Quiet reports whether no more was copied between the batches than the driver takes over at once.
func (r Ranks) Quiet() bool {
	for _, k := range r {
		if k.Copies > 0 {
			return false
		}
	}
	return true
}

// Partial says why nothing can be clean where the hook has told of the copies, or "": it sees those that the program asks for by
// Tensor.to, cuda and copy_. If they are all the bytes of a batch, there are no others of it.
func (r Ranks) Partial() string {
	for _, k := range r {
		if k.Hook && !k.whole() {
			return "copies that are made otherwise than by Tensor.to, cuda and copy_ are not seen without the kernel tier, and those that were " +
				"are not told to be all of the batch"
		}
	}
	return ""
}

// whole: all tensors of the batch whose bytes are known are among the copies.
func (k *Rank) whole() bool {
	some := false
	for s := range k.Slots {
		if x := &k.Slots[s]; x.counted && x.Match.Tensor == "" {
			return false
		}
		some = some || k.Slots[s].counted
	}
	return some && k.all
}

// Excuse of what the hook tells: what it cannot see. Excluded where the driver was watched.
const Excuse = "what the call waits for is work that was queued on the device before, or the driver does not treat the memory as torch " +
	"says: the call was timed in Python, and the driver was not watched (--tier kernel does). Or the device is none of CUDA's."

// Driver reports whether the driver's own calls were seen.
func (k *Rank) Driver() bool { return !k.Hook }

// Proof is where the evidence comes from.
func (k *Rank) Proof() string {
	if k.Hook {
		return "hook"
	}
	return "kernel"
}

// From says what the memory was that the copies of a class are from, for a finding.
func (k *Rank) From() string {
	if k.Hook {
		return "out of memory that is not pinned, as torch says, or by way of a tensor that torch makes of it in such memory"
	}
	return "out of memory that the CUDA driver was not told to pin, to register or to manage"
}

// Unknown says why the copies of a rank cannot be judged, or "".
func (r Ranks) Unknown() string {
	for _, k := range r {
		if why := k.unknown(); why != "" {
			return why
		}
	}
	return ""
}

func (k *Rank) unknown() string {
	switch {
	case k.Unwatched != "":
		return k.Unwatched
	case k.Bare:
	case k.Steps == 0:
		return fmt.Sprintf("after the first %d batches of its process none of its batches was delivered right after another of it", warmUp)
	case k.Spread != "":
		return k.Spread
	case k.Copies == 0 && k.Aside > 0:
		return "the copies are made by another thread than the first one: whether the training waits for it is not seen"
	case k.Copies == 0 && k.Captured > 0:
		return "copies are part of a CUDA graph, and are not seen when it is replayed"
	}
	return ""
}

// Unjudged says why copies of some classes cannot be told from the others, where they are more than a few; or "".
func (r Ranks) Unjudged(classes ...Class) string {
	all := r.Count(Unjudged, Quick, Async, Waited, Device, Staged, Reaching)
	for _, class := range []struct {
		Class
		text string
	}{
		{Reaching, "a device of this machine may read memory by itself that is not pinned (arm64): %s are from such memory"},
		{Unjudged, "it is not known what memory %s read from: it was pinned before it was watched, is managed, or rows are lost"},
		{Quick, "%s from memory that is not pinned took less time than the bytes need"},
	} {
		if n := r.Count(class.Class); slices.Contains(classes, class.Class) && float64(n) > few*float64(all) {
			return fmt.Sprintf(class.text, strings.TrimPrefix(words.Of(n, all, "copy"), "the "))
		}
	}
	return ""
}

// Waits is how long the training thread is blocked by copies of a class: 5.8 ms of each step of 12 ms (48 %).
func (k *Rank) Waits(class Class) string {
	c := k.Cost(class)
	return fmt.Sprintf("%s of each step of %s (%s)", words.Millis(c.Blocked), words.Millis(c.Step), words.Percent(c.Share()))
}

// Seen is how many copies of a class there were, and where.
func (k *Rank) Seen(class Class) string {
	c := k.Cost(class)
	return fmt.Sprintf("After the first %d batches: in %s (from one delivery to the next) the thread made %s of more than 64 KiB to the "+
		"device, most often of %s", warmUp, words.Of(c.Steps, k.Steps, "step"), words.Count(c.Copies, "copy"), words.Bytes(c.Bytes))
}

// Batch says by what the copies of a class are known to be the batch's.
func (k *Rank) Batch(class Class) string {
	var parts []string
	for i := range k.Slots {
		m := k.Slots[i].Match
		if m.Tensor == "" || k.Slots[i].Of[class] == 0 {
			continue
		}
		text := fmt.Sprintf("%s are the batch's %s", words.Bytes(k.Slots[i].Bytes), m.text())
		switch {
		case m.To > m.From:
			text = fmt.Sprintf("%s are the batch's %s with %d bytes in place of each %d", words.Bytes(k.Slots[i].Bytes), m.text(), m.To, m.From)
		case m.To < m.From:
			text = fmt.Sprintf("%s are 1/%d of the batch's %s: as of a dtype of fewer bytes, or of a slice with steps",
				words.Bytes(k.Slots[i].Bytes), m.From/m.To, m.text())
		}
		parts = append(parts, text)
	}
	switch {
	case len(parts) > 0:
		return words.Upper(words.List(parts)) + "."
	case k.Sure(class):
		return "They come soon after each delivery, as many each time and from other addresses."
	}
	return "They come soon after each delivery, as many each time; what the batch's tensors take is not known, or is something else."
}

func (m Match) text() string {
	switch m.Tensor {
	case "pinned":
		return "tensors that were pinned (" + words.Bytes(m.Bytes) + ")"
	case "left":
		return "tensors that were left unpinned (" + words.Bytes(m.Bytes) + ")"
	}
	return m.Tensor + " tensors (" + words.Bytes(m.Bytes) + ")"
}

// Rest is what else was copied; "" nothing.
func (k *Rank) Rest() string {
	var parts []string
	for _, x := range []struct {
		n    int
		text string
	}{
		{k.Foreign, " of other bytes or in other steps"},
		{k.Aside, " by other threads, which do not make this one wait"},
		{k.Of[Unjudged], " from memory that is managed or not known"},
		{k.Captured, " into a CUDA graph"},
	} {
		if x.n > 0 {
			parts = append(parts, words.Count(x.n, "copy")+x.text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Not counted: " + strings.Join(parts, "; ") + "."
}

// On which rank; "" there is one only.
func (r Ranks) On(k *Rank) string {
	if rank := k.Loader.Rank(); rank >= 0 && len(r) > 1 {
		return fmt.Sprintf(", on rank %d", rank)
	}
	return ""
}
