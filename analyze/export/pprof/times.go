package pprof

import (
	"fmt"
	"time"

	"github.com/google/pprof/profile"

	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// times adds where the time of the loops went: of each pass what the workers did, and
// what the training process waited for.
func (b *builder) times(t *timeline.Timeline, loops *looptime.Loops) {
	if loops == nil {
		return
	}
	for _, ranks := range t.ByLoader() {
		l := loops.Of(ranks)
		if l == nil {
			continue
		}
		for _, r := range l.Ranks {
			for _, x := range r.Passes {
				b.pass(t, x)
			}
		}
	}
}

// pass adds the time of one pass: of its workers, then of its loop.
func (b *builder) pass(t *timeline.Timeline, x *looptime.Pass) {
	l := x.Loader
	fetch := frame{name: l.First().DatasetClass + " (fetch: dataset and transforms)"}
	collate := frame{name: l.First().Collate + " (collate)"}
	main := []frame{made(l), {name: command(t)}}
	for _, w := range x.Work() {
		if w.Number < 0 {
			continue // what it does is waited for, and counted there
		}
		stack := append([]frame{{name: fmt.Sprintf("worker %d", w.Number)}}, main...)
		b.fetched(x, w.Number, w.Fetch, append([]frame{fetch}, stack...))
		b.time(x, w.Number, w.Collate, append([]frame{collate}, stack...))
		b.time(x, w.Number, w.Idle, append([]frame{{name: "idle: waits for an index"}}, stack...))
	}
	loop := append([]frame{{name: "training loop"}}, main...)
	next := append([]frame{{name: "next(): waits for data"}}, loop...)
	stages := x.Waits()
	if len(stages) == 0 {
		b.time(x, -1, x.Waited, next)
	}
	for _, name := range looptime.Names() {
		waited := stages[name]
		b.time(x, -1, waited, append([]frame{{name: "waits: " + name}}, next...))
	}
	b.time(x, -1, x.Step(), append([]frame{{name: "step"}}, loop...))
	b.time(x, -1, x.Start.All, append([]frame{{name: "start of the pass, until its first batch"}}, loop...))
}

// fetched adds what a worker took for its fetches: of each transform that was timed
// what its share of the fetches that were looked at says, and what is left.
func (b *builder) fetched(x *looptime.Pass, worker int, took time.Duration, stack []frame) {
	left := took
	for _, t := range b.fetches.Of(x.Loader).Innermost() {
		share := min(time.Duration(t.Share()*float64(took)), left)
		b.time(x, worker, share, append([]frame{{name: fmt.Sprintf("%s (transform %d of %s)", t.Class, t.Index, t.Chain), file: t.File,
			line: int64(t.Line)}}, stack...))
		left -= share
	}
	b.time(x, worker, left, stack)
}

// time adds one sample; worker -1 is the training process.
func (b *builder) time(x *looptime.Pass, worker int, took time.Duration, stack []frame) {
	if took <= 0 {
		return
	}
	v := [values]int64{stageTime: int64(took)}
	s := &profile.Sample{Value: v[:], Label: map[string][]string{
		"loader": {fmt.Sprintf("loader %d", x.Loader.ID)}, "pass": {fmt.Sprintf("pass %d", x.Number)}, "proof": {"hook"}}}
	if rank := x.Loader.Rank(); rank >= 0 {
		s.Label["rank"] = []string{fmt.Sprintf("rank %d", rank)}
	}
	if worker >= 0 {
		s.Label["worker"] = []string{fmt.Sprintf("worker %d", worker)}
	}
	for _, f := range stack {
		s.Location = append(s.Location, b.location(f))
	}
	b.Sample = append(b.Sample, s)
}
