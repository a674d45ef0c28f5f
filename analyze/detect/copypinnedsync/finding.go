package copypinnedsync

import (
	"fmt"
	"time"

	"github.com/dptrace/dptrace/analyze/evidence/copies"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

func (s *seen) finding(certainty finding.Certainty) finding.Finding {
	return finding.Finding{
		Certainty: certainty,
		Title:     "Batches are pinned, and the thread waits for each copy of them: " + s.worst.Waits(copies.Waited) + s.ranks.On(s.worst),
		Evidence:  s.evidence(),
		Cost:      s.cost(),
		Fix: fmt.Sprintf("# %s, for each tensor of the batch, and without a synchronize() right after it:\n"+
			"x = x.to(device, non_blocking=True)", s.worst.Where(s.class)),
		Facts: s,
		Proof: s.worst.Proof(),
	}
}

// fastest is the bytes that a copy moves in a nanosecond at the most: what a bus of the fifth
// generation with 16 lanes can do.
const fastest = 64

func (s *seen) evidence() []finding.Evidence {
	c := s.worst.Cost(s.class)
	if s.worst.Hook {
		return append([]finding.Evidence{{
			Text: fmt.Sprintf("%s, out of pinned memory and without non_blocking=True: torch waits for the copy's stream then. The call took %s "+
				"(median), and what was queued on that stream before is in it.", s.worst.Seen(s.class), words.Millis(c.Call)),
			Refs: c.Refs,
		}, {Text: s.worst.Batch(s.class)}}, s.worst.Asked(s.class)...)
	}
	list := []finding.Evidence{{
		Text: fmt.Sprintf("%s, out of pinned memory, and then waited for %s, %s after the copy's call (median) and with no other call between. "+
			"The call took %s, the wait %s (medians).", s.worst.Seen(s.class), s.what(), words.Millis(c.Gap), words.Millis(c.Call),
			words.Millis(c.Wait)),
		Refs: c.Refs,
	}, {Text: s.worst.Batch(s.class)}}
	list = append(list, s.worst.Asked(s.class)...)
	if least := time.Duration(c.Bytes / fastest); c.Wait > 2*least {
		list = append(list, finding.Evidence{Text: fmt.Sprintf("The wait is for all that was queued on that stream before, too: "+
			"most often for kernels. At %d GB/s the bytes take %s.", fastest, words.Millis(least))})
	}
	if rest := s.worst.Rest(); rest != "" {
		list = append(list, finding.Evidence{Text: rest, Detail: true})
	}
	return list
}

func (s *seen) what() string {
	if s.class == copies.Device {
		return "the whole device (cuCtxSynchronize)"
	}
	return "the copy's stream (cuStreamSynchronize)"
}

func (s *seen) cost() string {
	c := s.worst.Cost(s.class)
	return fmt.Sprintf("the training thread waits %s, %s in all that were looked at, and queues nothing for the device meanwhile. It is "+
		"what the wait exposes, not what the copy takes; that copies and kernels run at the same time without it is possible, and not "+
		"measured here",
		s.worst.Waits(s.class), words.Seconds(c.Total.Seconds()))
}

// device is what is said where the program waits for the whole device itself.
func (s *seen) device() finding.Finding {
	return finding.Finding{
		Certainty: finding.Note,
		Title:     "The program waits for the whole device after each copy: " + s.worst.Waits(s.class) + s.ranks.On(s.worst),
		Evidence:  s.evidence(),
		Cost:      s.cost(),
		Fix:       "# remove torch.cuda.synchronize() after the copy, unless it is there to take the time",
		NotABugIf: "the program takes the time of its parts.",
		Facts:     s,
		Proof:     s.worst.Proof(),
	}
}
