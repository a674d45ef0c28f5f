// Package account is what a recording has lost, what it has cost, with what it
// was made, and who took part in it.
package account

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is the account of a run.
var Source = &collect.Source[*Account]{
	Name:   "account",
	Tables: []string{"lost", "overhead", "memory", "meta"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Account] { return newLedger() },
}

// Account of one run.
type Account struct {
	Lost      []Loss
	Overhead  Overhead
	Tier      Tier
	Processes Processes
}

// ledger counts what was lost and what recording has cost.
type ledger struct {
	losses map[Loss]uint64 // by all but the count
	hook   map[procKey]spent
	own    map[*traces.Part]spent // the recorder, all of it
	probes map[probeKey]probeCost
	target map[procKey]int64      // sampled: misses what a process did after its last sample
	whole  map[*traces.Part]int64 // of the target and the descendants that it waited for, known when it has ended
	tiers  map[*traces.Part]Tier
}

type procKey struct {
	part *traces.Part
	proc uint32
}

type probeKey struct {
	part  *traces.Part
	probe string
}

// probeCost is what one probe has cost: CPU time of the recorder, and time in
// its eBPF programs, which the recorder's CPU time does not contain.
type probeCost struct {
	cpu     spent
	bpfNS   int64
	bpfRuns uint64
}

// spent is CPU time, and how much of it was spent once, to begin.
type spent struct{ ns, start int64 }

func (s spent) add(o spent) spent { return spent{s.ns + o.ns, s.start + o.start} }

// later is the larger of two counts of the same: what is spent only grows.
func (s spent) later(o spent) spent { return spent{max(s.ns, o.ns), max(s.start, o.start)} }

// without takes out a part that is counted elsewhere.
func (s spent) without(o spent) spent { return spent{max(s.ns-o.ns, 0), max(s.start-o.start, 0)} }

// Tier is with what a run was watched.
type Tier struct {
	Name    string // hook, kernel; of several parts "hook, kernel"; "" not told
	Refused string // why it is not kernel; "" it is, or was not tried
}

// Loss is records or rows that are not in the trace, or cannot be read.
type Loss struct {
	Source string // hook, hook-error, writer, kernel, trace
	Table  string // "" unknown
	Count  uint64 // 0: an unknown number
	Reason string
}

// Overhead is what recording has cost the program.
type Overhead struct {
	Percent float64 // of the program's CPU time; negative: not known
	Start   float64 // of these percent, what was spent once, to begin: the longer the run, the less it counts
	Method  string  // how it was measured
	Parts   []Cost  // which together are all of it
	Untimed uint64  // runs of eBPF programs that the kernel did not time
}

// Cost is one part of what recording has cost.
type Cost struct {
	Name    string // hook, recorder (without its probes), NAME (of a probe, in the recorder), NAME eBPF (of a probe, in the kernel)
	Tier    string // hook, kernel: without it this would not have been spent
	Kind    string // hook, recorder, eBPF
	NS      int64
	StartNS int64   // of them, what was spent once, to begin
	Percent float64 // of the program's CPU time; negative: not known
}

// The values of Cost.Kind.
const (
	CostHook     = "hook"
	CostRecorder = "recorder"
	CostBPF      = "eBPF"
)

func (c *Cost) add(s spent) { c.NS, c.StartNS = c.NS+s.ns, c.StartNS+s.start }

func newLedger() *ledger {
	return &ledger{losses: map[Loss]uint64{}, hook: map[procKey]spent{}, own: map[*traces.Part]spent{}, probes: map[probeKey]probeCost{},
		target: map[procKey]int64{}, whole: map[*traces.Part]int64{}, tiers: map[*traces.Part]Tier{}}
}

// Add takes the rows of one batch.
func (l *ledger) Add(b traces.Batch) {
	switch rows := b.Rows.(type) {
	case []traces.Lost:
		for _, r := range rows {
			l.losses[Loss{Source: r.Source, Table: r.Table, Reason: r.Reason}] += r.Count
		}
	case []traces.Overhead: // so far: the last row of a process counts
		for _, r := range rows {
			switch {
			case r.Proc != 0:
				k := procKey{b.Part, r.Proc}
				l.hook[k] = l.hook[k].later(spent{r.HookNS, r.StartNS})
			case r.Probe == "":
				l.own[b.Part] = l.own[b.Part].later(spent{r.CPUNS, r.StartNS})
			default:
				k := probeKey{b.Part, r.Probe}
				c := l.probes[k]
				l.probes[k] = probeCost{c.cpu.later(spent{r.CPUNS, r.StartNS}), max(c.bpfNS, r.BpfNS), max(c.bpfRuns, r.BpfRuns)}
			}
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
			t := l.tiers[b.Part]
			switch r.Key {
			case "target_cpu_ns":
				l.whole[b.Part], _ = strconv.ParseInt(r.Value, 10, 64) // 0 if it is no number: the samples decide
			case "tier":
				l.tiers[b.Part] = Tier{r.Value, t.Refused}
			case "tier_refused":
				l.tiers[b.Part] = Tier{t.Name, r.Value}
			}
		}
	}
}

