package detecttest

import "github.com/dptrace/dptrace/traces"

// Timed is a played loader whose batches take known times, and the loop over it, as
// torch's queues would deliver them. Times are in nanoseconds; a function that is
// nil gives 0.
type Timed struct {
	Workers int // 0: the main process fetches
	Ahead   int // prefetch_factor; 0 is 2
	Batches int // of a pass
	Passes  int

	Fetch   func(pass, batch, worker int) int64
	Collate func(pass, batch int) int64
	Queue   func(pass, batch int) int64 // from the worker's end until it is in the main process
	Sampler func(pass, batch int) int64
	Step    func(pass, batch int) int64
	Start   func(pass int) int64 // until the workers begin

	Persistent bool
	Iterable   bool
	Eval       bool
	NoStep     bool   // no optimizer steps: the role is not known
	Aside      string // iter: iter() is called by another thread than the main one; next: next() is
	Disordered bool   // in_order=False
	Older      bool   // a trace without the columns and tables that this needs

	CPU      float64 // of the time of a fetch, on a processor
	Delay    float64 // of it, waiting for one
	Read     int64   // bytes from disks for a batch
	Files    float64 // of the time of a fetch, blocked in reading files; of workers alone
	Crop     float64 // of the time of a fetch, in a transform of that name; 0: no fetch is looked at
	MainCPU  float64 // of the time of a step, on a processor
	MainWait float64 // of the loop's time, waiting for one
}

// Even is the same time for all.
func Even(ns int64) func(pass, batch int) int64 { return func(int, int) int64 { return ns } }

// EvenFetch is the same time for all fetches.
func EvenFetch(ns int64) func(pass, batch, worker int) int64 {
	return func(int, int, int) int64 { return ns }
}

// Processors writes what the run may use of the machine's processors at two times:
// thousandths, and how many others take.
func (r *Run) Processors(allowed int32, quota int64, online int32, others float64, stopped float64) {
	if r.older {
		return
	}
	const from = 1e9
	wall := r.clock - from
	row := traces.Cpu{Head: traces.Head{TsNS: from}, Allowed: allowed, Processors: int64(allowed) * 1000, Periods: -1, Throttled: -1,
		ThrottledNS: -1, IdleNS: 1e9, Online: online}
	if quota > 0 {
		row.Processors, row.Path, row.Periods, row.Throttled, row.ThrottledNS = quota, "/job", 0, 0, 0
	}
	r.W.Append(row)
	row.TsNS = r.clock
	row.IdleNS += int64(max(float64(online)-others, 0)*float64(wall)) - r.used
	if quota > 0 {
		row.Periods = wall / 100e6
		row.Throttled = int64(stopped * float64(row.Periods))
		row.ThrottledNS = int64(stopped * float64(wall))
	}
	r.W.Append(row)
}

// Accelerators writes the machine, with the devices that compute beside its
// processors.
func (r *Run) Accelerators(names string) {
	r.W.Append(traces.Host{Head: r.head(0), Hostname: "host-1", BootID: "boot", Arch: "amd64", CPUs: 8, MemTotal: 64 << 30, PageSize: pageBytes,
		Accelerators: names})
}

// timedPlay is a Timed that is being played.
type timedPlay struct {
	*Timed
	p        *Process
	loader   uint32
	workers  []*Process
	served   []uint32 // passes, of each worker
	cpu      []int64  // of each worker, so far
	delay    []int64
	read     []int64
	blocked  []int64
	idle     []int64
	mainCPU  int64
	mainWait int64
	begun    int64
}

// Time plays all passes of a loader.
func (p *Process) Time(t Timed) {
	p.loaders++
	p.Run.older = p.Run.older || t.Older
	if t.Ahead == 0 {
		t.Ahead = 2
	}
	l := traces.Loader{Head: p.Run.head(p.Proc), Loader: p.loaders, Class: "torch.utils.data.dataloader.DataLoader", DatasetClass: "__main__.Points",
		Iterable: t.Iterable, Length: int64(8 * t.Batches), BatchSize: 8, NumWorkers: int32(t.Workers), Prefetch: -1, Persistent: t.Persistent,
		InOrder: !t.Disordered, File: "/home/me/proj/train.py", Line: 80 + int32(p.loaders)}
	if t.Workers > 0 {
		l.Prefetch, l.StartMethod = int32(t.Ahead), "fork"
	}
	p.Run.W.Append(l)
	x := &timedPlay{Timed: &t, p: p, loader: p.loaders, begun: p.Run.clock}
	x.look(p, 0, 1, 0, 0)
	for pass := range t.Passes {
		x.pass(pass)
	}
	if p.Run.clock > x.begun {
		x.look(p, x.mainCPU, max(x.mainCPU, 1), x.mainWait, 0)
	}
	p.Run.used += x.mainCPU
	for _, cpu := range x.cpu {
		p.Run.used += cpu
	}
}

