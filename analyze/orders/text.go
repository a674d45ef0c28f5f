package orders

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
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

// Row is where a pass begins.
func (p *Pass) Row() finding.Ref {
	return finding.Ref{Part: p.Loader.Process.Part.Name, Table: "pass", Seq: p.Began.Seq}
}

// request is the row of its first batch in batch_put.
func (p *Pass) request() finding.Ref {
	return finding.Ref{Part: p.Loader.Process.Part.Name, Table: "batch_put", Seq: p.Sequence.Seq}
}

// Begins are the rows where passes begin.
func Begins(passes []*Pass) (refs []finding.Ref) {
	for _, p := range passes[:min(len(passes), shown)] {
		refs = append(refs, p.Row())
	}
	return refs
}

// Evidence says which passes are alike.
func Evidence(repeats []Repeat) (list []finding.Evidence) {
	for _, r := range repeats[:min(len(repeats), shown)] {
		what := fmt.Sprintf("all %s samples", words.Number(int64(r.Samples)))
		if !r.First.All || !r.Again.All {
			what = fmt.Sprintf("the first %s samples", words.Number(int64(r.Samples)))
		}
		on := ""
		if rank := r.First.Loader.Rank(); rank >= 0 {
			on = fmt.Sprintf(" of rank %d", rank)
		}
		list = append(list, finding.Evidence{
			Refs: []finding.Ref{r.First.Row(), r.First.request(), r.Again.Row(), r.Again.request()},
			Text: fmt.Sprintf("Passes %d and %d%s asked for %s in one order, which begins %s (order digest %016x of both).",
				r.First.Number, r.Again.Number, on, what, r.First.beginning(), r.First.Digest[0]),
		})
	}
	return list
}

// beginning is the first few indices.
func (p *Pass) beginning() string {
	text := ""
	for _, i := range p.Sequence.Head {
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
	return fmt.Sprintf("%d epochs of %s samples with the variety of %s: the same batches, one after another, %s",
		len(training), words.Number(int64(training[0].Samples)), orders, times(len(repeats)+1, different))
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

// OnRanks is ", on ranks 0 and 2"; "" if there is no more than one.
func OnRanks(of timeline.Ranks, ranks []int) string {
	if len(of) < 2 || len(ranks) == 0 {
		return ""
	}
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	if len(ranks) == 1 {
		return fmt.Sprintf(", on rank %d", ranks[0])
	}
	if len(ranks) > mostNamed {
		return fmt.Sprintf(", on %d ranks", len(ranks))
	}
	names := make([]string, len(ranks))
	for i, r := range ranks {
		names[i] = fmt.Sprint(r)
	}
	return ", on ranks " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// mostNamed is how many ranks are named one by one.
const mostNamed = 16
