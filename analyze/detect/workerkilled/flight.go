package workerkilled

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// flight says what it was working on.
func (o *outcome) flight(d *death) []finding.Evidence {
	w := d.pass()
	given, all := w.InFlight()
	if len(given) == 0 {
		return nil
	}
	part := d.Worker.Loader.Process.Part
	var e finding.Evidence
	first := given[0]
	if all {
		e.Text = fmt.Sprintf("It had been given batch %d (%s) and had not handed it over", first.Batch, samples(first))
	} else {
		e.Text = fmt.Sprintf("It had been given batch %d (%s)", first.Batch, samples(first))
	}
	if rest := given[1:]; len(rest) > 0 {
		var names []string
		for _, g := range rest[:min(len(rest), 3)] {
			names = append(names, fmt.Sprintf("batch %d (%s)", g.Batch, samples(g)))
		}
		if n := len(rest) - len(names); n > 0 {
			names = append(names, fmt.Sprintf("%d more", n))
		}
		e.Text += "; then came " + strings.Join(names, ", ")
	}
	e.Text += "."
	if !all {
		e.Text += " Which of them it had handed over is not known: it was not watched from inside."
	}
	for _, g := range given {
		e.Refs = append(e.Refs, ref(part, "batch_put", g.Seq))
	}
	return []finding.Evidence{e}
}

// samples of a batch: the first few.
func samples(g timeline.Given) string {
	if len(g.Indices) == 0 {
		if g.Keys != "" {
			return "samples " + g.Keys
		}
		return "of an IterableDataset"
	}
	const shown = 8
	var indices []string
	for _, i := range g.Indices[:min(len(g.Indices), shown)] {
		indices = append(indices, fmt.Sprint(i))
	}
	text := "samples " + strings.Join(indices, ", ")
	if g.Count > len(indices) {
		text += fmt.Sprintf(" and %d more", g.Count-len(indices))
	}
	if g.Count == 1 {
		text = "sample " + indices[0]
	}
	return text
}