func (x *timedPlay) look(p *Process, cpu, main, delay, read int64) {
	row := traces.Memory{Head: p.Run.head(p.Proc), Rss: 1 << 28, CPUNS: cpu, Threads: 1, Source: "statm", MainNS: main, DelayNS: delay, ReadBytes: read}
	if x.Older {
		row.MainNS, row.DelayNS, row.ReadBytes = 0, 0, 0
	}
	p.Run.W.Append(row)
}

func (x *timedPlay) pass(pass int) {
	p, r := x.p, x.p.Run
	thread := traces.Pass{Head: r.head(p.Proc), Loader: x.loader, Pass: uint32(pass), Phase: "begin", Thread: "main", ThreadID: 7}
	if x.Aside == "iter" {
		thread.Thread, thread.ThreadID = "other", 9
	}
	if x.Older {
		thread.Thread, thread.ThreadID = "", 0
	}
	r.W.Append(thread)
	if x.Workers > 0 && (pass == 0 || !x.Persistent) {
		x.start(pass)
	}
	start := int64(0)
	if x.Start != nil {
		start = x.Start(pass)
	}
	now := r.clock
	free := make([]int64, max(x.Workers, 1))
	for i := range free {
		free[i] = now + start
	}
	ready := make([]int64, x.Batches)
	given := 0
	give := func() {
		if given < x.Batches && x.Workers > 0 {
			ready[given] = x.serve(pass, given, &now, free)
			given++
		}
	}
	for range x.Workers * x.Ahead {
		give()
	}
	for b := range x.Batches {
		x.deliver(pass, b, &now, ready, give)
	}
	x.next(pass, x.Batches, "stop", now, 0, now)
	r.clock = now
	for i := range x.workers {
		x.look(x.workers[i], x.cpu[i], max(x.cpu[i], 1), x.delay[i], x.read[i])
		if x.Files > 0 {
			r.W.Append(traces.OffCpu{Head: r.head(x.workers[i].Proc), Inherits: true, ReadNS: x.blocked[i], ChannelNS: x.idle[i], Final: !x.Persistent})
		}
		x.served[i]++
	}
	r.W.Append(traces.Pass{Head: r.head(p.Proc), Loader: x.loader, Pass: uint32(pass), Phase: "end", End: "exhausted", Delivered: uint32(x.Batches)})
}

// start the workers of a pass.
func (x *timedPlay) start(pass int) {
	r := x.p.Run
	for _, cpu := range x.cpu {
		r.used += cpu
	}
	x.workers, x.served = nil, make([]uint32, x.Workers)
	for _, counted := range []*[]int64{&x.cpu, &x.delay, &x.read, &x.blocked, &x.idle} {
		*counted = make([]int64, x.Workers)
	}
	for i := range x.Workers {
		w := r.process("worker", -1, 0)
		x.workers = append(x.workers, w)
		pid := int32(1000 + w.Proc%60)
		r.W.Append(traces.Worker{Head: r.head(x.p.Proc), Loader: x.loader, Pass: uint32(pass), Worker: int32(i), Pid: pid, Phase: "begin"})
		r.W.Append(traces.Worker{Head: r.head(w.Proc), Worker: int32(i), Pid: pid, Phase: "ready"})
	}
}

// serve hands a batch to its worker; it says when the batch can be taken.
func (x *timedPlay) serve(pass, b int, now *int64, free []int64) int64 {
	w := b % x.Workers
	took := x.of(x.Sampler, pass, b)
	x.put(pass, b, w, *now+took, took)
	*now += took
	begin := max(free[w], *now)
	fetch, collate := x.Fetch(pass, b, w), x.of(x.Collate, pass, b)
	x.fetched(x.workers[w], 0, x.served[w], b, w, begin, max(begin-free[w], 0), fetch, collate)
	x.idle[w] += max(begin-free[w], 0)
	free[w] = begin + fetch + collate
	x.cpu[w] += int64(x.CPU * float64(fetch+collate))
	x.delay[w] += int64(x.Delay * float64(fetch+collate))
	x.read[w] += x.Read
	x.blocked[w] += int64(x.Files * float64(fetch))
	return free[w] + x.of(x.Queue, pass, b)
}

