package copypageable

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/evidence/copies"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

func (s *seen) finding(certainty finding.Certainty) finding.Finding {
	return finding.Finding{
		Certainty: certainty,
		Title: "Batches are copied to the device out of memory that is not pinned: the training thread is blocked for " +
			s.worst.Waits(copies.Staged) + s.ranks.On(s.worst),
		Evidence: s.evidence(),
		Cost:     s.cost(),
		Fix:      s.fix(),
		Facts:    s,
		Proof:    s.worst.Proof(),
	}
}

func (s *seen) evidence() []finding.Evidence {
	c := s.worst.Cost(copies.Staged)
	text := fmt.Sprintf("%s, %s. The call took %s (median)",
		s.worst.Seen(copies.Staged), s.worst.From(), words.Millis(c.Call))
	if s.worst.Hook {
		text += "."
	} else if c.Waits > 0 {
		text += fmt.Sprintf("; right after %s the thread waited for the copy's stream, for %s (median).", words.Of(c.Waits, c.Copies, "copy"),
			words.Millis(c.Wait))
	} else {
		text += ". No wait came right after it, as with non_blocking=True, which changes nothing for such memory: the call itself waits."
	}
	list := append([]finding.Evidence{{Text: text, Refs: c.Refs}, {Text: s.worst.Batch(copies.Staged)}}, s.worst.Asked(copies.Staged)...)
	if s.pins() {
		list = append(list, finding.Evidence{Text: "The loader was made with pin_memory=True, and this is not what it pinned."})
	} else {
		list = append(list, finding.Evidence{Text: "The loader was made without pin_memory=True."})
	}
	if rest := s.worst.Rest(); rest != "" {
		list = append(list, finding.Evidence{Text: rest, Detail: true})
	}
	return list
}

func (s *seen) pins() bool { return s.worst.Loader.First().PinMemory }

func (s *seen) cost() string {
	c := s.worst.Cost(copies.Staged)
	return fmt.Sprintf("the thread can queue no work for the device for %s, %s in all that were looked at. Part of it is waiting for "+
		"kernels that were queued before. After a copy from pinned memory that is not waited for the thread goes on at once; that copies and "+
		"kernels then run at the same time is possible, and not measured here", s.worst.Waits(copies.Staged), words.Seconds(c.Total.Seconds()))
}

func (s *seen) fix() string {
	at := s.worst.Loader.At()
	if s.pins() {
		return fmt.Sprintf("# %s has pin_memory=True: see where the loop, or what it calls, makes another tensor of the batch before the copy\n"+
			"# %s, right before x.to(device):\nprint(x.is_pinned())", at, s.worst.Where(copies.Staged))
	}
	return fmt.Sprintf("# %s\nDataLoader(..., pin_memory=True)\n# %s, for each tensor of the batch:\n"+
		"x = x.to(device, non_blocking=True)", at, s.worst.Where(copies.Staged))
}
