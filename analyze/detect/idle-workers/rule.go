// Package idle is the rule idle-workers: workers that deliver nothing in a whole
// pass, because there is no part of the data for them.
// docs/rules/idle-workers.md explains it.
package idle

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/deliveries"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	Title:   "Some workers deliver nothing",
	Sources: []collect.Any{deliveries.Source},
	Judge:   detect.Adapt(judge),
}

const id = "idle-workers"

// busy is how many batches another worker must have delivered.
const busy = 2

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	d := collect.Of(e, deliveries.Source)
	fetches := d.Fetches(t)
	for _, g := range deliveries.Groups(t) {
		v := &verdict{Timeline: t, group: g, d: d, fetches: fetches}
		for _, l := range g.Loaders {
			for _, pass := range l.Passes {
				if !pass.Abandoned {
					v.look(pass)
				}
			}
		}
		if v.certainty() > 0 {
			findings = append(findings, v.finding())
		}
		checks = append(checks, v.check())
	}
	return findings, checks
}

// share is a pass in which workers were idle.
type share struct {
	pass  *timeline.Pass
	idle  []int // numbers of workers
	busy  []*timeline.WorkerPass
	least int // batches of the one that delivered fewest, and any
	total int
}

// verdict on one loader.
type verdict struct {
	*timeline.Timeline
	group   *deliveries.Group
	d       *deliveries.Deliveries
	fetches map[*timeline.WorkerPass]*deliveries.Fetched

	judged  int     // passes in which every worker had its chance
	idle    []share // those of them in which some had nothing to do
	few     int     // passes with fewer batches than workers
	open    int     // that were not used to their end
	workers int     // the most of any pass
}

// look at one pass that came to its end: then each worker has said that it has
// no more.
func (v *verdict) look(pass *timeline.Pass) {
	if len(pass.Workers) == 0 || pass.Workers[0].Number < 0 {
		return
	}
	v.workers = max(v.workers, len(pass.Workers))
	if !pass.Exhausted {
		v.open++
		return
	}
	s := share{pass: pass}
	most := 0
	for _, w := range pass.Workers {
		f := v.fetches[w]
		switch {
		case !w.Process.Hooked() || w.Process.EndedBadly():
			return // what it did is not known
		case f == nil || f.Samples == 0:
			s.idle = append(s.idle, w.Number)
		default:
			s.busy = append(s.busy, w)
			s.total += f.Batches
			most = max(most, f.Batches)
			if s.least == 0 || f.Batches < s.least {
				s.least = f.Batches
			}
		}
	}
	switch {
	case pass.Delivered < len(pass.Workers) || most < busy:
		v.few++
	case s.total != pass.Delivered: // rows are missing
	case len(s.idle) > 0 && pass.Loader.Iterable():
		v.idle = append(v.idle, s)
		fallthrough
	default:
		v.judged++
	}
}

// certainty: what happens in each pass comes from how the data are dealt out;
// in some, from what there was to be dealt out.
func (v *verdict) certainty() finding.Certainty {
	switch {
	case len(v.idle) == 0 || slices.ContainsFunc(v.idle, func(s share) bool { return s.pass.Blind }):
		return 0
	case len(v.idle) == v.judged:
		return finding.Proven
	}
	return finding.Note
}

func (v *verdict) check() finding.Check {
	c := finding.Check{Rule: id, Loader: v.group.ID, Status: finding.CannotTell}
	gap := v.group.Gap(v.Timeline, deliveries.Tables)
	switch {
	case v.certainty() > finding.Note:
		c.Status, c.Reason = finding.Found, v.summary()
	case gap != "":
		c.Reason = gap
	case v.workers == 0 && v.group.Loaders[0].First().NumWorkers <= 0:
		c.Status, c.Reason = finding.Clean, "no workers"
	case v.workers == 0:
		c.Reason = "no pass was used to its end"
	case v.judged == 0 && v.few > 0:
		c.Reason = "fewer batches than workers, or one for each"
	case v.judged == 0 && v.open > 0:
		c.Reason = "no pass was used to its end"
	case v.judged == 0:
		c.Reason = "what the workers fetched is not in the trace"
	case len(v.idle) > 0:
		c.Status, c.Reason = finding.Clean, "no more than a note: "+v.summary()
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%s, each delivered samples in %s", words.Count(v.workers, "worker"), words.Count(v.judged, "pass"))
	}
	return c
}

func (v *verdict) summary() string {
	s := v.idle[0]
	where := words.Of(len(v.idle), v.judged, "pass")
	if len(v.group.Loaders) > 1 {
		where += " of " + words.Count(len(v.group.Loaders), "rank")
	}
	return fmt.Sprintf("%d of %d workers in %s", len(s.idle), len(s.pass.Workers), where)
}

func (v *verdict) finding() finding.Finding {
	f := v.group.Finding(v.Timeline, id, "")
	s := v.idle[0]
	f.Certainty = v.certainty()
	verb := " delivers"
	if len(s.idle) > 1 {
		verb = " deliver"
	}
	f.Title = fmt.Sprintf("%s%s nothing: %s", words.Upper(words.Ints("worker", s.idle)), verb, v.summary())
	f.Cost = fmt.Sprintf("%s load for %d; the idle ones are started, and hold their copy of the dataset, for nothing", words.Count(len(s.busy), "worker"), len(s.pass.Workers))
	for i, s := range v.idle {
		if i == shown && len(v.idle) > shown+1 {
			f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("%d more passes like these.", len(v.idle)-i)})
			break
		}
		f.Evidence = append(f.Evidence, v.describe(s))
	}
	f.Fix = v.fix(s)
	f.NotABugIf = "the other workers keep up with the training, and the idle ones are wanted for data that come later."
	return f
}

// shown is how many passes are shown one by one.
const shown = 4

func (v *verdict) describe(s share) finding.Evidence {
	where := fmt.Sprintf("In pass %d", s.pass.Number)
	if len(v.group.Loaders) > 1 {
		where += fmt.Sprintf(" of rank %d", s.pass.Loader.Rank())
	}
	var counts []string
	for _, w := range s.busy {
		counts = append(counts, fmt.Sprintf("worker %d %d", w.Number, v.fetches[w].Batches))
	}
	refs := []finding.Ref{{Part: s.pass.Loader.Process.Part.Name, Table: "batch_next", Seq: v.d.Of(s.pass).Last}}
	text := fmt.Sprintf("%s, which came to its end after %s: batches of %s; %s none, and not one sample", where, words.Count(s.pass.Delivered, "batch"), words.List(counts), words.Ints("worker", s.idle))
	if v.group.Loaders[0].First().DropLast {
		text += " that made a whole batch (drop_last=True)"
	}
	return finding.Evidence{Text: text + ".", Refs: refs}
}

func (v *verdict) fix(s share) string {
	l := v.group.Loaders[0]
	least := len(s.busy)
	for _, s := range v.idle {
		least = min(least, len(s.busy))
	}
	return fmt.Sprintf(`# %s: no more workers than there are parts of the data
DataLoader(..., num_workers=%d)

# or deal out samples in place of files, in __iter__ of %s:
info = torch.utils.data.get_worker_info()
for sample in itertools.islice(samples, info.id, None, info.num_workers):  # samples: of all files, as one worker alone would yield them
    yield sample`, l.At(), least, l.First().DatasetClass)
}
