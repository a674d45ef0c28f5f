package timeline

import (
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/traces"
)

// Builder collects what a Timeline is made from. The rows of one part go to one
// Builder in their order; Builders of different parts may be merged in any
// order and grouping.
type Builder struct {
	parts map[*traces.Part]*partRows
}

// NewBuilder is an empty Builder.
func NewBuilder() *Builder { return &Builder{parts: map[*traces.Part]*partRows{}} }

type partRows struct {
	meta  map[string]string
	procs map[uint32]*procRows
	lost  []traces.Lost
	limit map[limitKey]*limitRows
	begin int64
	end   int64
}

type procRows struct {
	process traces.Process
	hookAt  int64 // time of the row that process.Hook is of
	begin   int64
	end     int64
	exit    *traces.Exit // the surest
	signals ends[traces.Signal]
	oom     *traces.Oom
	memory  traces.Memory // the last row
	raised  ends[traces.Exception]
	optims  int
	loaders []traces.Loader
	passes  []*passRows // in the order of their first row
	byPass  map[passKey]*passRows
	starts  []traces.Worker // begin rows: this process started workers
	exits   []traces.Worker // exit rows: how they ended
	ready   *traces.Worker  // this process is one
	dist    []traces.Dist
	acts    ends[traces.Act]
	lost    map[string]uint64
	windows map[windowKey]*windowCount
	steps   uint64     // as of the last next()
	last    *nextStats // of the pass that delivered last
	loop    loop
}

type passKey struct{ loader, pass uint32 }

type windowKey struct {
	passKey
	worker int32
}

// windowCount counts fetches; an IterableDataset's last one brings no samples.
type windowCount struct {
	all, filled int
	handed      int64 // last batch that was handed over, or whose fetch failed
}

type passRows struct {
	key        passKey
	begin, end *traces.Pass
	next       nextStats
	uses       uses
	watched    bool
	given      map[int32][]Given // the last batches that each worker was asked for, unless all came back
}

// Add takes the rows of one batch.
func (b *Builder) Add(batch traces.Batch) {
	p := b.part(batch.Part)
	switch rows := batch.Rows.(type) {
	case []traces.Meta:
		for i := range rows {
			p.meta[rows[i].Key] = rows[i].Value
		}
	case []traces.Lost:
		p.addLost(rows)
	case []traces.Limit:
		each(rows, p.addLimit)
	default:
		p.addProcess(batch)
		p.addLoading(batch)
	}
}

func each[T any](rows []T, add func(*T)) {
	for i := range rows {
		add(&rows[i])
	}
}

func (p *partRows) addLost(rows []traces.Lost) {
	for i := range rows {
		if r := &rows[i]; r.Proc != 0 {
			p.proc(&r.Head).lost[r.Source] += r.Count
		}
	}
	p.lost = append(p.lost, rows...)
}

// addProcess takes rows that tell of processes, whatever they do.
func (p *partRows) addProcess(batch traces.Batch) {
	switch rows := batch.Rows.(type) {
	case []traces.Process:
		each(rows, func(r *traces.Process) { p.proc(&r.Head).describe(*r) })
	case []traces.Exit:
		each(rows, func(r *traces.Exit) { pr := p.proc(&r.Head); pr.exit = surer(pr.exit, r) })
	case []traces.Signal:
		each(rows, func(r *traces.Signal) { p.proc(&r.Head).signals.add(*r) })
	case []traces.Oom:
		each(rows, func(r *traces.Oom) { p.proc(&r.Head).oom = r })
	case []traces.Memory:
		each(rows, func(r *traces.Memory) { p.proc(&r.Head).memory = *r })
	case []traces.Exception:
		each(rows, func(r *traces.Exception) { p.proc(&r.Head).raise(r) })
	case []traces.Optimizer:
		each(rows, func(r *traces.Optimizer) { p.proc(&r.Head).optims++ })
	case []traces.Dist:
		each(rows, func(r *traces.Dist) { pr := p.proc(&r.Head); pr.dist = append(pr.dist, *r) })
	case []traces.Act:
		each(rows, func(r *traces.Act) { p.proc(&r.Head).acts.add(*r) })
	}
}

// addLoading takes rows that tell of loaders, passes, workers and batches.
func (p *partRows) addLoading(batch traces.Batch) {
	switch rows := batch.Rows.(type) {
	case []traces.Loader:
		each(rows, func(r *traces.Loader) { pr := p.proc(&r.Head); pr.loaders = append(pr.loaders, *r) })
	case []traces.Pass:
		each(rows, func(r *traces.Pass) { p.proc(&r.Head).pass(r.Loader, r.Pass).mark(r) })
	case []traces.Worker:
		each(rows, func(r *traces.Worker) { p.proc(&r.Head).worker(r) })
	case []traces.BatchPut:
		each(rows, func(r *traces.BatchPut) { p.proc(&r.Head).pass(r.Loader, r.Pass).give(r) })
	case []traces.BatchFetch:
		each(rows, func(r *traces.BatchFetch) { p.proc(&r.Head).fetched(r) })
	case []traces.BatchNext:
		each(rows, func(r *traces.BatchNext) { p.proc(&r.Head).next(r) })
	}
}

