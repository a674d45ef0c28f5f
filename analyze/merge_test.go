package analyze_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// TestMerge: what is said does not depend on which accumulators took which
// parts, nor on the order and grouping in which they were merged.
func TestMerge(t *testing.T) {
	run := ranksOnHosts(t, 5)
	whole, err := analyze.Run(run)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Findings) < 2 {
		t.Fatalf("%d findings: this run has more than one bug", len(whole.Findings))
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		order := r.Perm(len(run.Parts))
		f, c := merged(t, run, order, 1+r.IntN(len(order)), r)
		if diff := cmp.Diff(whole.Findings, f); diff != "" {
			t.Fatalf("order %v: findings (-whole +merged):\n%s", order, diff)
		}
		if diff := cmp.Diff(whole.Checks, c); diff != "" {
			t.Fatalf("order %v: checks (-whole +merged):\n%s", order, diff)
		}
	}
}

// ranksOnHosts plays ranks with one part each: equal generators on all of them,
// and workers that are alike on some.
func ranksOnHosts(t *testing.T, ranks int) *traces.Run {
	first := NewRun(t)
	for rank := range ranks {
		r := first
		if rank > 0 {
			r = first.Part(t, fmt.Sprintf("host-%d", rank+1))
		}
		p := r.Process(rank, ranks)
		p.Group("fsdp", 0, 1, 2, 3, 4)
		o := p.Open(Loader{Workers: 2, Slots: []Slot{datasetRNG, torchRNG, randomRNG}, Fetch: draw(70), Start: func(pass, worker int) []*Gen {
			return []*Gen{PCG(uint64(rank / 2)), MT(uint32(apart(pass, worker))), Python(uint64(1000*rank + 10*pass + worker))}
		}})
		o.Pass(Train)
		o.Pass(Train)
		r.Seal()
	}
	return first.Open(t)
}

// merged analyses with accumulators for groups of parts, merged in a random
// tree.
func merged(t *testing.T, run *traces.Run, order []int, groups int, r *rand.Rand) (findings []finding.Finding, checks []finding.Check) {
	builders := make([]*timeline.Builder, groups)
	facts := make([]map[*detect.Facts]detect.Accumulator, groups)
	for i := range builders {
		builders[i], facts[i] = timeline.NewBuilder(), map[*detect.Facts]detect.Accumulator{}
		for _, rule := range analyze.Rules {
			if facts[i][rule.Facts] == nil {
				facts[i][rule.Facts] = rule.Facts.New()
			}
		}
	}
	group := map[*traces.Part]int{}
	for i, n := range order {
		group[run.Parts[n]] = i % groups
	}
	if err := run.Each(nil, func(b traces.Batch) error {
		g := group[b.Part]
		builders[g].Add(b)
		for _, a := range facts[g] {
			a.Add(b)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for len(builders) > 1 {
		i := r.IntN(len(builders) - 1)
		j := i + 1 + r.IntN(len(builders)-i-1)
		if r.IntN(2) == 0 {
			builders[i], builders[j] = builders[j], builders[i]
			facts[i], facts[j] = facts[j], facts[i]
		}
		builders[i].Merge(builders[j])
		for k := range facts[i] {
			facts[i][k].Merge(facts[j][k])
		}
		builders, facts = slices.Delete(builders, j, j+1), slices.Delete(facts, j, j+1)
	}
	tl := builders[0].Build(run.Problems)
	for _, rule := range analyze.Rules {
		f, c := rule.Judge(facts[0][rule.Facts], tl)
		findings, checks = append(findings, f...), append(checks, c...)
	}
	slices.SortStableFunc(findings, func(a, b finding.Finding) int { return int(b.Certainty - a.Certainty) })
	return findings, checks
}
