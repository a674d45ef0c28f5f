package memorygrowthcache

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/growth"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

// listed is how many processes are listed one by one.
const listed = 8

// name of the container as the program would say it.
func (l *leak) name() string {
	switch {
	case l.line.Path == "":
		return "memory that is in no known container"
	case l.line.Function != "":
		return l.line.Path + " in " + strings.TrimPrefix(l.line.Function, "__main__.") + "()"
	}
	return l.line.Path
}

// holders is who holds it.
func (l *leak) holders() string {
	n := len(l.line.Series)
	switch {
	case l.line.InWorkers():
		return words.Count(n, "worker")
	case n == 1:
		return "the main process"
	}
	return fmt.Sprintf("the main processes of %d ranks", n)
}

func (j *judgement) finding(l leak) finding.Finding {
	return finding.Finding{
		Certainty: l.certainty,
		Title:     l.title(),
		Evidence:  append(l.evidence(), j.split(l)...),
		Cost:      l.cost(),
		Fix:       j.fix(l),
		Facts:     l,
	}
}

func (l *leak) title() string {
	grown := words.Bytes(l.bytes)
	switch l.kind {
	case capped:
		return fmt.Sprintf("%s fills up to its %s items in %s: %s so far, %s when it is full", l.name(), words.Number(l.line.Cap), l.holders(),
			grown, words.Bytes(l.full))
	case once:
		if l.finished() {
			return fmt.Sprintf("%s grows in %s until the pass is over: by %s, which goes with them", l.name(), l.holders(), grown)
		}
		if l.full > 0 {
			return fmt.Sprintf("%s grows with the samples in %s: by %s so far, by %s when each has been served", l.name(), l.holders(), grown,
				words.Bytes(l.full))
		}
		return fmt.Sprintf("%s grows with the samples in %s: by %s so far", l.name(), l.holders(), grown)
	}
	return fmt.Sprintf("%s keeps growing in %s: by %s so far, %s", l.name(), l.holders(), grown, l.pace())
}

// pace is bytes for 1,000 samples of all processes, or batches where batches have
// no size.
func (l *leak) pace() string {
	_, _, served := l.grown()
	size, what := int64(l.crew.Members[0].Loader.First().BatchSize), "samples"
	if size <= 0 {
		size, what = 1, "batches"
	}
	return fmt.Sprintf("%s per 1,000 %s", words.Bytes(int64(float64(l.bytes)/float64(max(served*size, 1))*1000)), what)
}

func (l *leak) evidence() []finding.Evidence {
	var each []string
	for i := range l.line.Series[:min(len(l.line.Series), listed)] {
		s := &l.line.Series[i]
		first, last := s.Points[0], s.Points[len(s.Points)-1]
		who := "it"
		switch {
		case s.Worker >= 0 && s.Process.Rank > 0:
			who = fmt.Sprintf("worker %d (process %d)", s.Worker, s.Process.Pid)
		case s.Worker >= 0:
			who = fmt.Sprintf("worker %d", s.Worker)
		case len(l.line.Series) > 1:
			who = fmt.Sprintf("rank %d", s.Process.Rank)
		}
		each = append(each, fmt.Sprintf("%s from %s to %s items in %s batches", who, words.Number(first.Items), words.Number(last.Items),
			words.Number(last.Served-first.Served)))
	}
	if more := len(l.line.Series) - listed; more > 0 {
		each = append(each, fmt.Sprintf("and %d more", more))
	}
	counted := finding.Evidence{Refs: l.line.Refs(), Text: fmt.Sprintf("%s (%s) grew: %s.", l.name(), l.line.Class, strings.Join(each, ", "))}
	list := []finding.Evidence{counted}
	if text := l.course(); text != "" {
		list = append(list, finding.Evidence{Text: text})
	}
	if l.line.Graph {
		list = append(list, finding.Evidence{Text: "Tensors in it have a grad_fn: each keeps all that it was computed from alive."})
	}
	return append(list, l.limits()...)
}

// course says how it went on.
func (l *leak) course() string {
	s := &l.line.Series[0]
	switch l.kind {
	case capped:
		return fmt.Sprintf("It ends at %s items.", words.Number(l.line.Cap))
	case once:
		if l.finished() {
			return "Workers that are started for each pass begin anew."
		}
		return "In one pass nobody can tell something kept for each sample from a leak: the former is full when each sample has been served."
	}
	rates := s.Rates()
	first, last := rates[0], rates[len(rates)-1]
	text := fmt.Sprintf("A batch added %.3g items in pass %d and %.3g in pass %d", first.PerBatch(), first.Pass, last.PerBatch(), last.Pass)
	if l.again >= 0 {
		text += fmt.Sprintf(", where %s of the samples had been asked of the same process before", words.Percent(l.again))
	}
	text += "."
	if l.line.Bound == "" {
		text += " No code that the dataset and its collate function reach removes items, and none that names it compares or measures anything."
	}
	return text
}

