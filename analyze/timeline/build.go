package timeline

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/traces"
)

// Build makes the model.
func (b *Builder) Build(e *collect.Evidence) *Timeline { return b.build(e.Run.Problems) }

// build makes it; problems are those of the run, known once all tables were
// read.
func (b *Builder) build(problems []traces.Problem) *Timeline {
	t := &Timeline{
		ExitCode:  -1,
		processes: map[*traces.Part]map[uint32]*Process{},
		problems:  problems,
		lost:      map[*traces.Part][]traces.Lost{},
		limits:    map[*traces.Part]map[limitKey]*limitRows{},
		codes:     map[*traces.Part]int{},
		tiers:     map[*traces.Part]string{},
		workers:   map[workerKey]*WorkerPass{},
	}
	parts := slices.SortedFunc(maps.Keys(b.parts), func(a, b *traces.Part) int {
		return cmp.Or(cmp.Compare(a.Trace, b.Trace), cmp.Compare(a.Name, b.Name))
	})
	for _, part := range parts {
		rows := b.parts[part]
		t.lost[part] = rows.lost
		t.limits[part] = rows.limit
		t.meta(part, rows)
		var here []*Process
		byProc := map[uint32]*Process{}
		for _, n := range slices.Sorted(maps.Keys(rows.procs)) {
			if n == 0 {
				continue // the recorder
			}
			p := rows.procs[n].build(part, n)
			here = append(here, p)
			byProc[n] = p
		}
		for _, n := range slices.Sorted(maps.Keys(rows.procs)) {
			if n != 0 {
				t.loaders(rows.procs[n], byProc[n])
			}
		}
		joinTree(here)
		joinTold(here)
		t.joinWorkers(rows, here)
		t.Processes = append(t.Processes, here...)
		t.processes[part] = byProc
	}
	t.joinPeers()
	t.number()
	return t
}

func (t *Timeline) meta(part *traces.Part, rows *partRows) {
	t.codes[part] = -1
	t.tiers[part] = rows.meta["tier"]
	if code, err := strconv.Atoi(rows.meta["exit_code"]); err == nil {
		t.codes[part] = code
	}
	if t.Command == nil {
		var command []string
		if json.Unmarshal([]byte(rows.meta["command"]), &command) == nil {
			t.Command = command
		}
	}
	if code, err := strconv.Atoi(rows.meta["exit_code"]); err == nil && (t.ExitCode < 0 || t.ExitCode == 0) {
		t.ExitCode = code
	}
	if t.Begin == 0 {
		t.Begin, t.End = rows.begin, rows.end
	}
}

func (pr *procRows) build(part *traces.Part, n uint32) *Process {
	p := &Process{Part: part, Process: pr.process, Exit: pr.exit, Begin: pr.begin, End: pr.end, LostRecords: pr.lost,
		Signals: pr.signals.all(), Oom: pr.oom, Memory: pr.memory, Raised: pr.raised.all(), Steps: pr.steps, Optimizers: pr.optims}
	p.Proc = n
	p.Groups, p.Acts = pr.dist, pr.acts.all()
	for _, ps := range pr.passes {
		if ps.next.between > 0 || ps.next.own > 0 {
			p.Stepped = true
		}
	}
	if pr.steps > 0 {
		p.Stepped = true
	}
	return p
}

// loaders makes the loaders and passes of one process.
func (t *Timeline) loaders(pr *procRows, p *Process) {
	for _, o := range madeIn(pr, p) {
		l := p.loader(o)
		l.Lost = l.Lost || o.lost
		for _, ps := range o.passes {
			l.Passes = append(l.Passes, ps.build(l, len(l.Passes)))
		}
	}
	if pr.loop.watched() {
		for _, l := range p.Loaders {
			l.settleRoles()
		}
	} else {
		assignRoles(p)
	}
	blind := !p.Part.Sealed || t.Incomplete(p, "batch_next", "batch_put")
	for _, l := range p.Loaders {
		markAbandoned(l)
		for _, pass := range l.Passes {
			pass.Blind = blind
		}
	}
}

func (ps *passRows) build(l *Loader, number int) *Pass {
	p := &Pass{Loader: l, Number: number, Object: ps.key.loader, Recorded: ps.key.pass, Began: ps.begin, Ended: ps.end,
		Delivered: ps.next.delivered,
		Exhausted: ps.next.stopped, Begin: ps.next.begin, End: ps.next.end, Optimizers: ps.next.optimizers, stats: &ps.next}
	if ps.begin != nil {
		p.BaseSeed, p.Seeded = ps.begin.BaseSeed, true
		p.Begin = ps.begin.TsNS
		p.End = max(p.End, ps.begin.TsNS)
	}
	if ps.end != nil {
		p.Exhausted = p.Exhausted || ps.end.End == "exhausted"
		p.Delivered = max(p.Delivered, int(ps.end.Delivered))
		p.End = max(p.End, ps.end.TsNS)
		p.How = ps.end.End
		if p.How == "error" && (ps.next.stopped || ps.next.delivered > int(ps.end.Delivered)) {
			p.WentOn = true // the hook writes the end at the first error
			switch {
			case ps.next.stopped:
				p.How = "exhausted"
			case !ps.next.failed:
				p.How = "dropped"
			}
		}
	}
	if n := samplers.Batches(l.object(p.Object)); n > 0 && p.Delivered == n {
		p.Exhausted = true
	}
	p.Open = ps.next.open
	if ps.watched {
		p.uses, p.Optimizers, p.Role = &ps.uses, nil, ps.uses.role()
		if p.Role == Train {
			p.Optimizers = ps.uses.optimizers
		}
	}
	return p
}

// settleRoles of the passes of a loader that say it of themselves, and its own.
func (l *Loader) settleRoles() {
	l.Role = Unknown
	for _, pass := range l.Passes {
		if pass.Role == Train || l.Role == Unknown {
			l.Role = pass.Role
		}
	}
	for _, pass := range l.Passes {
		if l.Role == Eval && (pass.uses.doubtful || pass.uses.n == 0) { // the loader has evaluations, and no training
			pass.Role = Eval
		}
	}
}

// assignRoles of the passes and loaders of one process that was not watched.
func assignRoles(p *Process) {
	most := 0
	for _, l := range p.Loaders {
		for _, pass := range l.Passes {
			if pass.stats.own > 0 {
				most = max(most, pass.Delivered)
			}
		}
	}
	trained := func(other *Loader) bool {
		for _, l := range p.Loaders {
			for _, pass := range l.Passes {
				if l != other && pass.stats.between > 0 && pass.stats.own > 0 {
					return true
				}
			}
		}
		return false
	}
	for _, l := range p.Loaders {
		others := trained(l)
		l.Role = Unknown
		for _, pass := range l.Passes {
			pass.Role = pass.stats.role(others, most)
			if pass.Role == Train || l.Role == Unknown {
				l.Role = pass.Role
			}
		}
	}
}

// markAbandoned marks the passes that were broken off early: sanity checks,
// warm-ups, a look at one batch. Passes that are all cut at the same number of
// batches are the program's way of counting epochs, and stay: half of the
// longest pass is enough.
func markAbandoned(l *Loader) {
	longest := 0
	for _, p := range l.Passes {
		longest = max(longest, p.Delivered)
	}
	for _, p := range l.Passes {
		p.Abandoned = !p.Exhausted && (2*p.Delivered < longest || p.Delivered <= 1 && longest > 1 || p.Delivered == 0)
	}
}
