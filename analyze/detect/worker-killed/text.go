package killed

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// described is how many deaths are described one by one.
const described = 3

func (o *outcome) finding() finding.Finding {
	first := o.deaths[0]
	why := o.cause(first)
	l := first.life.Loader
	f := finding.Finding{
		Rule: id, Certainty: first.certainty, Proof: proof(first),
		Title:     o.title(why),
		Loader:    finding.Loader{ID: l.ID, At: l.At(), Role: string(o.loaders.Role())},
		Cost:      o.cost(first),
		Fix:       o.fix(first, why),
		Verify:    o.t.Verify(id),
		NotABugIf: "somebody stopped this worker on purpose, and the training is made to lose workers.",
	}
	for i, d := range o.deaths {
		f.Certainty = max(f.Certainty, d.certainty)
		if i == described && len(o.deaths) > described+1 {
			f.Evidence = append(f.Evidence, o.others(o.deaths[i:]))
			break
		}
		c := why
		if i > 0 {
			c = o.cause(d)
		}
		f.Evidence = append(f.Evidence, o.end(d))
		f.Evidence = append(f.Evidence, c.texts...)
		f.Evidence = append(f.Evidence, o.flight(d)...)
	}
	if e, ok := o.parent(first); ok {
		f.Evidence = append(f.Evidence, e)
	}
	return f
}

func (o *outcome) title(c cause) string {
	d := o.deaths[0]
	who := "A worker"
	if d.life.Number >= 0 {
		who = fmt.Sprintf("Worker %d", d.life.Number)
	}
	if len(o.deaths) > 1 {
		return fmt.Sprintf("%s died, %s first: %s", of(len(o.deaths), o.workers), lower(who), c.short)
	}
	if w := d.pass(); w != nil {
		who += fmt.Sprintf(" died in pass %d", w.Pass.Number)
	} else {
		who += " died"
	}
	return who + ": " + c.short
}

func lower(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// pass is the worker's share of the pass in which it died.
func (d *death) pass() *timeline.WorkerPass {
	if w := d.life.At(d.when()); w != nil && d.when() > 0 {
		return w
	}
	return d.life.Last()
}

func proof(d *death) string {
	if p := d.life.Process; d.Exact || p != nil && (p.Oom != nil || p.Fatal() != nil || p.Fault() != nil) {
		return "kernel"
	}
	return "hook"
}

func who(d *death) string {
	name := "A worker"
	if d.life.Number >= 0 {
		name = fmt.Sprintf("Worker %d", d.life.Number)
	}
	facts := []string{fmt.Sprintf("pid %d", d.life.Pid)}
	if rank := d.life.Loader.Rank(); rank >= 0 {
		facts = append(facts, fmt.Sprintf("rank %d", rank))
	}
	name += " (" + strings.Join(facts, ", ") + ")"
	if w := d.pass(); w != nil {
		name += fmt.Sprintf(" of pass %d", w.Pass.Number)
	}
	return name
}

// end says that it died, and how it is known that nobody had asked it to.
func (o *outcome) end(d *death) finding.Evidence {
	life, part := d.life, d.life.Loader.Process.Part
	e := finding.Evidence{}
	how := "ended by " + status(d.Death)
	if !d.known {
		how = "ended"
	}
	text := who(d) + " " + how
	if d.when() > 0 {
		text += fmt.Sprintf(" %.1f s after its parent was first seen", float64(d.when()-life.Loader.Process.Begin)/1e9)
	}
	switch {
	case life.Exit == nil && len(life.Named) == 0 && quit(life.Process) != nil:
		text += ", in a fetch"
	case life.Exit != nil && life.Exit.Asked == "no":
		text += ", before its parent began to shut its workers down"
	case len(life.Named) > 0:
		text += ", which torch reported as an error: it had not shut its workers down"
	default:
		text += ", while its parent was still taking batches"
	}
	e.Text = text + "."
	if p := life.Process; p != nil && p.EndKnown() {
		e.Refs = append(e.Refs, ref(p.Part, "exit", p.Exit.Seq))
	}
	if life.Exit != nil {
		e.Refs = append(e.Refs, ref(part, "worker", life.Exit.Seq))
	}
	if life.Exit == nil && !d.known && quit(life.Process) != nil {
		e.Refs = append(e.Refs, ref(part, "exception", quit(life.Process).Seq))
	}
	for _, c := range life.Named {
		e.Refs = append(e.Refs, ref(part, "exception", c.Seq))
	}
	return e
}

// flight says what it was working on.
func (o *outcome) flight(d *death) []finding.Evidence {
	w := d.pass()
	given, all := w.InFlight()
	if len(given) == 0 {
		return nil
	}
	part := d.life.Loader.Process.Part
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
	var words []string
	for _, i := range g.Indices[:min(len(g.Indices), shown)] {
		words = append(words, fmt.Sprint(i))
	}
	text := "samples " + strings.Join(words, ", ")
	if g.Count > len(words) {
		text += fmt.Sprintf(" and %d more", g.Count-len(words))
	}
	if g.Count == 1 {
		text = "sample " + words[0]
	}
	return text
}

// others sums up the deaths that are not described.
func (o *outcome) others(deaths []*death) finding.Evidence {
	how := map[string]int{}
	var names []string
	for _, d := range deaths {
		s := status(d.Death)
		if how[s] == 0 {
			names = append(names, s)
		}
		how[s]++
	}
	slices.Sort(names)
	for i, s := range names {
		names[i] = fmt.Sprintf("%d by %s", how[s], s)
	}
	return finding.Evidence{Text: fmt.Sprintf("%d more workers died: %s.", len(deaths), strings.Join(names, ", "))}
}

// parent says what the training loop got of it.
func (o *outcome) parent(d *death) (finding.Evidence, bool) {
	main := d.life.Loader.Process
	for i := range main.Raised {
		r := &main.Raised[i]
		if r.TsNS < d.when() || r.Worker >= 0 || r.Stage != "next" && r.Stage != "exit" {
			continue
		}
		text := "The training loop then got " + r.Type
		if r.Message != "" {
			text += ": " + strings.TrimSpace(r.Message)
		}
		return finding.Evidence{Text: text, Refs: []finding.Ref{ref(main.Part, "exception", r.Seq)}}, true
	}
	return finding.Evidence{}, false
}

// cost in passes and batches.
func (o *outcome) cost(d *death) string {
	var parts []string
	if w := d.pass(); w != nil {
		switch {
		case w.Pass.Exhausted:
			parts = append(parts, fmt.Sprintf("pass %d delivered all its batches all the same", w.Pass.Number))
		default:
			parts = append(parts, fmt.Sprintf("pass %d ended after %s", w.Pass.Number, words.Count(w.Pass.Delivered, "batch")))
		}
	}
	main := d.life.Loader.Process.Final()
	switch e := main.Exit; {
	case !main.EndKnown():
	case e.Signal != 0:
		parts = append(parts, "its process ended by "+timeline.SignalName(e.Signal))
	case e.ExitCode != 0:
		parts = append(parts, fmt.Sprintf("its process ended with exit code %d", e.ExitCode))
	default:
		parts = append(parts, "its process went on and ended with exit code 0")
	}
	return strings.Join(parts, "; ")
}
