package copies

import (
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze/stages"
)

// Taken is what some copies took of the training thread's time, and what they moved.
type Taken struct {
	Copies int
	Bytes  int64
	Time   time.Duration // in the calls, and in the waits right after them: as stages.InCopy
	// Blocked is of it what copies took that make the thread wait for their bytes: those of the classes Waited, Device and Staged.
	Blocked time.Duration
}

func (t *Taken) add(c *copied, class Class) {
	t.Copies++
	t.Bytes += c.bytes
	t.Time += time.Duration(c.call)
	if stages.RightAfter(c.gap) {
		t.Time += time.Duration(c.next)
	}
	switch class {
	case Waited, Device, Staged:
		t.Blocked += time.Duration(c.blocked())
	}
}

func (t *Taken) join(o Taken) {
	*t = Taken{t.Copies + o.Copies, t.Bytes + o.Bytes, t.Time + o.Time, t.Blocked + o.Blocked}
}

var kinds = [Reached + 1]string{"unknown", "pageable", "pinned", "managed", "reached"}

func (k Kind) String() string { return kinds[k] }

// H2D is what copies to devices take of a loop's steps, on all ranks of which that is known.
type H2D struct {
	Steps  int                // that were looked at: after the warm-up, from one delivery to the next
	Memory [Reached + 1]Taken // by the batches' copies, by the kind of memory that they read from
	Others int                // copies in these steps that are not the batch's, or of other threads than the first
	// Unknown says why nothing is known of some ranks, and what of the others is not; "" all is known.
	Unknown string
	Judged  bool // it is known of nearly all copies what memory they read from
}

// All is the copies of batches from any memory.
func (h *H2D) All() (all Taken) {
	for _, t := range h.Memory {
		all.join(t)
	}
	return all
}

// H2D of a loop; nil: nothing of CUDA was seen, nor missed.
func (r Ranks) H2D() *H2D {
	h, unknown := &H2D{}, []string{}
	bare := true
	for _, k := range r {
		bare = bare && k.Bare && k.Lost == ""
		if k.Lost != "" && !slices.Contains(unknown, k.Lost) {
			unknown = append(unknown, k.Lost)
		}
		if k.Bare || k.unknown() != "" || k.Copies == 0 && k.Lost != "" {
			continue
		}
		h.Steps += k.Steps
		h.Others += k.Foreign + k.Aside
		for kind, t := range k.Taken {
			h.Memory[kind].join(t)
		}
	}
	if bare {
		return nil
	}
	unjudged := r.Unjudged(Unjudged, Quick, Reaching)
	h.Judged = unjudged == ""
	for _, why := range []string{r.Unknown(), unjudged} {
		if why != "" {
			unknown = append(unknown, why)
		}
	}
	h.Unknown = strings.Join(unknown, "; ")
	return h
}
