package staleworkerstate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// shown is how many rows or attributes a finding names at most.
const shown = 8

func (v *compared) finding() finding.Finding {
	s := v.stale[0]
	v.compareSamples(s)
	title := fmt.Sprintf("%s is %s, but the persistent workers %s", s.Path, s.set(), s.keep())
	made, reads := "served by workers", finding.Evidence{Text: "It was not seen that the code that fetches samples reads it."}
	if s.Read == "yes" {
		title += fmt.Sprintf(": %d of %d passes get samples made with the old value", len(s.passes), s.all)
		made = "made"
		reads.Text = fmt.Sprintf("The code that fetches samples reads %s of this very object%s.", last(s.Path), at(s.loader, &s.Parent[0]))
		if !strings.HasPrefix(s.Path, "dataset.") && !strings.HasPrefix(s.Path, "collate_fn") {
			reads.Text = fmt.Sprintf("The code that fetches samples reads %s%s.", s.Path, at(s.loader, &s.Parent[0]))
		}
	}
	delivered := 0
	for _, p := range s.passes {
		delivered += p.Delivered
	}
	return finding.Finding{
		Certainty: s.sure,
		Title:     title,
		Evidence:  slices.Concat([]finding.Evidence{s.evidence()}, v.others(), s.repeats(), []finding.Evidence{reads}),
		Cost: fmt.Sprintf("%s in %s %s with %s %s", words.Count(delivered, "batch"), words.Count(len(s.passes), "pass"), made,
			s.Path, s.was()),
		Fix:   s.fix(),
		Facts: s,
	}
}

// plain reports whether all that it was is told by its value, not by a digest.
func (s *stale) plain() bool {
	return !slices.ContainsFunc(s.Parent, func(r traces.Attribute) bool { return r.Class != "" && r.Value == "" })
}

// set says what the training process does.
func (s *stale) set() string {
	if s.plain() {
		return "set to " + s.values()
	}
	return fmt.Sprintf("changed before %s (%s)", words.Ints("pass", s.numbers()), shape(&s.parent[len(s.parent)-1]))
}

// keep says what the workers have.
func (s *stale) keep() string {
	switch {
	case s.unset:
		return "do not have it"
	case s.plain():
		return "keep " + s.Parent[0].Value
	}
	return "keep what it was"
}

// stays, for a check; was, for what samples were made with.
func (s *stale) stays() string {
	switch {
	case s.unset:
		return "is missing"
	case s.plain():
		return "stays " + s.Parent[0].Value
	}
	return "stays what it was"
}

func (s *stale) was() string {
	switch {
	case s.unset:
		return "not set"
	case s.plain():
		return "= " + s.Parent[0].Value
	}
	return fmt.Sprintf("as of pass %d", s.first.Number)
}

// shape of what an attribute holds.
func shape(r *traces.Attribute) string {
	if r.Items > 0 {
		return fmt.Sprintf("%s of %s", class(r), words.Count(int(r.Items), "item"))
	}
	return strings.TrimSpace(class(r) + " " + r.Value)
}

// values that were set, in their order.
func (s *stale) values() string {
	var values []string
	for _, r := range s.parent {
		if len(values) == 0 || values[len(values)-1] != r.Value {
			values = append(values, r.Value)
		}
	}
	return words.List(values)
}

// numbers of the passes that were served with the old value.
func (s *stale) numbers() (passes []int) {
	for _, p := range s.passes {
		passes = append(passes, p.Number)
	}
	return passes
}

func (s *stale) evidence() finding.Evidence {
	part := s.loader.Process.Part.Name
	var refs []finding.Ref
	var workers []int
	ref := func(r *traces.Attribute) {
		if len(refs) < shown {
			refs = append(refs, finding.Ref{Part: part, Table: "attribute", Seq: r.Seq})
		}
	}
	ref(&s.Parent[0])
	for i := range s.parent {
		if i == 0 || s.parent[i].Seq != s.parent[i-1].Seq {
			ref(&s.parent[i])
		}
	}
	for i := range s.workers {
		workers = append(workers, int(s.workers[i].Worker))
		ref(&s.workers[i].Attribute)
	}
	passes := words.Ints("pass", s.numbers())
	before := shape(&s.Parent[0])
	if s.plain() {
		before = s.Parent[0].Value
	}
	text := fmt.Sprintf("As pass %d began, %s was %s in the training process and in %s. ", s.first.Number, s.Path, before,
		words.Ints("worker", workers))
	switch {
	case s.unset:
		text = fmt.Sprintf("As pass %d began, there was no %s. As %s began, it was %s in the training process; no worker had it.",
			s.first.Number, s.Path, passes, s.values())
	case s.plain():
		text += fmt.Sprintf("As %s began, it was %s in the training process; no worker had another value than before.", passes, s.values())
	default:
		text += fmt.Sprintf("As %s began, it held something else in the training process, by its digest; in no worker did it change.", passes)
	}
	return finding.Evidence{Refs: refs, Text: text}
}

// others are further attributes that are stale.
func (v *compared) others() (list []finding.Evidence) {
	said := map[string]bool{v.stale[0].Path: true}
	for _, s := range v.stale[1:] {
		if !said[s.Path] && len(list) < shown && s.sure == v.stale[0].sure {
			said[s.Path] = true
			list = append(list, s.evidence())
		}
	}
	return list
}

// compareSamples looks for what came of it: samples that did not change with the
// value.
func (v *compared) compareSamples(s *stale) {
	contents := detect.Of(v.Case, values.Source)
	lists := [][]values.Sample{contents.Samples(s.first)}
	for _, p := range s.passes {
		lists = append(lists, contents.Samples(p))
	}
	if same, other := values.CompareByIndex(lists...); len(other) == 0 {
		for _, t := range same {
			s.same = append(s.same, &pair{t.First, t.Again})
		}
	}
}

// repeats tells of samples that are the same again.
func (s *stale) repeats() []finding.Evidence {
	if len(s.same) == 0 {
		return nil
	}
	part := s.loader.Process.Part.Name
	var refs []finding.Ref
	for _, t := range s.same[:min(len(s.same), shown/2)] {
		for _, sample := range []*values.Sample{t.first, t.again} {
			refs = append(refs, finding.Ref{Part: part, Table: "digest", Seq: sample.Seq})
		}
	}
	return []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("%s that came in pass %d and in a later one, under the same index, "+
		"were the same bit for bit; none had changed.", words.Upper(words.Count(len(s.same), "sample")), s.first.Number)}}
}

// last is the name of an attribute without what it hangs on.
func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func at(l *timeline.Loader, r *traces.Attribute) string {
	if r.File == "" {
		return ""
	}
	return ", which is set at " + timeline.Place(l.Process.Cwd, r.File, r.Line)
}
