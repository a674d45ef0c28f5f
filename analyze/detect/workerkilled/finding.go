package workerkilled

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// described is how many deaths are described one by one.
const described = 3

func (o *outcome) finding() finding.Finding {
	first := o.deaths[0]
	why := o.cause(first)
	f := finding.Finding{
		Certainty: finding.Proven,
		Title:     o.title(why),
		Cost:      o.cost(first),
		Fix:       o.fix(first, why),
		Proof:     proof(first),
		Facts:     slices.MinFunc(o.deaths, func(a, b *death) int { return cmp.Compare(len(a.doubts), len(b.doubts)) }).doubts,
	}
	for i, d := range o.deaths {
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
	if d.Worker.Number >= 0 {
		who = fmt.Sprintf("Worker %d", d.Worker.Number)
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

func proof(d *death) string {
	if p := d.Worker.Process; d.Exact || p != nil && (p.Oom != nil || p.Fatal() != nil || p.Fault() != nil) {
		return "kernel"
	}
	return "hook"
}

func who(d *death) string {
	name := "A worker"
	if d.Worker.Number >= 0 {
		name = fmt.Sprintf("Worker %d", d.Worker.Number)
	}
	facts := []string{fmt.Sprintf("pid %d", d.Worker.Pid)}
	if rank := d.Worker.Loader.Rank(); rank >= 0 {
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
	w, q := d.Worker, quit(d.Worker.Process)
	text := who(d) + " ended"
	if d.Known {
		text += " by " + status(d.Death)
	}
	if d.When() > 0 {
		text += fmt.Sprintf(" %.1f s after its parent was first seen", float64(d.When()-w.Loader.Process.Begin)/1e9)
	}
	switch {
	case w.Exit == nil && len(w.Named) == 0 && q != nil:
		text += ", in a fetch"
	case w.Exit != nil && w.Exit.Asked == "no":
		text += ", before its parent began to shut its workers down"
	case len(w.Named) > 0:
		text += ", which torch reported as an error: it had not shut its workers down"
	default:
		text += ", while its parent was still taking batches"
	}
	return finding.Evidence{Text: text + ".", Refs: d.refs(q)}
}

// refs are the rows that tell of the end.
func (d *death) refs(q *traces.Exception) (refs []finding.Ref) {
	w, part := d.Worker, d.Worker.Loader.Process.Part
	if p := w.Process; p != nil && p.EndKnown() {
		refs = append(refs, ref(p.Part, "exit", p.Exit.Seq))
	}
	if w.Exit != nil {
		refs = append(refs, ref(part, "worker", w.Exit.Seq))
	}
	if w.Exit == nil && !d.Known && q != nil {
		refs = append(refs, ref(part, "exception", q.Seq))
	}
	for _, c := range w.Named {
		refs = append(refs, ref(part, "exception", c.Seq))
	}
	return refs
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
	main := d.Worker.Loader.Process
	for i := range main.Raised {
		r := &main.Raised[i]
		if r.TsNS < d.When() || r.Worker >= 0 || r.Stage != "next" && r.Stage != "exit" {
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
	main := d.Worker.Loader.Process.Final()
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
