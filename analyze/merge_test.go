package analyze_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

// withoutFacts leaves out what rules have learned for their own excuses.
var withoutFacts = cmpopts.IgnoreFields(finding.Finding{}, "Facts")

// TestMerge: what is said does not depend on which accumulators took which
// parts, nor on the order and grouping in which they were merged.
func TestMerge(t *testing.T) {
	run := ranksOnHosts(t, 5)
	whole, err := analyze.Run(run, analyze.Rules)
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
		if diff := cmp.Diff(whole.Findings, f, withoutFacts); diff != "" {
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
	readings := make([]*collect.Reading, groups)
	for i := range readings {
		readings[i] = collect.NewReading(analyze.Sources(analyze.Rules)...)
	}
	group := map[*traces.Part]int{}
	for i, n := range order {
		group[run.Parts[n]] = i % groups
	}
	if err := run.Each(readings[0].Tables(), func(b traces.Batch) error {
		readings[group[b.Part]].Add(b)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for len(readings) > 1 {
		i := r.IntN(len(readings) - 1)
		j := i + 1 + r.IntN(len(readings)-i-1)
		if r.IntN(2) == 0 {
			readings[i], readings[j] = readings[j], readings[i]
		}
		readings[i].Merge(readings[j])
		readings = slices.Delete(readings, j, j+1)
	}
	result, err := analyze.Judge(readings[0].Evidence(run), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	return result.Findings, result.Checks
}
