package detecttest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// Run is a trace in the making: one part, one clock.
type Run struct {
	W     *traces.Writer
	Dir   string
	clock int64
	procs uint32
	parts []*Run
	older bool  // it has no table cpu
	used  int64 // CPU time of the processes that Time has played, ns

	sealed bool
}

// NewRun begins a trace in a temporary folder.
func NewRun(t testing.TB) *Run {
	dir := t.TempDir() + "/run.dptrace"
	w, err := traces.Create(dir, "host-1", traces.Options{RunID: "run", BootID: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{W: w, Dir: dir, clock: 1e9}
	r.Meta("command", `["python3","train.py"]`)
	return r
}

// Part begins a part of the same trace, as another recorder would write it on
// another host.
func (r *Run) Part(t testing.TB, name string) *Run {
	w, err := traces.Create(r.Dir, name, traces.Options{RunID: "run", BootID: "boot of " + name})
	if err != nil {
		t.Fatal(err)
	}
	p := &Run{W: w, Dir: r.Dir, clock: r.clock}
	r.parts = append(r.parts, p)
	return p
}

// Meta writes one fact about the run.
func (r *Run) Meta(key, value string) {
	r.W.Append(traces.Meta{Head: r.head(0), Key: key, Value: value})
}

// Seal ends the recording in good order.
func (r *Run) Seal() {
	r.Meta("exit_code", "0")
	r.sealed = true
}

// Open reads what was written.
func (r *Run) Open(t testing.TB) *traces.Run {
	for _, part := range append(r.parts, r) {
		end := part.W.Close
		if part.sealed {
			end = part.W.Seal
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	run, err := traces.Open(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func (r *Run) head(proc uint32) traces.Head {
	r.clock += 50_000
	return traces.Head{TsNS: r.clock, Proc: proc}
}

// Wait lets time pass.
func (r *Run) Wait(ns int64) { r.clock += ns }

// Process is a played process.
type Process struct {
	Run     *Run
	Proc    uint32
	Rank    int
	World   int
	loaders uint32
	slots   map[[2]string]uint32
	raws    map[string]bool
	steps   uint64
	last    uint32 // optimizer
}

// Process begins a training process; rank -1: none.
func (r *Run) Process(rank, world int) *Process {
	return r.process("python", rank, world)
}

func (r *Run) process(kind string, rank, world int) *Process { return r.child(999, kind, rank, world) }

func (r *Run) child(ppid int32, kind string, rank, world int) *Process {
	r.procs++
	p := &Process{Run: r, Proc: r.procs, Rank: rank, World: world, slots: map[[2]string]uint32{}, raws: map[string]bool{}}
	r.W.Append(traces.Process{Head: r.head(p.Proc), Pid: int32(1000 + p.Proc%60), Ppid: ppid, Kind: kind, Hook: "on", Cwd: "/home/me/proj",
		Python: "3.11.2", Torch: "2.15.0", Numpy: "2.4.0", Rank: int32(rank), LocalRank: int32(rank), WorldSize: int32(world)})
	return p
}

// Group notes that the process wrapped a model for some ranks.
func (p *Process) Group(op string, ranks ...int64) {
	p.Run.W.Append(traces.Dist{Head: p.Run.head(p.Proc), Op: op, Class: "torch.nn.Linear", Backend: "gloo", Ranks: ranks})
}

// Slot is a generator of the program.
type Slot struct {
	Path, Owner, Role string
	Line              int32
}

// Loader is a played DataLoader and the loop that uses it.
type Loader struct {
	Line       int32 // of DataLoader(...); 0 is 88
	Dataset    string
	Workers    int
	Batches    int // per worker and pass; 0 is 4
	Length     int64
	Persistent bool
	Iterable   bool
	Init       string
	Slots      []Slot

	// Start gives the generators of a worker (-1: of the main process) when it
	// starts, in the order of Slots.
	Start func(pass, worker int) []*Gen
	// Fetch draws.
	Fetch func(pass, worker, window int, g []*Gen)
	// Loop draws between two deliveries, in the main process without workers.
	Loop func(pass, window int, g []*Gen)
	// Found hides generators, by number in Slots, until the first fetch is over.
	Found []int
	// Contains is a sample; nil: what was drawn for its batch is in it.
	Contains func(pass int, index int64) What
	// Indices of a batch; nil: those of a shard of its own for each rank.
	Indices func(pass, batch int) []int64
}

// Opened is a Loader that its program has made.
type Opened struct {
	Loader
	p       *Process
	number  uint32
	passes  int
	workers []*worker
}

type worker struct {
	proc   *Process
	gens   []*Gen
	passes uint32 // served
	last   [][]byte
}

// Open makes the loader.
func (p *Process) Open(l Loader) *Opened {
	p.loaders++
	if l.Batches == 0 {
		l.Batches = 4
	}
	if l.Line == 0 {
		l.Line = 88
	}
	if l.Dataset == "" {
		l.Dataset = "__main__.Points"
	}
	if l.Length == 0 {
		l.Length = 64
	}
	p.Run.W.Append(
		traces.Loader{
			Head:         p.Run.head(p.Proc),
			Loader:       p.loaders,
			Class:        "torch.utils.data.dataloader.DataLoader",
			DatasetClass: l.Dataset,
			Iterable:     l.Iterable,
			Length:       l.Length,
			BatchSize:    8,
			NumWorkers:   int32(l.Workers),
			Persistent:   l.Persistent,
			WorkerInit:   l.Init,
			File:         "/home/me/proj/train.py",
			Line:         l.Line,
			Stack:        "/home/me/proj/train.py:99",
			StartMethod:  "fork",
		},
	)
	return &Opened{Loader: l, p: p, number: p.loaders}
}

// Pass is how one pass is used.
type Pass struct {
	Optimizer uint32 // that steps after each delivery; 0: none does
	NoGrad    bool
	Break     int  // deliveries after which the loop breaks; 0: none
	LostRows  bool // of this process are reported
	BaseSeed  int64
}

// Train is a pass of training to its end.
var Train = Pass{Optimizer: 1}

// Eval is a pass of evaluation.
var Eval = Pass{NoGrad: true}

// Pass plays one pass.
func (o *Opened) Pass(how Pass) {
	p, r, n := o.p, o.p.Run, uint32(o.passes)
	o.passes++
	if how.BaseSeed == 0 {
		how.BaseSeed = int64(1000*o.passes) + int64(p.Rank)
	}
	r.W.Append(traces.Pass{Head: r.head(p.Proc), Loader: o.number, Pass: n, Phase: "begin", BaseSeed: how.BaseSeed})
	if o.Workers == 0 {
		o.workers = []*worker{{proc: p, gens: o.mainGens(int(n))}}
		o.begin(o.workers[0], int(n), -1)
	} else {
		if !o.Persistent || n == 0 {
			o.workers = nil
			for i := range o.Workers {
				w := &worker{proc: r.process("worker", -1, 0), gens: o.Start(int(n), i)}
				o.workers = append(o.workers, w)
				pid := int32(1000 + w.proc.Proc%60)
				r.W.Append(traces.Worker{Head: r.head(p.Proc), Loader: o.number, Pass: n, Worker: int32(i), Pid: pid, Phase: "begin"})
				r.W.Append(traces.Worker{Head: r.head(w.proc.Proc), Worker: int32(i), Pid: pid, Phase: "ready", Seed: how.BaseSeed + int64(i)})
			}
		}
		for i, w := range o.workers {
			o.begin(w, int(n), i)
		}
	}
	batches := o.Batches * max(o.Workers, 1)
	delivered := 0
	broke := false
	for b := range batches {
		w := o.workers[b%len(o.workers)]
		number := b % max(o.Workers, 1)
		if o.Workers == 0 {
			number = -1
		}
		o.put(int(n), b, number)
		o.fetch(w, int(n), number, b/max(o.Workers, 1), b)
		o.next(n, b, number, "ok", how)
		delivered++
		if how.Optimizer > 0 {
			p.steps++
			p.last = how.Optimizer
		}
		if o.Workers == 0 && o.Loop != nil {
			o.Loop(int(n), b, w.gens)
		}
		if how.Break > 0 && delivered == how.Break {
			broke = true
			break
		}
	}
	end := "dropped"
	if !broke {
		o.next(n, batches, -1, "stop", how)
		end = "exhausted"
	}
	for _, w := range o.workers {
		w.passes++
	}
	r.W.Append(traces.Pass{Head: r.head(p.Proc), Loader: o.number, Pass: n, Phase: "end", End: end, Delivered: uint32(delivered)})
	if how.LostRows {
		r.W.Append(traces.Lost{Head: r.head(p.Proc), Source: "hook", Count: 7, Reason: "its ring was full"})
	}
}

func (o *Opened) mainGens(pass int) []*Gen {
	if len(o.workers) > 0 {
		if g := o.Start(pass, -1); g != nil {
			return g
		}
		return o.workers[0].gens // they stay
	}
	return o.Start(pass, -1)
}

func (o *Opened) put(pass, batch, worker int) {
	if o.Iterable {
		return
	}
	indices := o.indices(pass, batch)
	o.p.Run.W.Append(
		traces.BatchPut{
			Head:    o.p.Run.head(o.p.Proc),
			Loader:  o.number,
			Pass:    uint32(pass),
			Batch:   uint32(batch),
			Worker:  int32(worker),
			Indices: indices,
		},
	)
}

func (o *Opened) next(pass uint32, batch, worker int, status string, how Pass) {
	p := o.p
	p.Run.W.Append(
		traces.BatchNext{Head: p.Run.head(p.Proc), Loader: o.number, Pass: pass, Batch: uint32(batch), Worker: int32(worker), Status: status,
			Steps: p.steps, Optimizer: p.last, Grad: !how.NoGrad},
	)
}

// begin writes the states when a fetcher is made.
func (o *Opened) begin(w *worker, pass, number int) {
	w.last = make([][]byte, len(o.Slots))
	for i := range o.Slots {
		if !slices.Contains(o.Found, i) {
			o.state(w, i, pass, number, 0, "begin")
		}
	}
}

// indices of a batch: where nothing else is said, other ones in each pass.
func (o *Opened) indices(pass, batch int) (indices []int64) {
	if o.Indices != nil {
		return o.Indices(pass, batch)
	}
	all := 8 * o.Batches * max(o.Workers, 1)
	for i := range 8 {
		n := int64((8*batch + i + 5*pass) % all)
		indices = append(indices, n*int64(max(o.p.World, 1))+int64(max(o.p.Rank, 0)))
	}
	return indices
}

func (o *Opened) fetch(w *worker, pass, number, window, batch int) {
	if number < 0 {
		for i := range o.Slots {
			o.changed(w, i, pass, number, window, "before")
		}
	}
	before := states(w.gens)
	if o.Fetch != nil {
		o.Fetch(pass, number, window, w.gens)
	}
	drawn := ""
	if after := states(w.gens); after != before {
		drawn = after
	}
	for i := range o.Slots {
		if w.last[i] == nil {
			o.state(w, i, pass, number, window, "found")
			continue
		}
		o.changed(w, i, pass, number, window, "after")
	}
	loader, local := o.where(w, pass, number)
	r := o.p.Run
	r.Wait(1e6)
	r.W.Append(
		traces.BatchFetch{
			Head:    r.head(w.proc.Proc),
			Loader:  loader,
			Pass:    local,
			Worker:  int32(number),
			Batch:   uint32(batch),
			Fetch:   uint32(window),
			FetchNS: 1e6,
			Samples: 8,
		},
	)
	if !o.Iterable { // what was drawn is in the samples
		row := traces.Digest{Head: r.head(w.proc.Proc), Loader: loader, Pass: local, Worker: int32(number), Batch: uint32(batch), Fetch: uint32(window)}
		r.W.Append(Digest(row, o.indices(pass, batch), func(index int64) What {
			if o.Contains != nil {
				return o.Contains(pass, index)
			}
			return What{Content: fmt.Sprint(index, " ", drawn)}
		}))
	}
}

// states of some generators.
func states(gens []*Gen) string {
	var all []byte
	for _, g := range gens {
		_, _, raw := g.state()
		all = append(all, raw...)
	}
	return string(all)
}

func (o *Opened) where(w *worker, pass, number int) (loader, local uint32) {
	if number < 0 {
		return o.number, uint32(pass)
	}
	return 0, w.passes
}

func (o *Opened) changed(w *worker, i, pass, number, window int, when string) {
	_, _, raw := w.gens[i].state()
	if !slices.Equal(raw, w.last[i]) {
		o.state(w, i, pass, number, window, when)
	}
}

func (o *Opened) state(w *worker, i, pass, number, window int, when string) {
	g, s, r, p := w.gens[i], o.Slots[i], o.p.Run, w.proc
	k := [2]string{s.Path, g.Kind}
	slot, ok := p.slots[k]
	if !ok {
		slot = uint32(len(p.slots))
		p.slots[k] = slot
		r.W.Append(
			traces.RngSlot{
				Head:  r.head(p.Proc),
				Slot:  slot,
				Path:  s.Path,
				Kind:  g.Kind,
				Class: g.Class,
				Owner: s.Owner,
				Role:  s.Role,
				File:  file(s),
				Line:  s.Line,
			},
		)
	}
	pos, id, raw := g.state()
	w.last[i] = raw
	if id != nil { // the hook writes a whole block once for each process
		if when == "after" || when == "before" || p.raws[string(id)] {
			raw = nil
		} else {
			p.raws[string(id)] = true
		}
	}
	loader, local := o.where(w, pass, number)
	var dur int64
	if when == "after" || when == "before" {
		dur = 1e6
	}
	r.W.Append(
		traces.RngState{
			Head:   r.head(p.Proc),
			Slot:   slot,
			Loader: loader,
			Pass:   local,
			Worker: int32(number),
			Fetch:  uint32(window),
			When:   when,
			Pos:    pos,
			ID:     id,
			Raw:    raw,
			DurNS:  dur,
		},
	)
}

func file(s Slot) string {
	if s.Line == 0 {
		return ""
	}
	return "/home/me/proj/data.py"
}