// Merge takes over what was counted of other parts.
func (l *ledger) Merge(other collect.Collector[*Account]) {
	o := other.(*ledger)
	for loss, n := range o.losses {
		l.losses[loss] += n
	}
	maps.Copy(l.hook, o.hook)
	maps.Copy(l.own, o.own)
	maps.Copy(l.probes, o.probes)
	maps.Copy(l.target, o.target)
	maps.Copy(l.whole, o.whole)
	maps.Copy(l.tiers, o.tiers)
}

// Build adds it up.
func (l *ledger) Build(e *collect.Evidence) *Account {
	return &Account{
		Lost:      l.lost(e.Run.Problems),
		Overhead:  l.overhead(),
		Tier:      l.tier(),
		Processes: l.processes(collect.Of(e, timeline.Source)),
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
		return cmp.Or(
			cmp.Compare(a.Source, b.Source),
			cmp.Compare(a.Table, b.Table),
			cmp.Compare(a.Reason, b.Reason),
			cmp.Compare(a.Count, b.Count),
		)
	})
	return list
}

func (l *ledger) overhead() Overhead {
	sampled := map[*traces.Part]int64{}
	for k, ns := range l.target {
		sampled[k.part] += ns
	}
	var program int64
	o := Overhead{Percent: -1, Method: "the program's CPU time is not known"}
	for part := range union(sampled, l.whole) {
		program += max(sampled[part], l.whole[part])
		if !part.Sealed { // what the hook has used since is known: salvaged
			o.Method += " after the recording was cut"
			program = 0
			break
		}
	}
	o.Parts, o.Untimed = l.costs()
	var recording, start int64
	for i, c := range o.Parts {
		recording += c.NS
		start += c.StartNS
		o.Parts[i].Percent = percent(c.NS, program)
	}
	if program <= 0 {
		return o
	}
	o.Percent, o.Start = percent(recording, program), percent(start, program)
	more := ""
	if slices.ContainsFunc(o.Parts, func(c Cost) bool { return c.Kind == CostBPF }) {
		more = " + of eBPF programs, measured by the kernel"
	}
	o.Method = "(CPU time of the hook, measured inside of it, + of the recorder" + more + ") / CPU time of the program"
	return o
}

func percent(ns, of int64) float64 {
	if of <= 0 {
		return -1
	}
	return 100 * float64(ns) / float64(of)
}

// costs cuts what recording has cost into parts, nothing in two of them: a
// probe's CPU time is taken out of its recorder's.
func (l *ledger) costs() ([]Cost, uint64) {
	hook, rest := Cost{Name: CostHook, Tier: "hook", Kind: CostHook}, Cost{Name: CostRecorder, Tier: "hook", Kind: CostRecorder}
	for _, s := range l.hook {
		hook.add(s)
	}
	probes := map[string]probeCost{}
	inProbes := map[*traces.Part]spent{}
	for k, c := range l.probes {
		p := probes[k.probe]
		probes[k.probe] = probeCost{p.cpu.add(c.cpu), p.bpfNS + c.bpfNS, p.bpfRuns + c.bpfRuns}
		inProbes[k.part] = inProbes[k.part].add(c.cpu)
	}
	for part, s := range l.own {
		rest.add(s.without(inProbes[part]))
	}
	parts := []Cost{hook, rest}
	var untimed uint64
	for _, name := range slices.Sorted(maps.Keys(probes)) {
		c, tier := probes[name], "hook"
		if c.bpfNS > 0 || c.bpfRuns > 0 {
			tier = "kernel"
		}
		parts = append(parts, Cost{Name: name, Tier: tier, Kind: CostRecorder, NS: c.cpu.ns, StartNS: c.cpu.start})
		if c.bpfNS > 0 {
			parts = append(parts, Cost{Name: name + " eBPF", Tier: tier, Kind: CostBPF, NS: c.bpfNS})
		} else {
			untimed += c.bpfRuns
		}
	}
	return parts, untimed
}

// tier of all parts of the run.
func (l *ledger) tier() Tier {
	var names, refusals []string
	for _, t := range l.tiers {
		names, refusals = append(names, t.Name), append(refusals, t.Refused)
	}
	return Tier{joined(names), joined(refusals)}
}

// joined is the different words, sorted.
func joined(words []string) string {
	slices.Sort(words)
	return strings.Join(slices.DeleteFunc(slices.Compact(words), func(w string) bool { return w == "" }), ", ")
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