// limits is how much memory there is, and when it will be used up.
func (l *leak) limits() []finding.Evidence {
	if l.limit.Bytes == 0 {
		return nil
	}
	text := "The smallest limit for this is " + words.Memory(l.limit.Bytes, l.limit.Group())
	if l.limit.Usage >= 0 {
		text += fmt.Sprintf("; %s of it were in use", words.Bytes(l.limit.Usage))
	}
	text += "."
	pace := "At " + words.Bytes(int64(l.perSecond)) + " per second, as observed,"
	switch s := l.seconds(); {
	case l.kind == endless && s >= 0:
		text += fmt.Sprintf(" %s it is reached %s after the last look.", pace, words.Seconds(s))
	case l.full > l.bytes && l.free() >= 0 && l.full-l.bytes <= l.free():
		text += fmt.Sprintf(" What is still to come, %s, fits.", words.Bytes(l.full-l.bytes))
	case l.full > l.bytes && l.free() >= 0:
		text += fmt.Sprintf(" What is still to come, %s, does not fit.", words.Bytes(l.full-l.bytes))
		if s >= 0 {
			text += fmt.Sprintf(" %s the limit is reached %s after the last look.", pace, words.Seconds(s))
		}
	}
	return []finding.Evidence{{Text: text, Refs: []finding.Ref{l.limit.Ref}}}
}

// split is what the processes' memory grew by.
func (j *judgement) split(l leak) []finding.Evidence {
	var anon, file, shm, copied int64
	var refs []finding.Ref
	for i := range l.line.Series[:min(len(l.line.Series), listed)] {
		f := j.growth.Footprint(l.line.Series[i].Process)
		if !f.Known || f.Looks < leastLooks {
			return nil
		}
		anon, file, shm = anon+f.Anon, file+f.File, shm+f.Shm
		if look, ok := j.looks.Of(l.line.Series[i].Process); ok && look.Times > 1 {
			copied += max((look.Last.PrivateDirty-look.First.PrivateDirty)-(look.Last.Anonymous-look.First.Anonymous), 0)
		}
		refs = append(refs, f.Refs...)
	}
	return []finding.Evidence{{Refs: refs, Text: fmt.Sprintf("Between the first and the last look the memory of %s changed: %s new "+
		"anonymous, %s files, %s shared memory; %s that was shared before became its own.", l.holders(), signed(anon), signed(file), signed(shm),
		words.Bytes(copied))}}
}

func signed(n int64) string {
	if n < 0 {
		return "-" + words.Bytes(-n)
	}
	return words.Bytes(n)
}

func (l *leak) cost() string {
	cost := fmt.Sprintf("%s in %s", words.Bytes(l.bytes), l.holders())
	if l.limit.Bytes > 0 {
		cost += fmt.Sprintf(", %s of %s", words.Percent(l.limit.Share()), words.Memory(l.limit.Bytes, l.limit.Group()))
	}
	switch s := l.seconds(); {
	case l.kind != endless && l.full > l.bytes:
		cost += fmt.Sprintf("; forecast %s", words.Bytes(l.full))
	case l.kind == endless && s >= 0 && s < 100*soon:
		cost += fmt.Sprintf("; the limit is reached in %s", words.Seconds(s))
	}
	return cost
}

// unnamedFinding tells of new memory that no known container accounts for.
func (j *judgement) unnamedFinding(l leak) finding.Finding {
	var each []string
	var refs []finding.Ref
	for i := range l.line.Series[:min(len(l.line.Series), listed)] {
		f := j.growth.Footprint(l.line.Series[i].Process)
		each = append(each, words.Bytes(f.Anon))
		refs = append(refs, f.Refs...)
	}
	s := growth.Series{}
	if len(l.line.Series) > 0 {
		s = l.line.Series[0]
	}
	text := fmt.Sprintf("New anonymous memory of %s: %s. A batch added %s in pass %d and %s in pass %d.", l.holders(),
		strings.Join(each, ", "), words.Bytes(int64(s.Rates()[0].PerBatch())), s.Rates()[0].Pass,
		words.Bytes(int64(s.Rates()[len(s.Rates())-1].PerBatch())), s.Rates()[len(s.Rates())-1].Pass)
	return finding.Finding{
		Certainty: finding.Likely,
		Title: fmt.Sprintf("The memory of %s grows with the batches: by %s that is in no container dptrace can reach, %s", l.holders(),
			words.Bytes(l.bytes), l.pace()),
		Evidence: append([]finding.Evidence{{Text: text, Refs: refs}}, l.limits()...),
		Cost:     l.cost(),
		Fix: "Look for what keeps objects alive that the dataset's attributes do not lead to: a C extension (an image or video decoder that\n" +
			"is opened for each sample and never closed), a closure, a thread's variables, a reference cycle with a __del__.",
		Facts: l,
	}
}