// mark takes the row of a pass's begin or end.
func (ps *passRows) mark(r *traces.Pass) {
	if r.Phase == "end" {
		ps.end = r
	} else {
		ps.begin = r
	}
}

func (pr *procRows) worker(r *traces.Worker) {
	switch r.Phase {
	case "begin":
		pr.starts = append(pr.starts, *r)
	case "ready":
		pr.ready = r
	case "exit":
		pr.exits = append(pr.exits, *r)
	}
}

func (pr *procRows) fetched(r *traces.BatchFetch) {
	c := pr.window(windowKey{passKey{r.Loader, r.Pass}, r.Worker})
	c.all++
	c.handed = max(c.handed, int64(r.Batch))
	if r.Samples > 0 {
		c.filled++
	}
}

// Merge takes over what another Builder has collected from other parts.
func (b *Builder) Merge(o collect.Collector[*Timeline]) { maps.Copy(b.parts, o.(*Builder).parts) }

func (b *Builder) part(part *traces.Part) *partRows {
	p := b.parts[part]
	if p == nil {
		p = &partRows{meta: map[string]string{}, procs: map[uint32]*procRows{}}
		b.parts[part] = p
	}
	return p
}

// proc finds the process of a row and notes when it was alive.
func (p *partRows) proc(h *traces.Head) *procRows {
	pr := p.procs[h.Proc]
	if pr == nil {
		pr = &procRows{byPass: map[passKey]*passRows{}, lost: map[string]uint64{}, windows: map[windowKey]*windowCount{}}
		pr.process.Rank, pr.process.LocalRank = -1, -1
		p.procs[h.Proc] = pr
	}
	if h.TsNS > 0 {
		if pr.begin == 0 || h.TsNS < pr.begin {
			pr.begin = h.TsNS
		}
		pr.end = max(pr.end, h.TsNS)
		if p.begin == 0 || h.TsNS < p.begin {
			p.begin = h.TsNS
		}
		p.end = max(p.end, h.TsNS)
	}
	return pr
}

func (pr *procRows) pass(loader, pass uint32) *passRows {
	key := passKey{loader, pass}
	ps := pr.byPass[key]
	if ps == nil {
		ps = &passRows{key: key}
		pr.byPass[key] = ps
		pr.passes = append(pr.passes, ps)
	}
	return ps
}

func (pr *procRows) window(key windowKey) *windowCount {
	c := pr.windows[key]
	if c == nil {
		c = &windowCount{handed: -1}
		pr.windows[key] = c
	}
	return c
}

// raise takes an exception. One that a fetch raised was handed to the parent:
// its batch is no longer in flight.
func (pr *procRows) raise(r *traces.Exception) {
	pr.raised.add(*r)
	if r.Loader == 0 && r.Worker >= 0 && (r.Stage == "fetch" || r.Stage == "collate") && handedOver(r) {
		c := pr.window(windowKey{passKey{0, r.Pass}, r.Worker})
		c.handed = max(c.handed, int64(r.Batch))
	}
}

// handedOver reports whether torch hands an exception to the training loop. What
// is no Exception ends the worker.
func handedOver(r *traces.Exception) bool {
	switch r.Type {
	case "SystemExit", "KeyboardInterrupt", "GeneratorExit":
		return false
	}
	return true
}

func (p *partRows) addLimit(r *traces.Limit) {
	key := limitKey{r.Scope, r.Path}
	if p.limit == nil {
		p.limit = map[limitKey]*limitRows{}
	}
	if p.limit[key] == nil {
		p.limit[key] = &limitRows{}
	}
	p.limit[key].add(*r)
}

// describe adds what one more row says of a process. The kernel tier hands in late
// what a process was before its last exec: whether the hook is in it stands, unless
// the hook itself says it is.
func (p *procRows) describe(r traces.Process) {
	switch {
	case r.Hook == "":
	case r.TsNS < p.hookAt && r.Hook != "on":
		r.Hook, r.Note = "", ""
	default:
		p.hookAt = r.TsNS
	}
	mergeProcess(&p.process, &r)
}

// mergeProcess adds a later row of a process: its fields win where they say
// anything.
func mergeProcess(p, r *traces.Process) {
	head, rank, local := p.Head, p.Rank, p.LocalRank
	if p.Pid == 0 {
		*p = *r
		return
	}
	text := func(to *string, from string) {
		if from != "" {
			*to = from
		}
	}
	p.Head = head
	if r.Pid != 0 {
		p.Pid = r.Pid
	}
	if r.Ppid != 0 {
		p.Ppid = r.Ppid
	}
	if r.StartTicks != 0 {
		p.StartTicks = r.StartTicks
	}
	if r.Rank >= 0 {
		rank = r.Rank
	}
	if r.LocalRank >= 0 {
		local = r.LocalRank
	}
	if r.WorldSize != 0 {
		p.WorldSize = r.WorldSize
	}
	p.Rank, p.LocalRank = rank, local
	text(&p.Kind, r.Kind)
	text(&p.Hook, r.Hook)
	text(&p.Cmdline, r.Cmdline)
	text(&p.Exe, r.Exe)
	text(&p.Cwd, r.Cwd)
	text(&p.Python, r.Python)
	text(&p.Torch, r.Torch)
	text(&p.Numpy, r.Numpy)
	text(&p.Note, r.Note)
}
