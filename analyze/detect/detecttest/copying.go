package detecttest

import (
	"cmp"

	"github.com/dptrace/dptrace/traces"
)

// Copying is a played training loop whose batches are copied to a device. Times are in nanoseconds.
type Copying struct {
	Line    int32 // of DataLoader(...); 0 is 88
	Batches int   // of a pass; 0 is 100
	Passes  int   // 0 is 1
	Step    int64 // beside what Batch does; 0 is 5 ms
	Pin     bool  // pin_memory=True
	Eval    bool
	NoStep  bool         // no optimizer steps: the role is not known
	Dtypes  string       // of a batch, as a worker tells; "" there is none
	Looks   []traces.Pin // at batches as they were pinned

	Before func(*Cuda)             // what the process does first
	Batch  func(c *Cuda, n int)    // and with its n-th batch
	Calls  map[string]uint64       // of functions of the driver, by the end
	How    func(*traces.BatchNext) // changes its deliveries
}

// Cuda is a process that calls the CUDA driver.
type Cuda struct {
	Run     *Run
	Process *Process
	Aside   bool   // what follows is done by another thread than the first
	Site    uint32 // who asks for what follows
	loader  uint32
}

// Machine writes what the recorder knows of the machine, and that it watches the driver in
// all processes.
func (r *Run) Machine(arch, accelerators string) {
	r.W.Append(traces.Host{Head: r.head(0), Hostname: "host-1", BootID: "boot", Arch: arch, CPUs: 8, MemTotal: 64 << 30, PageSize: pageBytes,
		Accelerators: accelerators})
}

// WatchCuda writes that the driver is watched in all processes.
func (r *Run) WatchCuda() {
	r.W.Append(traces.CudaLibrary{Head: r.head(0), Library: "driver", Path: "/usr/lib/libcuda.so.1", Watched: 19, Shifted: 19, How: "multi"})
}

// Cuda is the process as one that calls it.
func (p *Process) Cuda() *Cuda { return &Cuda{Run: p.Run, Process: p} }

// Memory that the driver is told of.
func (c *Cuda) Memory(what string, address uint64, bytes int64) {
	c.Run.W.Append(traces.HostMemory{Head: c.Run.head(c.Process.Proc), What: what, Address: address, Bytes: bytes})
}

// At is a place that asks for copies.
func (c *Cuda) At(site uint32, frames string) {
	c.Run.W.Append(traces.CallSite{Head: c.Run.head(c.Process.Proc), Site: site, Frames: frames})
}

// Copy to the device, unless the row says something else, and what comes after it.
func (c *Cuda) Copy(row traces.Copy) {
	row.Head = c.Run.head(c.Process.Proc)
	row.Thread, row.Main, row.Async = 7, !c.Aside, true
	row.Function = cmp.Or(row.Function, "cuMemcpyHtoDAsync_v2")
	row.Direction = cmp.Or(row.Direction, "to-device")
	row.Rows = max(row.Rows, 1)
	row.Site = c.Site
	row.Next, row.GapNS = cmp.Or(row.Next, "launch"), max(row.GapNS, 2000)
	c.Run.W.Append(row)
	if !c.Aside {
		c.Run.Wait(row.CallNS + row.GapNS + row.NextNS)
	}
}

// Asked is a copy that the hook tells of.
func (c *Cuda) Asked(row traces.Copy) {
	row.Head = c.Run.head(c.Process.Proc)
	row.Thread, row.Main, row.Site, row.Rows, row.GapNS = 7, !c.Aside, c.Site, 1, -1
	row.Function, row.Direction, row.SeenBy, row.Device = cmp.Or(row.Function, "Tensor.to"), "to-device", "hook", cmp.Or(row.Device, "cuda")
	c.Run.W.Append(row)
	if !c.Aside {
		c.Run.Wait(row.CallNS)
	}
}

// Hooked writes whether the hook tells of copies in a process.
func (p *Process) Hooked(copies string) {
	p.Run.W.Append(traces.Process{Head: p.Run.head(p.Proc), Pid: int32(1000 + p.Proc), Kind: "target", Hook: "on", Cwd: "/home/me/proj",
		Rank: -1, LocalRank: -1, Copies: copies})
}

// Staged is a copy out of memory that is not pinned, with non_blocking=True.
func (c *Cuda) Staged(source uint64, bytes int64) {
	c.Copy(traces.Copy{Source: source, Bytes: bytes, CallNS: bytes / 6, GapNS: 60_000})
}

