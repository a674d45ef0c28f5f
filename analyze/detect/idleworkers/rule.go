// Package idleworkers is the rule idle-workers: workers that deliver nothing in a whole
// pass, because there is no part of the data for them.
// docs/rules/idle-workers.md explains it.
package idleworkers

import (
	"fmt"
	"slices"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/attributes"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "idle-workers",
	Title:   "Some workers deliver nothing",
	Sources: []collect.Any{batches.Delivered, batches.Fetched, batches.First, attributes.HeldSource},
	Excuses: []detect.Excuse{{
		Text: "a worker that delivers nothing works for the others: it fills memory, a queue or files that they read.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool {
			s := f.Facts.(*shares)
			return !slices.ContainsFunc(s.idle, func(p pass) bool { return !s.useless(p) })
		},
	}},
	Judge: judge,
}

// busy is how many batches another worker must have delivered.
const busy = 2

func judge(c *detect.Case) detect.Verdict {
	s := &shares{Case: c, fetched: detect.Of(c, batches.Fetched)}
	for _, pass := range c.Passes() {
		if !pass.Abandoned {
			s.look(pass)
		}
	}
	switch {
	case len(s.idle) > 0 && len(s.idle) == s.judged && !s.blind: // it comes from how the data are dealt out
		return detect.Found(s.summary(), s.finding(finding.Proven))
	case s.workers == 0 && c.First().First().NumWorkers <= 0:
		return detect.NotApplicable("no workers")
	case s.workers == 0:
		return detect.CannotTell("no pass was used to its end")
	case s.judged == 0 && s.few > 0:
		return detect.CannotTell("fewer batches than workers, or one for each")
	case s.judged == 0 && s.open > 0:
		return detect.CannotTell("no pass was used to its end")
	case s.judged == 0:
		return detect.CannotTell("what the workers fetched is not in the trace")
	case s.blind:
		return detect.CannotTell("rows that would tell what these passes delivered are lost")
	case len(s.idle) > 0: // it comes from what there was to be dealt out
		return detect.Found("no more than a note: "+s.summary(), s.finding(finding.Note))
	}
	return detect.Clean(fmt.Sprintf("%s, each delivered samples in %s", words.Count(s.workers, "worker"), words.Count(s.judged, "pass")))
}

// shares of the workers in the passes of one loader.
type shares struct {
	*detect.Case
	fetched batches.ByWorker[batches.Fetches]

	judged  int    // passes in which every worker had its chance
	idle    []pass // those of them in which some had nothing to do
	blind   bool   // of some of these rows are lost
	few     int    // passes with fewer batches than workers
	open    int    // that were not used to their end
	workers int    // the most of any pass
}

// pass in which workers were idle.
type pass struct {
	*timeline.Pass
	idle []int // numbers of workers
	busy []*timeline.WorkerPass
}

// look at one pass that came to its end: then each worker has said that it has
// no more.
func (s *shares) look(p *timeline.Pass) {
	if len(p.Workers) == 0 || p.Workers[0].Number < 0 {
		return
	}
	s.workers = max(s.workers, len(p.Workers))
	if !p.Exhausted {
		s.open++
		return
	}
	one := pass{Pass: p}
	most, total := 0, 0
	for _, w := range p.Workers {
		if !w.Process.Hooked() || w.Process.EndedBadly() {
			return // what it did is not known
		}
		f := s.fetched.Of(w)
		if f.Samples == 0 {
			one.idle = append(one.idle, w.Number)
			continue
		}
		one.busy = append(one.busy, w)
		most, total = max(most, f.Batches), total+f.Batches
	}
	switch {
	case p.Delivered < len(p.Workers) || most < busy:
		s.few++
	case total != p.Delivered: // rows are missing
	default:
		s.judged++
		if len(one.idle) > 0 && p.Loader.Iterable() {
			s.idle = append(s.idle, one)
			s.blind = s.blind || p.Blind
		}
	}
}

func (s *shares) summary() string {
	first := s.idle[0]
	where := words.Of(len(s.idle), s.judged, "pass")
	if len(s.Loaders) > 1 {
		where += " of " + words.Count(len(s.Loaders), "rank")
	}
	return fmt.Sprintf("%d of %d workers in %s", len(first.idle), len(first.Workers), where)
}

// shown is how many passes are shown one by one.
const shown = 4