func (x *timedPlay) of(f func(pass, batch int) int64, pass, b int) int64 {
	if f == nil {
		return 0
	}
	return f(pass, b)
}

func (x *timedPlay) put(pass, b, w int, at, took int64) {
	if x.Iterable {
		return
	}
	x.p.Run.W.Append(traces.BatchPut{Head: traces.Head{TsNS: at, Proc: x.p.Proc}, Loader: x.loader, Pass: uint32(pass), Batch: uint32(b), Worker: int32(w),
		DurNS: took, Indices: Ascending(8, 8*b, 1)})
}

func (x *timedPlay) fetched(p *Process, loader, pass uint32, b, w int, at, idle, fetch, collate int64) {
	x.p.Run.W.Append(traces.BatchFetch{Head: traces.Head{TsNS: at, Proc: p.Proc}, Loader: loader, Pass: pass, Worker: int32(w), Batch: uint32(b),
		Fetch: uint32(b / max(x.Workers, 1)), WaitNS: idle, FetchNS: fetch, CollateNS: collate, Samples: 8})
	if x.Crop > 0 {
		x.looked(p, traces.FetchSplit{Head: traces.Head{TsNS: at, Proc: p.Proc}, Loader: loader, Pass: pass, Worker: int32(w), Batch: uint32(b), Samples: 8,
			WallNS: fetch, CPUNS: fetch / 2, ReadBytes: -1, Reads: -1, DiskBytes: -1})
	}
}

// looked writes that a fetch was looked at, in which the second of two transforms,
// Crop, took its share; the first took nothing.
func (x *timedPlay) looked(p *Process, row traces.FetchSplit) {
	const path = "dataset.transform"
	for i, t := range []struct{ path, class string }{{path, "Compose"}, {path + ".transforms[0]", "Flip"}, {path + ".transforms[1]", "Crop"}} {
		x.p.Run.W.Append(traces.Transform{Head: row.Head, Loader: row.Loader, Pass: row.Pass, Worker: row.Worker, Transform: uint32(i + 1),
			Chain: path, Place: int32(i - 1), Path: t.path, Class: t.class, File: "/home/me/proj/crop.py", Line: 7})
	}
	took := int64(x.Crop * float64(row.WallNS))
	row.Transforms, row.Calls, row.SpentNS = []int64{1, 2, 3}, []int64{8, 8, 8}, []int64{took, 0, took}
	x.p.Run.W.Append(row)
}

// deliver a batch, and take a step.
func (x *timedPlay) deliver(pass, b int, now *int64, ready []int64, give func()) {
	call := *now
	arrived := int64(0)
	if x.Workers > 0 {
		*now = max(*now, ready[b])
		arrived = *now
		give()
	} else {
		took := x.of(x.Sampler, pass, b)
		fetch, collate := x.Fetch(pass, b, -1), x.of(x.Collate, pass, b)
		x.fetched(x.p, x.loader, uint32(pass), b, -1, *now+took, 0, fetch, collate)
		*now += took + fetch + collate
		x.mainCPU += int64(x.CPU * float64(fetch+collate))
	}
	x.next(pass, b, "ok", call, arrived, *now)
	step := x.of(x.Step, pass, b)
	*now += step
	x.mainCPU += int64(x.MainCPU * float64(step))
	x.mainWait += int64(x.MainWait * float64(*now-call))
	if !x.NoStep && !x.Eval {
		x.p.steps++
	}
}

func (x *timedPlay) next(pass, b int, status string, call, arrived, at int64) {
	row := traces.BatchNext{Head: traces.Head{TsNS: at, Proc: x.p.Proc}, Loader: x.loader, Pass: uint32(pass), Batch: uint32(b), Worker: -1, Status: status,
		CallNS: call, ArrivedNS: arrived, Steps: x.p.steps, Grad: !x.Eval, Thread: 7}
	if x.p.steps > 0 {
		row.Optimizer = 1
	}
	if x.Workers > 0 {
		row.Worker = int32(b % x.Workers)
	}
	if x.Aside == "next" || x.Aside == "iter" {
		row.Thread = 9
	}
	if x.Older {
		row.Thread = 0
	}
	x.p.Run.W.Append(row)
}
