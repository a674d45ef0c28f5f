package wronglen

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/digests"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// mostParts is how many samples, of those that noise makes others each time, are
// compared by a part that it leaves alone.
const mostParts = 1 << 16

// enoughLabels that come again say that samples do, of few different ones: 2^-48 for
// two that are as frequent.
const enoughLabels = 48

// parts looks for a part of the samples that comes again at one distance: an id, a
// label, where noise makes the rest another each time.
func (w *wrap) parts(l *timeline.Loader, contents *values.Contents) {
	byIndex := map[int64]*values.Sample{}
	for _, p := range l.Passes {
		list := contents.Samples(p)
		for i := range list {
			if s := &list[i]; len(s.Parts) > 0 && len(byIndex) < mostParts {
				byIndex[s.Index] = s
			}
		}
	}
	list := make([]*values.Sample, 0, len(byIndex))
	for _, s := range byIndex {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *values.Sample) int { return cmp.Compare(a.Index, b.Index) })
	if len(list) == 0 || list[0].Index != 0 || list[len(list)-1].Index != int64(len(list)-1) {
		return
	}
	for i := range list[0].Parts {
		var sequence []digests.Part
		for _, s := range list {
			if i >= len(s.Parts) || s.Parts[i].Pieces() {
				break
			}
			sequence = append(sequence, s.Parts[i])
		}
		size := period(sequence)
		if len(sequence) < len(list) || size < enough || len(list) >= rounds*size || !speaks(sequence, size) || len(list)-size <= w.pairs {
			continue
		}
		kind := []string{"number or list", "number", "text", "value"}[sequence[0].Type()>>1]
		w.size, w.pairs, w.part, w.shown = int64(size), len(list)-size, kind, nil
		for k := range min(w.pairs, 4) {
			w.shown = append(w.shown, [2]*given{{Sample: list[k]}, {Sample: list[k+size]}})
		}
	}
}

// speaks reports whether it says something that a sequence comes again after so many.
func speaks(sequence []digests.Part, size int) bool {
	different := map[digests.Part]bool{}
	for _, p := range sequence[size:] {
		different[p] = true
	}
	n := len(sequence) - size
	return len(different) >= enough && 10*len(different) >= 9*min(n, size) ||
		n >= enoughLabels && samples.Irregular(sequence[:min(n, size)])
}

// period is after how many a sequence begins again, to its end: its length, if it
// does not. It is what the prefix function of Knuth, Morris and Pratt tells.
func period(sequence []digests.Part) int {
	border := make([]int, len(sequence))
	for i := 1; i < len(sequence); i++ {
		k := border[i-1]
		for k > 0 && sequence[i] != sequence[k] {
			k = border[k-1]
		}
		if sequence[i] == sequence[k] {
			k++
		}
		border[i] = k
	}
	if len(sequence) == 0 {
		return 0
	}
	return len(sequence) - border[len(sequence)-1]
}
