// Package staleworkerstate is the rule stale-worker-state: the training process sets an
// attribute of its dataset between two passes, and persistent workers keep the
// old value. docs/rules/stale-worker-state.md explains it.
package staleworkerstate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/attributes"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "stale-worker-state",
	Title:   "Persistent workers never see a value that the training sets",
	Sources: []collect.Any{attributes.Source, values.Source, batches.Requested},
	Excuses: excuses,
	Judge:   judge,
}

func judge(c *detect.Case) detect.Verdict {
	v := &compared{Case: c, held: detect.Of(c, attributes.Source)}
	for _, l := range c.Loaders {
		for i := range l.Objects {
			if o := &l.Objects[i]; attributes.Persistent(o) {
				v.compare(l, o)
			} else {
				v.fresh = true
				v.endless = v.endless || o.NumWorkers > 0 && len(l.Passes) == 1 && !l.Passes[0].Exhausted
			}
		}
	}
	var found []finding.Finding
	if len(v.stale) > 0 {
		slices.SortStableFunc(v.stale, func(a, b *stale) int { return int(b.sure - a.sure) })
		found = append(found, v.finding())
	}
	switch {
	case len(found) > 0 && found[0].Certainty > finding.Note:
		return detect.Found(v.stale[0].Path+" "+v.stale[0].stays()+" in the workers", found...)
	case v.passes == 0 && v.fresh && !v.endless:
		return detect.NotApplicable("no persistent workers: each pass begins with the values of the training process")
	case len(v.undecided) > 0:
		return detect.CannotTell(v.undecided[0]).Noting(found...)
	case v.passes == 0 && v.endless:
		return detect.CannotTell("one pass that never came to its end: what is set while it runs does not reach its workers, " +
			"and is not in the trace")
	case v.passes == 0:
		return detect.CannotTell("one pass")
	case len(found) > 0:
		return detect.Clean("no more than a note on " + v.stale[0].Path).Noting(found...)
	}
	return detect.Clean(fmt.Sprintf("%d passes, and nothing that the code reads of the dataset, its transforms, the collate function, "+
		"classes and globals changed in the training process alone", v.passes))
}

// compared is what the values of one loader's attributes say.
type compared struct {
	*detect.Case
	held *attributes.Attributes

	passes    int      // of the object with most, whose workers served two or more
	fresh     bool     // workers are started anew for each pass, or there are none
	endless   bool     // one pass that never came to its end: a loader that makes its epochs out of one
	stale     []*stale // the surest first
	undecided []string
}

// compare looks at one DataLoader object, whose workers live as long as it.
func (v *compared) compare(l *timeline.Loader, o *traces.Loader) {
	var passes []*timeline.Pass
	for _, p := range l.Passes {
		if p.Object == o.Loader && slices.ContainsFunc(p.Workers, func(w *timeline.WorkerPass) bool { return w.Windows > 0 }) {
			passes = append(passes, p)
		}
	}
	if len(passes) < 2 {
		return
	}
	v.passes = max(v.passes, len(passes))
	held := v.held.Of(l, o.Loader)
	v.leave(held, passes[0])
	for _, place := range held.Places {
		s := &stale{Place: place, loader: l, object: o, first: passes[0], all: len(passes), shared: held.Shared}
		if place.Read == "no" {
			continue
		}
		holds, lacks := s.inherited(len(held.Missed) == 0)
		switch {
		case holds == 0:
		case lacks > 0:
			v.undecided = append(v.undecided, fmt.Sprintf("%s: only %d of %d workers have it", s.Path, holds, holds+lacks))
		default:
			if s.serve(passes[1:]); len(s.passes) > 0 {
				v.stale = append(v.stale, s)
			}
		}
	}
}