func (s *shares) finding(certainty finding.Certainty) finding.Finding {
	first := s.idle[0]
	verb := " delivers"
	if len(first.idle) > 1 {
		verb = " deliver"
	}
	f := finding.Finding{Certainty: certainty}
	f.Title = fmt.Sprintf("%s%s nothing: %s", words.Upper(words.Ints("worker", first.idle)), verb, s.summary())
	for i, p := range s.idle {
		if i == shown && len(s.idle) > shown+1 {
			f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("%d more passes like these.", len(s.idle)-i)})
			break
		}
		f.Evidence = append(f.Evidence, s.describe(p))
	}
	f.Cost = fmt.Sprintf("%s load for %d; the idle ones are started, and hold their copy of the dataset, for nothing",
		words.Count(len(first.busy), "worker"), len(first.Workers))
	f.Fix = s.fix()
	f.Facts = s
	if line, ok := s.spent(); ok {
		f.Evidence = append(f.Evidence, line)
	}
	return f
}

const (
	perSample = 2 * time.Microsecond // of CPU time: nothing is made for another worker in less
	lookAbout = 100 * time.Millisecond
)

// useless reports whether the idle workers of a pass cannot have worked for the
// others: they wrote less than a byte for each sample that these delivered, and
// there is no memory that they share, or no time that they filled it in.
func (s *shares) useless(p pass) bool {
	samples := 0
	for _, w := range p.busy {
		samples += s.fetched.Of(w).Samples
	}
	held, known := detect.Of(s.Case, attributes.HeldSource).Of(p.Loader, p.Object)
	for _, f := range s.firsts(p) {
		spent := time.Duration(f.CPU)
		switch {
		case spent == 0 || f.Written < 0 || f.Written >= int64(samples):
			return false
		case spent <= time.Duration(samples)*perSample:
		case !known || len(held) > 0 || spent > lookAbout:
			return false
		}
	}
	return true
}

// firsts is what the idle workers of a pass did.
func (s *shares) firsts(p pass) (all []*batches.FirstFetch) {
	first := detect.Of(s.Case, batches.First)
	for _, w := range p.Workers {
		if slices.Contains(p.idle, w.Number) {
			all = append(all, first.Of(w))
		}
	}
	return all
}

// spent says what the idle workers did instead.
func (s *shares) spent() (finding.Evidence, bool) {
	p := s.idle[0]
	var most batches.FirstFetch
	for _, f := range s.firsts(p) {
		if f.CPU == 0 || f.Written < 0 {
			return finding.Evidence{}, false
		}
		most.CPU, most.Written = max(most.CPU, f.CPU), max(most.Written, f.Written)
	}
	return finding.Evidence{Text: fmt.Sprintf("Until it said in pass %d that it has nothing, an idle worker took %.1f ms of CPU time and "+
		"wrote %s bytes.", p.Number, float64(most.CPU)/1e6, words.Number(most.Written))}, true
}

func (s *shares) describe(p pass) finding.Evidence {
	where := fmt.Sprintf("In pass %d", p.Number)
	if len(s.Loaders) > 1 {
		where += fmt.Sprintf(" of rank %d", p.Loader.Rank())
	}
	var counts []string
	for _, w := range p.busy {
		counts = append(counts, fmt.Sprintf("worker %d %d", w.Number, s.fetched.Of(w).Batches))
	}
	dropped := ""
	if s.First().First().DropLast {
		dropped = " that made a whole batch (drop_last=True)"
	}
	return finding.Evidence{
		Refs: []finding.Ref{{Part: p.Loader.Process.Part.Name, Table: "batch_next", Seq: detect.Of(s.Case, batches.Delivered).Of(p.Pass).Seq}},
		Text: fmt.Sprintf("%s, which came to its end after %s: batches of %s; %s none, and not one sample%s.",
			where, words.Count(p.Delivered, "batch"), words.List(counts), words.Ints("worker", p.idle), dropped),
	}
}

func (s *shares) fix() string {
	l := s.First()
	least := slices.MinFunc(s.idle, func(a, b pass) int { return len(a.busy) - len(b.busy) })
	return fmt.Sprintf(`# %s: no more workers than there are parts of the data
DataLoader(..., num_workers=%d)

# or deal out samples in place of files, in __iter__ of %s:
info = torch.utils.data.get_worker_info()
for sample in itertools.islice(samples, info.id, None, info.num_workers):  # samples: of all files, as one worker alone would yield them
    yield sample`, l.At(), len(least.busy), l.First().DatasetClass)
}
