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
	old := s.Parent[0].Value
	title := fmt.Sprintf("%s is set to %s, but the persistent workers keep %s", s.Path, s.values(), old)
	made, reads := "served by workers", finding.Evidence{Text: "It was not seen that the code that fetches samples reads it."}
	if s.Read == "yes" {
		title += fmt.Sprintf(": %d of %d passes get samples made with the old value", len(s.passes), s.all)
		made, reads.Text = "made", fmt.Sprintf("The code that fetches samples names %s%s.", last(s.Path), at(s.loader, &s.Parent[0]))
	}
	batches := 0
	for _, p := range s.passes {
		batches += p.Delivered
	}
	return finding.Finding{
		Certainty: s.sure,
		Title:     title,
		Evidence:  slices.Concat([]finding.Evidence{s.evidence()}, v.others(), v.same(s), []finding.Evidence{reads}),
		Cost:      fmt.Sprintf("%s in %s %s with %s = %s", words.Count(batches, "batch"), words.Count(len(s.passes), "pass"), made, s.Path, old),
		Fix:       s.fix(),
		NotABugIf: s.Path + " means nothing to the samples that the workers make.",
	}
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

func (s *stale) evidence() finding.Evidence {
	part := s.loader.Process.Part.Name
	var refs []finding.Ref
	var numbers, passes []int
	ref := func(r *traces.Attribute) {
		if len(refs) < shown {
			refs = append(refs, finding.Ref{Part: part, Table: "attribute", Seq: r.Seq})
		}
	}
	ref(&s.Parent[0])
	for i := range s.parent {
		passes = append(passes, s.passes[i].Number)
		if i == 0 || s.parent[i].Seq != s.parent[i-1].Seq {
			ref(&s.parent[i])
		}
	}
	for i := range s.workers {
		numbers = append(numbers, int(s.workers[i].Worker))
		ref(&s.workers[i].Attribute)
	}
	return finding.Evidence{Refs: refs, Text: fmt.Sprintf("As pass %d began, %s was %s in the training process and in %s. "+
		"As %s began, it was %s in the training process; no worker had another value than before.",
		s.first.Number, s.Path, s.Parent[0].Value, words.Ints("worker", numbers), words.Ints("pass", passes), s.values())}
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

// same tells what came of it: samples that did not change with the value.
func (v *compared) same(s *stale) []finding.Evidence {
	contents := detect.Of(v.Case, values.Source)
	lists := [][]values.Sample{contents.Samples(s.first)}
	for _, p := range s.passes {
		lists = append(lists, contents.Samples(p))
	}
	same, other := values.CompareByIndex(lists...)
	if len(same) == 0 || len(other) > 0 {
		return nil
	}
	part := s.loader.Process.Part.Name
	var refs []finding.Ref
	for _, t := range same[:min(len(same), shown/2)] {
		for _, sample := range []*values.Sample{t.First, t.Again} {
			refs = append(refs, finding.Ref{Part: part, Table: "digest", Seq: sample.Seq})
		}
	}
	return []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("%s that came in pass %d and in a later one, under the same index, "+
		"were the same bit for bit; none had changed.", words.Upper(words.Count(len(same), "sample")), s.first.Number)}}
}

// last is the name of an attribute without what it hangs on.
func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func at(l *timeline.Loader, r *traces.Attribute) string {
	if r.File == "" {
		return ""
	}
	return ", which is set at " + timeline.Place(l.Process.Cwd, r.File, r.Line)
}