// leave what could not be compared undecided.
func (v *compared) leave(held *attributes.Object, first *timeline.Pass) {
	for _, r := range held.Renewed {
		if r.Pass > first.Recorded && r.Read != "no" {
			v.undecided = append(v.undecided, fmt.Sprintf("%s (%s) was changed in the training process before pass %d: "+
				"whether the workers have it is not in the trace", r.Path, class(&r), r.Pass))
		}
	}
	for i := range held.Missed {
		v.undecided = append(v.undecided, missed(&held.Missed[i]))
	}
}

// missed says what was not compared, and why.
func missed(r *traces.Attribute) string {
	switch {
	case r.Value != "":
		return fmt.Sprintf("%s was not compared: %s", r.Path, r.Value)
	case r.Items > 0:
		return fmt.Sprintf("%s (%s, %s items) was compared in part only", r.Path, class(r), words.Number(r.Items))
	}
	return fmt.Sprintf("%s (%s) cannot be looked into", r.Path, class(r))
}

func class(r *traces.Attribute) string { return strings.TrimPrefix(r.Class, "builtins.") }

// stale is an attribute that changed in the training process and in no worker.
type stale struct {
	*attributes.Place
	loader  *timeline.Loader
	object  *traces.Loader
	first   *timeline.Pass   // that all of the workers began with
	passes  []*timeline.Pass // that were served with the old value
	parent  []traces.Attribute
	workers []attributes.Value // their rows of the first pass
	all     int                // passes that were compared
	unset   bool               // it did not exist as the workers were started
	shared  []traces.Attribute // what else they may learn it from
	same    []*pair            // samples that are the same again
	sure    finding.Certainty
}

// pair is a sample, and the same again.
type pair struct{ first, again *values.Sample }

// inherited counts the workers that hold the value as they inherited it, and
// those that do not have it. None hold it, if one changes it by itself or was
// given one of its own. all: nothing was left out in the workers.
func (s *stale) inherited(all bool) (holds, lacks int) {
	if len(s.Parent) == 0 {
		return 0, 0
	}
	if s.Parent[0].Pass > s.first.Recorded {
		s.unset = all && s.Read == "yes" && len(s.Workers) == 0
		if s.unset {
			return 1, 0
		}
		return 0, 0
	}
	if len(s.Parent) < 2 {
		return 0, 0
	}
	for _, w := range s.first.Workers {
		rows := s.Workers[w.Number]
		switch {
		case len(rows) == 0 && w.Windows > 0:
			lacks++
		case len(rows) == 0: // it served no sample
		case len(rows) > 1, !equal(&rows[0].Attribute, &s.Parent[0]), rows[0].In != s.first:
			return 0, 0
		default:
			s.workers = append(s.workers, rows[0])
		}
	}
	return len(s.workers), lacks
}

// serve finds the passes that ran with an old value in all workers.
func (s *stale) serve(passes []*timeline.Pass) {
	eval := true
	for _, p := range passes {
		var now *traces.Attribute
		for i := range s.Parent {
			if s.Parent[i].Pass <= p.Recorded {
				now = &s.Parent[i]
			}
		}
		// "": it is no value any more
		if now == nil || now.Class == "" || !s.unset && equal(now, &s.Parent[0]) || p.Abandoned || !s.served(p) {
			continue
		}
		s.passes = append(s.passes, p)
		s.parent = append(s.parent, *now)
		eval = eval && p.Role == timeline.Eval
	}
	s.sure = finding.Note
	if s.Read == "yes" && !eval {
		s.sure = finding.Proven
	}
}

// served reports whether a worker that held the old value served the pass.
func (s *stale) served(p *timeline.Pass) bool {
	return slices.ContainsFunc(p.Workers, func(w *timeline.WorkerPass) bool {
		return w.Windows > 0 && (s.unset || len(s.Workers[w.Number]) > 0)
	})
}

func equal(a, b *traces.Attribute) bool {
	return a.Value == b.Value && a.Class == b.Class && a.Items == b.Items && bytes.Equal(a.Ordered, b.Ordered)
}
