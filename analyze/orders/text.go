package orders

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/finding"
)

// upper is a number that begins a sentence.
func upper(n int) string {
	words := []string{"None", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"}
	if n < len(words) {
		return words[n]
	}
	return fmt.Sprint(n)
}

// Passes is "Two of 3 passes go through the samples in the order of an earlier one".
func Passes(repeats []Repeat, training []*Pass) string {
	verb := "go"
	if len(repeats) == 1 {
		verb = "goes"
	}
	return fmt.Sprintf("%s of %d passes %s through the samples in the order of an earlier one", upper(len(repeats)), len(training), verb)
}

// shown is how many rows or passes a piece of evidence names at most.
const shown = 8

// Begins are the rows where passes begin.
func Begins(passes []*Pass) (refs []finding.Ref) {
	for _, p := range passes[:min(len(passes), shown)] {
		refs = append(refs, p.Refs()[0])
	}
	return refs
}

// Evidence says which passes are alike.
func Evidence(repeats []Repeat) (list []finding.Evidence) {
	for _, r := range repeats[:min(len(repeats), shown)] {
		what := fmt.Sprintf("all %s samples", words.Number(int64(r.Samples)))
		if !r.First.all || !r.Again.all {
			what = fmt.Sprintf("the first %s samples", words.Number(int64(r.Samples)))
		}
		on := ""
		if rank := r.First.Loader.Rank(); rank >= 0 {
			on = fmt.Sprintf(" of rank %d", rank)
		}
		list = append(list, finding.Evidence{Refs: append(r.First.Refs(), r.Again.Refs()...), Text: fmt.Sprintf("Passes %d and %d%s asked for %s in one order, which begins %s (order digest %016x of both).",
			r.First.Number, r.Again.Number, on, what, r.First.beginning(), r.First.read.digest[0])})
	}
	return list
}

// beginning is the first few indices.
func (p *Pass) beginning() string {
	text := ""
	for _, i := range p.Sequence.head {
		text += fmt.Sprint(i, ", ")
	}
	return text + "..."
}

// Cost of repeated orders, in epochs.
func Cost(training []*Pass, repeats []Repeat) string {
	different := len(training) - len(repeats)
	orders := "one order"
	if different > 1 {
		orders = fmt.Sprintf("%d orders", different)
	}
	return fmt.Sprintf("%d epochs of %s samples with the variety of %s: the same batches, one after another, %s", len(training), words.Number(int64(training[0].Samples())), orders,
		times(len(repeats)+1, different))
}

func times(n, different int) string {
	switch {
	case different == 1 && n == 2:
		return "twice"
	case different == 1:
		return fmt.Sprintf("%d times", n)
	}
	return "again"
}
