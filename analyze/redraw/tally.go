package redraw

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/rng"
	"github.com/dptrace/dptrace/analyze/words"
)

// Tally counts raw outputs.
type Tally struct {
	Drawn, Distinct int64
	AtLeast         bool // more may have been drawn than was seen
}

// Variety of what some hits drew: that of the first, which the title names too.
// The numbers of several generators are not added up: they are of different words.
func Variety(hits []*Hit) string {
	first := hits[0].Slot
	text := count(hits[0].Compared, rng.Width(first.Kind)).Variety()
	if len(hits) > 1 {
		text += fmt.Sprintf(" from %s; %s likewise", first.Name(), words.Count(len(hits)-1, "more generator"))
	}
	return text
}

// count sums up the draws of one generator.
func count(drawn []*draws.Draws, width int64) Tally {
	var t Tally
	var distinct draws.IntervalSet
	for _, d := range drawn {
		distinct.Add(d)
		t.Drawn += d.Words
		t.AtLeast = t.AtLeast || d.AtLeast || d.Unfollowed > 0 || d.NearLost > 0
	}
	t.Distinct = distinct.Words()
	t.Drawn, t.Distinct = (t.Drawn+width-1)/width, (t.Distinct+width-1)/width
	return t
}

// Variety says how many of the draws were distinct.
func (t Tally) Variety() string {
	least := ""
	if t.AtLeast {
		least = "≥ "
	}
	return fmt.Sprintf("%s%s distinct of %s%s", least, words.Number(t.Distinct), least, words.Number(t.Drawn))
}

// FirstTime says how many numbers the first pair of a hit has in common, and when
// they were drawn.
func FirstTime(h *Hit) string {
	p := h.Pairs[0]
	return fmt.Sprintf("%s in pass %d", Outputs(h.Slot, p.Words), p.Second.Worker.Pass.Number)
}

// Outputs is 32-bit words of a generator as a number of its raw outputs.
func Outputs(of *draws.Slot, drawn int64) string { return words.Number(drawn / rng.Width(of.Kind)) }
