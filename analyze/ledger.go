package analyze

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/dptrace/dptrace/traces"
)

// ledger counts what was lost and what recording has cost.
type ledger struct {
	losses map[Loss]uint64 // by all but the count
	hook   map[procKey]int64
	own    map[procKey]int64
	target map[procKey]int64      // sampled: misses what a process did after its last sample
	whole  map[*traces.Part]int64 // of the target and the descendants that it waited for, known when it has ended
}

var ledgerNeeds = []string{"lost", "overhead", "memory", "meta"}

type procKey struct {
	part *traces.Part
	proc uint32
}

// Loss is records or rows that are not in the trace, or cannot be read.
type Loss struct {
	Source string // hook, hook-error, writer, trace
	Table  string // "" unknown
	Count  uint64 // 0: an unknown number
	Reason string
}

// Overhead is what recording has cost the program.
type Overhead struct {
	Percent float64 // of the program's CPU time; negative: not known
	Method  string  // how it was measured
}

func newLedger() *ledger {
	return &ledger{losses: map[Loss]uint64{}, hook: map[procKey]int64{}, own: map[procKey]int64{}, target: map[procKey]int64{}, whole: map[*traces.Part]int64{}}
}

func (l *ledger) add(b traces.Batch) {
	switch rows := b.Rows.(type) {
	case []traces.Lost:
		for _, r := range rows {
			l.losses[Loss{Source: r.Source, Table: r.Table, Reason: r.Reason}] += r.Count
		}
	case []traces.Overhead: // so far: the last row of a process counts
		for _, r := range rows {
			k := procKey{b.Part, r.Proc}
			l.hook[k] = max(l.hook[k], r.HookNS)
			l.own[k] = max(l.own[k], r.CPUNS)
		}
	case []traces.Memory:
		for _, r := range rows {
			k := procKey{b.Part, r.Proc}
			if r.Proc != 0 {
				l.target[k] = max(l.target[k], r.CPUNS)
			}
		}
	case []traces.Meta:
		for _, r := range rows {
			if r.Key == "target_cpu_ns" {
				l.whole[b.Part], _ = strconv.ParseInt(r.Value, 10, 64) // 0 if it is no number: the samples decide
			}
		}
	}
}

func (l *ledger) lost(problems []traces.Problem) []Loss {
	var list []Loss
	for k, n := range l.losses {
		k.Count = n
		list = append(list, k)
	}
	for _, p := range problems {
		if p.LostRows != 0 {
			list = append(list, Loss{Source: "trace", Table: p.Table, Count: uint64(max(p.LostRows, 0)), Reason: string(p.Kind) + ": " + p.Text})
		}
	}
	slices.SortFunc(list, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Table, b.Table), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Count, b.Count))
	})
	return list
}

func (l *ledger) overhead() Overhead {
	sampled := map[*traces.Part]int64{}
	for k, ns := range l.target {
		sampled[k.part] += ns
	}
	var program, recording int64
	for part := range union(sampled, l.whole) {
		program += max(sampled[part], l.whole[part])
	}
	for _, costs := range []map[procKey]int64{l.hook, l.own} {
		for ns := range maps.Values(costs) {
			recording += ns
		}
	}
	if program <= 0 {
		return Overhead{-1, "the program's CPU time is not known"}
	}
	return Overhead{100 * float64(recording) / float64(program), "(CPU time of the hook, measured inside of it, + of the recorder) / CPU time of the program"}
}

// union is the keys of both.
func union(a, b map[*traces.Part]int64) map[*traces.Part]bool {
	keys := map[*traces.Part]bool{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}
