// Package stale is the rule stale-worker-state: the training process sets an
// attribute of its dataset between two passes, and persistent workers keep the
// old value. docs/rules/stale-worker-state.md explains it.
package stale

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/deliveries"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/values"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      id,
	Title:   "Persistent workers never see a value that the training sets",
	Sources: []collect.Any{values.Source},
	Judge:   detect.Adapt(judge),
}

const id = "stale-worker-state"

// tables whose gaps leave open whether a value changed: only changes are written.
var tables = []string{"process", "loader", "pass", "worker", "batch_fetch", "attribute"}

func judge(e *collect.Evidence, t *timeline.Timeline) (findings []finding.Finding, checks []finding.Check) {
	for _, g := range deliveries.Groups(t) {
		v := &verdict{Timeline: t, group: g, c: collect.Of(e, values.Source)}
		v.look()
		if len(v.stale) > 0 {
			findings = append(findings, v.finding())
		}
		checks = append(checks, v.check())
	}
	return findings, checks
}

// stale is an attribute that changed in the training process and in no worker.
type stale struct {
	*values.Scalar
	loader  *timeline.Loader
	object  *traces.Loader
	first   *timeline.Pass   // that all of the workers began with
	passes  []*timeline.Pass // that were served with the old value
	parent  []traces.Attribute
	workers []values.Value // their rows of the first pass
	all     int            // passes that were compared
	sure    finding.Certainty
}

// verdict on one loader.
type verdict struct {
	*timeline.Timeline
	group *deliveries.Group
	c     *values.Contents

	stale     []*stale // the surest first
	ranks     []int
	gap       string
	fresh     bool // workers are started anew for each pass, or there are none
	endless   bool // one pass that never came to its end: a loader that makes its epochs out of one
	unknown   bool // an older hook, which wrote no attributes
	compared  int  // passes
	undecided []string
}

func (v *verdict) look() {
	for _, l := range v.group.Loaders {
		for i := range l.Objects {
			o := &l.Objects[i]
			switch {
			case !o.Persistent || o.NumWorkers <= 0:
				v.fresh = true
				v.endless = v.endless || o.NumWorkers > 0 && len(l.Passes) == 1 && !l.Passes[0].Exhausted
				if v.gap == "" {
					v.gap = v.Losses(l, tables)
				}
			case !values.Recorded(o):
				v.unknown = true
			case v.Gap(l, tables) != "":
				v.gap = v.Gap(l, tables)
			default:
				v.object(l, o)
			}
		}
	}
	slices.SortStableFunc(v.stale, func(a, b *stale) int { return int(b.sure - a.sure) })
}

// object looks at one DataLoader object, whose workers live as long as it.
func (v *verdict) object(l *timeline.Loader, o *traces.Loader) {
	var passes []*timeline.Pass
	for _, p := range l.Passes {
		if p.Object == o.Loader && slices.ContainsFunc(p.Workers, func(w *timeline.WorkerPass) bool { return w.Windows > 0 }) {
			passes = append(passes, p)
		}
	}
	if len(passes) < 2 {
		return
	}
	v.compared = max(v.compared, len(passes))
	for _, r := range v.c.Renewed(l, o.Loader) {
		if r.Pass > passes[0].Recorded && r.Read != "no" {
			v.undecided = append(v.undecided, fmt.Sprintf("%s (%s) was changed in the training process before pass %d: whether the workers have it is not in the trace", r.Path, strings.TrimPrefix(r.Class, "builtins."), r.Pass))
		}
	}
	scalars, full := v.c.Scalars(v.Timeline, l, o.Loader)
	if full {
		v.undecided = append(v.undecided, "more values changed than are kept")
		return
	}
	for _, s := range scalars {
		one := &stale{Scalar: s, loader: l, object: o, first: passes[0], all: len(passes)}
		if !one.kept(v, passes) {
			continue
		}
		one.compare(passes[1:])
		if len(one.passes) > 0 {
			v.stale = append(v.stale, one)
			v.ranks = append(v.ranks, l.Rank())
		}
	}
}

// kept reports whether the workers hold the value as they inherited it, and none
// has changed it.
func (s *stale) kept(v *verdict, passes []*timeline.Pass) bool {
	if len(s.Parent) < 2 || s.Parent[0].Pass > passes[0].Recorded {
		return false
	}
	holds, lacks := 0, 0
	for _, w := range passes[0].Workers {
		rows := s.Workers[w.Number]
		switch {
		case len(rows) == 0 && w.Windows > 0:
			lacks++
			continue
		case len(rows) == 0: // it served no sample
			continue
		case len(rows) > 1, !equal(&rows[0].Attribute, &s.Parent[0]): // it changes the value by itself, or was given one of its own
			return false
		case rows[0].In != passes[0]:
			return false
		}
		holds++
		s.workers = append(s.workers, rows[0])
	}
	if holds > 0 && lacks > 0 {
		v.undecided = append(v.undecided, fmt.Sprintf("%s: only %d of %d workers have it", s.Path, holds, holds+lacks))
	}
	return holds > 0 && lacks == 0
}

// compare finds the passes that ran with an old value in all workers.
func (s *stale) compare(passes []*timeline.Pass) {
	train := false
	for _, p := range passes {
		now := s.Parent[0]
		for _, r := range s.Parent {
			if r.Pass <= p.Recorded {
				now = r
			}
		}
		if now.Class == "" || equal(&now, &s.Parent[0]) || p.Abandoned || !s.served(p) { // "": it is no plain value any more
			continue
		}
		s.passes = append(s.passes, p)
		s.parent = append(s.parent, now)
		train = train || p.Role != timeline.Eval
	}
	s.sure = finding.Note
	if s.Read == "yes" && train {
		s.sure = finding.Proven
	}
}

// served reports whether a worker that held the old value served the pass.
func (s *stale) served(p *timeline.Pass) bool {
	return slices.ContainsFunc(p.Workers, func(w *timeline.WorkerPass) bool { return w.Windows > 0 && len(s.Workers[w.Number]) > 0 })
}

func equal(a, b *traces.Attribute) bool { return a.Value == b.Value && a.Class == b.Class }

func (v *verdict) check() finding.Check {
	c := finding.Check{Rule: id, Loader: v.group.ID, Status: finding.CannotTell}
	switch {
	case len(v.stale) > 0 && v.stale[0].sure > finding.Note:
		c.Status, c.Reason = finding.Found, fmt.Sprintf("%s stays %s in the workers", v.stale[0].Path, v.stale[0].Parent[0].Value)
	case v.gap != "":
		c.Reason = v.gap
	case v.unknown:
		c.Reason = "the values of attributes are not in the trace"
	case len(v.undecided) > 0:
		c.Reason = v.undecided[0]
	case v.compared == 0 && v.endless:
		c.Reason = "one pass that never came to its end: what is set while it runs does not reach its workers, and is not in the trace"
	case v.compared == 0 && v.fresh:
		c.Status, c.Reason = finding.Clean, "no persistent workers: each pass begins with the values of the training process"
	case v.compared == 0:
		c.Reason = "one pass"
	case len(v.stale) > 0:
		c.Status, c.Reason = finding.Clean, "no more than a note on "+v.stale[0].Path
	default:
		c.Status, c.Reason = finding.Clean, fmt.Sprintf("%d passes, and nothing that was compared of the dataset, its transforms or the collate function changed in the training process alone", v.compared)
	}
	return c
}