// StagedWaited is the same without it.
func (c *Cuda) StagedWaited(source uint64, bytes int64) {
	c.Copy(traces.Copy{Source: source, Bytes: bytes, CallNS: bytes / 6, Next: "stream-sync", NextNS: 100_000})
}

// Async is a copy out of pinned memory, with non_blocking=True.
func (c *Cuda) Async(source uint64, bytes int64) {
	c.Copy(traces.Copy{Source: source, Bytes: bytes, CallNS: 3000, GapNS: 60_000})
}

// Waited is the same without it: the wait is for kernels, too.
func (c *Cuda) Waited(source uint64, bytes int64) {
	c.Copy(traces.Copy{Source: source, Bytes: bytes, CallNS: 3000, Next: "stream-sync", NextNS: 3_600_000})
}

// Next is a delivery to the process by another loader than the one that is played.
func (c *Cuda) Next(loader, pass uint32, n int, status string) {
	c.Run.W.Append(traces.BatchNext{Head: c.Run.head(c.Process.Proc), Loader: loader, Pass: pass, Batch: uint32(n), Worker: -1, Status: status,
		CallNS: c.Run.clock - 20_000, Steps: c.Process.steps, Optimizer: c.Process.last, Grad: true})
}

// Copying plays all passes of a loader.
func (p *Process) Copying(x Copying) {
	p.loaders++
	c := &Cuda{Run: p.Run, Process: p, loader: p.loaders}
	workers := int32(0)
	if x.Dtypes != "" {
		workers = 1
	}
	for i := range x.Looks {
		x.Looks[i].Loader = c.loader
	}
	p.Run.W.Append(traces.Loader{Head: p.Run.head(p.Proc), Loader: c.loader, Class: "torch.utils.data.dataloader.DataLoader",
		DatasetClass: "__main__.Points", Length: 800, BatchSize: 8, NumWorkers: workers, Prefetch: 2, PinMemory: x.Pin, InOrder: true,
		StartMethod: "fork", File: "/home/me/proj/train.py", Line: cmp.Or(x.Line, 88)})
	if x.Before != nil {
		x.Before(c)
	}
	n := 0
	for pass := range max(x.Passes, 1) {
		n = x.pass(c, uint32(pass), n, workers > 0)
	}
	for name, calls := range x.Calls {
		p.Run.W.Append(traces.CudaCalls{Head: p.Run.head(p.Proc), Library: "driver", Function: name, Calls: calls, Final: true})
	}
}

func (x *Copying) pass(c *Cuda, pass uint32, n int, worker bool) int {
	p, r := c.Process, c.Run
	r.W.Append(traces.Pass{Head: r.head(p.Proc), Loader: c.loader, Pass: pass, Phase: "begin", Thread: "main", ThreadID: 7})
	if worker {
		w := r.process("worker", -1, 0)
		pid := int32(1000 + w.Proc%60)
		r.Add(p.Proc, traces.Worker{Loader: c.loader, Pass: pass, Pid: pid, Phase: "begin"})
		r.Add(w.Proc, traces.Worker{Pid: pid, Phase: "ready"}, traces.BatchFetch{Samples: 8, FetchNS: 1e6},
			traces.BatchBytes{Bytes: 1, Tensors: 2, Dtypes: x.Dtypes, Whole: true, Sharing: "file_descriptor"})
	}
	batches := cmp.Or(x.Batches, 100)
	for b := range batches {
		x.next(c, pass, b, "ok")
		if int(pass) == 0 && b < len(x.Looks) {
			look := x.Looks[b]
			look.Batch = uint32(b)
			r.Add(p.Proc, look)
		}
		if x.Batch != nil {
			x.Batch(c, n)
		}
		n++
		r.Wait(cmp.Or(x.Step, 5e6))
		if !x.Eval && !x.NoStep {
			p.steps++
			p.last = 1
		}
	}
	x.next(c, pass, batches, "stop")
	r.W.Append(traces.Pass{Head: r.head(p.Proc), Loader: c.loader, Pass: pass, Phase: "end", End: "exhausted", Delivered: uint32(batches)})
	return n
}

func (x *Copying) next(c *Cuda, pass uint32, b int, status string) {
	row := traces.BatchNext{Head: c.Run.head(c.Process.Proc), Loader: c.loader, Pass: pass, Batch: uint32(b), Worker: -1, Status: status,
		CallNS: c.Run.clock - 20_000, Steps: c.Process.steps, Optimizer: c.Process.last, Grad: !x.Eval, Rows: 8, Thread: 7}
	if x.How != nil {
		x.How(&row)
	}
	c.Run.W.Append(row)
}
