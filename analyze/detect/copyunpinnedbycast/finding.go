package copyunpinnedbycast

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/evidence/copies"
	"github.com/dptrace/dptrace/analyze/evidence/pinning"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

func (s *seen) finding(certainty finding.Certainty) finding.Finding {
	what := "something else is copied to the device, out of memory that is not"
	if s.cast() {
		what = "they are cast on the CPU and copied out of memory that is not"
		if s.fewer() {
			what = "they are cast or sliced on the CPU and copied out of memory that is not"
		}
	}
	return finding.Finding{
		Certainty: certainty,
		Title: fmt.Sprintf("Batches are pinned, and %s: the training thread is blocked for %s%s", what, s.worst.Waits(copies.Staged),
			s.ranks.On(s.worst)),
		Evidence: s.evidence(),
		Cost: fmt.Sprintf("%s, %s in all that were looked at, and the conversion on the CPU, which is not counted. Part of it is waiting "+
			"for kernels that were queued before", s.worst.Waits(copies.Staged), words.Seconds(s.worst.Cost(copies.Staged).Total.Seconds())),
		Fix:   s.fix(),
		Facts: s,
		Proof: s.worst.Proof(),
	}
}

func (s *seen) evidence() []finding.Evidence {
	c := s.worst.Cost(copies.Staged)
	look := s.reached()
	list := []finding.Evidence{{
		Text: fmt.Sprintf("%s, %s. The call took %s (median).",
			s.worst.Seen(copies.Staged), s.worst.From(), words.Millis(c.Call)),
		Refs: c.Refs,
	}, {
		Text: fmt.Sprintf("The pin step got to %s of a batch (%s), in %s that were looked at.", words.Count(int(look.Reached), "tensor"),
			words.Bytes(look.ReachedBytes), words.Count(len(s.looks), "batch")),
		Refs: []finding.Ref{{Part: look.Of.Process.Part.Name, Table: "pin", Seq: look.Seq}},
	}, {Text: s.worst.Batch(copies.Staged)}}
	if s.made() {
		list = append(list, finding.Evidence{Text: "Each was asked for of a pinned tensor, of another dtype or with its elements in " +
			"another order than on the device: torch first makes such a tensor on the CPU."})
	}
	list = append(list, s.worst.Asked(copies.Staged)...)
	if rest := s.worst.Rest(); rest != "" {
		list = append(list, finding.Evidence{Text: rest, Detail: true})
	}
	return list
}

// reached is the first look at a batch of which something was pinned.
func (s *seen) reached() pinning.Look {
	for _, l := range s.looks {
		if l.Reached > 0 {
			return l
		}
	}
	return s.looks[0]
}

func (s *seen) fix() string {
	at := "# " + s.worst.Where(copies.Staged)
	if !s.cast() {
		return at + ": copy first, and change dtype, layout or values on the device\n" +
			"x = x.to(device, non_blocking=True)  # then x.to(dtype), x.contiguous(), x[:, ::2]\n" +
			"print(x.is_pinned())  # right before the copy: True"
	}
	code := at + ": copy first, and change the dtype on the device\nx = x.to(device, non_blocking=True)." + s.dtype()
	if s.fewer() {
		code += "\n# if it is a slice: the same, x = x.to(device, non_blocking=True)[:, ::2]"
	}
	return code
}

// fewer bytes are copied than were pinned: so they are after a cast, and in a slice with steps.
func (s *seen) fewer() bool {
	m := s.slots()[0].Match
	return m.To < m.From || m.To == m.From && s.made()
}

// dtype is a cast to one with so many bytes.
func (s *seen) dtype() string {
	m := s.slots()[0].Match
	if name, ok := map[int64]string{2: "torch.bfloat16", 4: "torch.float32", 8: "torch.float64"}[m.To]; ok && m.Tensor != "pinned" {
		return "to(" + name + ")"
	}
	return "to(dtype)"
}
