package detecttest

import (
	"github.com/dptrace/dptrace/traces"
	"maps"
	"slices"
)

// pageBytes is the size of a page, pages how many make a block of 2 MiB.
const (
	pageBytes = 4096
	pages     = 512
)

// Held is a container of objects that the dataset holds, on so many blocks of
// 2 MiB of its own.
type Held struct {
	Path, Class    string
	Items, Sampled int64
	Blocks         int
}

// Crew is a played DataLoader whose workers copy memory. Numbers of pages are
// what a worker has copied after so many batches of its life.
type Crew struct {
	Line       int32
	Dataset    string
	Workers    int
	Passes     int
	Batches    int    // per worker and pass; 0 is 4
	Method     string // "" is fork
	Persistent bool
	Break      int // batches of a worker after which the loop breaks; 0 none

	Held    []Held
	Present int                                 // pages of the containers that are in memory; 0: all
	Copied  func(pass, worker, batches int) int // of the containers, in the order of their blocks
	Other   func(pass, worker, batches int) int // of the rest of the heap
	New     func(pass, worker, batches int) int // first written, or mapped after the fork
	Freed   int                                 // pages that the main process let go of: private in the first worker, and no copies
	Smaps   func(pass, worker, batches int) int // private by smaps_rollup beyond Copied

	Kernel  bool              // the kernel counts
	Hook    bool              // the workers look at themselves
	Parent  int               // pages that the main process writes to
	Forks   bool              // the workers fork themselves
	Written map[string]uint64 // how often each worker was seen to write where: traces.CallSite.Frames
	Cut     bool              // no last counts
	Unclear bool              // where copies are is found out at the end

	Pickled     int64 // bytes for each worker
	PickleNS    int64
	PickleCPUNS int64 // of it, as the hook counts it; 0: an older one
	FirstNS     int64 // until the first batch
	Eval        bool  // no optimizer steps, and gradients are off
}

const firstBlock = 40000 // of the containers; the rest of the heap lies lower

// Work plays the loader. Its workers have been started by the process.
func (p *Process) Work(c Crew) {
	r := p.Run
	p.loaders++
	if c.Batches == 0 {
		c.Batches = 4
	}
	if c.Line == 0 {
		c.Line = 88
	}
	if c.Method == "" && c.Workers > 0 {
		c.Method = "fork"
	}
	if c.Dataset == "" {
		c.Dataset = "__main__.Records"
	}
	for _, f := range []*func(pass, worker, batches int) int{&c.Copied, &c.Other, &c.New, &c.Smaps} {
		if *f == nil {
			*f = func(int, int, int) int { return 0 }
		}
	}
	n := p.loaders
	r.W.Append(
		traces.Loader{
			Head:         r.head(p.Proc),
			Loader:       n,
			Class:        "torch.utils.data.dataloader.DataLoader",
			DatasetClass: c.Dataset,
			Length:       100_000,
			BatchSize:    8,
			NumWorkers:   int32(c.Workers),
			Persistent:   c.Persistent,
			File:         "/home/me/proj/train.py",
			Line:         c.Line,
			StartMethod:  c.Method,
		},
	)
	var procs []*Process
	for pass := range uint32(c.Passes) {
		r.W.Append(traces.Pass{Head: r.head(p.Proc), Loader: n, Pass: pass, Phase: "begin", BaseSeed: 7})
		if !c.Persistent || pass == 0 {
			c.extents(p, n, pass)
			procs = c.start(p, n, pass)
		}
		local := pass
		if !c.Persistent {
			local = 0
		}
		c.serve(p, n, pass, local, procs)
	}
	if c.Persistent {
		c.end(p, procs, uint32(c.Passes-1))
	}
}

func (c *Crew) extents(p *Process, loader, pass uint32) {
	block := int64(firstBlock)
	for i, h := range c.Held {
		if pass == 0 && c.Method == "fork" {
			p.Run.W.Append(
				traces.Extent{
					Head:    p.Run.head(p.Proc),
					Extent:  c.number(loader, i),
					Loader:  loader,
					Pass:    pass,
					Path:    h.Path,
					Class:   h.Class,
					Items:   h.Items,
					Sampled: h.Sampled,
					Starts:  []int64{block},
					Counts:  []int64{int64(h.Blocks)},
				},
			)
		}
		block += int64(h.Blocks)
	}
}

func (c *Crew) number(loader uint32, i int) uint32 { return 10*loader + uint32(i) }

func (c *Crew) start(p *Process, loader, pass uint32) (procs []*Process) {
	r := p.Run
	for i := range c.Workers {
		w := r.process("worker", -1, 0)
		procs = append(procs, w)
		pid := int32(1000 + w.Proc%60)
		r.W.Append(
			traces.Worker{
				Head:         r.head(p.Proc),
				Loader:       loader,
				Pass:         pass,
				Worker:       int32(i),
				Pid:          pid,
				Phase:        "begin",
				PickledBytes: c.Pickled,
				PickleNS:     c.PickleNS,
				PickleCPUNS:  c.PickleCPUNS,
			},
		)
		r.W.Append(traces.Worker{Head: r.head(w.Proc), Worker: int32(i), Pid: pid, Phase: "ready", Seed: int64(i)})
		c.look(w, int(pass), i, 0)
		if c.Hook {
			c.private(p, w, loader, 0, int(pass), i, 0, "begin")
		}
	}
	return procs
}

func (c *Crew) serve(p *Process, loader, pass, local uint32, procs []*Process) {
	r := p.Run
	batches, end := c.Batches, "exhausted"
	if c.Break > 0 {
		batches, end = c.Break, "dropped"
	}
	r.Wait(c.FirstNS)
	for b := range batches {
		for i, w := range procs {
			r.W.Append(
				traces.BatchFetch{
					Head:    r.head(w.Proc),
					Pass:    local,
					Worker:  int32(i),
					Batch:   uint32(b*c.Workers + i),
					Fetch:   uint32(b),
					FetchNS: 1e6,
					Samples: 8,
				},
			)
		}
		for i := range max(c.Workers, 1) {
			if c.Workers == 0 {
				i = -1
			}
			if !c.Eval {
				p.steps++
			}
			r.W.Append(
				traces.BatchNext{
					Head:      r.head(p.Proc),
					Loader:    loader,
					Pass:      pass,
					Batch:     uint32(b*max(c.Workers, 1) + max(i, 0)),
					Worker:    int32(i),
					Status:    "ok",
					Steps:     p.steps,
					Optimizer: 1,
					Grad:      !c.Eval,
				},
			)
		}
		r.Wait(1e9)
		done := int(local)*c.Batches + b + 1
		for i, w := range procs {
			last := b == batches-1 && !c.Cut
			if c.Kernel {
				c.cow(w, int(pass), i, done, false)
			}
			if c.Hook {
				when := "window"
				if last {
					when = "end"
				}
				c.private(p, w, loader, local, int(pass), i, done, when)
			}
			if c.Kernel && last && !c.Persistent {
				c.cow(w, int(pass), i, done, true)
			}
			c.look(w, int(pass), i, done)
		}
	}
	if end == "exhausted" {
		r.W.Append(
			traces.BatchNext{
				Head:      r.head(p.Proc),
				Loader:    loader,
				Pass:      pass,
				Batch:     1 << 30,
				Worker:    -2,
				Status:    "stop",
				Steps:     p.steps,
				Optimizer: 1,
				Grad:      !c.Eval,
			},
		)
	}
	r.W.Append(
		traces.Pass{Head: r.head(p.Proc), Loader: loader, Pass: pass, Phase: "end", End: end, Delivered: uint32(batches * max(c.Workers, 1))},
	)
	if c.Kernel && c.Parent > 0 {
		r.W.Append(traces.Cow{Head: r.head(p.Proc), Mapping: "parent", User: uint64(c.Parent)})
	}
}

func (c *Crew) end(_ *Process, procs []*Process, pass uint32) {
	if c.Kernel && !c.Cut {
		for i, w := range procs {
			c.cow(w, int(pass), i, c.Passes*c.Batches, true)
		}
	}
}

// cow writes what the kernel has counted.
func (c *Crew) cow(w *Process, pass, worker, batches int, final bool) {
	r := w.Run
	write := func(mapping string, first int64, n int) {
		row := traces.Cow{Head: r.head(w.Proc), Mapping: mapping, User: uint64(n), Final: final}
		for b := 0; b*pages < n; b++ {
			row.Blocks = append(row.Blocks, first+int64(b))
			row.Pages = append(row.Pages, int64(min(pages, n-b*pages)))
		}
		if n > 0 {
			r.W.Append(row)
		}
	}
	where := "anon"
	if c.Unclear && !final {
		where = "unknown"
	}
	write(where, firstBlock, c.Copied(pass, worker, batches))
	write("heap", 100, c.Other(pass, worker, batches))
	write("new", 90000, c.New(pass, worker, batches))
	site := uint32(0)
	for _, frames := range slices.Sorted(maps.Keys(c.Written)) {
		site++
		if frames != "" {
			r.W.Append(traces.CallSite{Head: r.head(w.Proc), Site: site, Frames: frames})
		}
		r.W.Append(traces.Touch{Head: r.head(w.Proc), Site: site, Seen: c.Written[frames]})
	}
	if c.Forks {
		r.W.Append(traces.Cow{Head: r.head(w.Proc), Mapping: "parent", User: 999, Final: final})
	}
}

// private writes what the worker sees in its pagemap.
func (c *Crew) private(p, w *Process, loader, local uint32, pass, worker, batches int, when string) {
	r := w.Run
	if len(c.Held) == 0 {
		return
	}
	total := 0
	for _, h := range c.Held {
		total += h.Blocks * pages
	}
	present := c.Present
	if present == 0 {
		present = total
	}
	row := func(extent uint32, present, private int) {
		r.W.Append(
			traces.Private{
				Head:    r.head(w.Proc),
				Pass:    local,
				Worker:  int32(worker),
				Fetch:   uint32(batches),
				When:    when,
				Extent:  extent,
				Parent:  int32(1000 + p.Proc%60),
				Present: int64(present) * pageBytes,
				Private: int64(private) * pageBytes,
				DurNS:   1e6,
			},
		)
	}
	copied, fresh := 0, 0
	if when != "begin" {
		copied, fresh = c.Copied(pass, worker, batches), c.New(pass, worker, batches)
		if worker == 0 {
			copied += c.Freed
		}
	}
	row(0, present+fresh, copied+fresh)
	left := copied
	for i, h := range c.Held {
		n := min(left, h.Blocks*pages)
		left -= n
		row(c.number(loader, i), present*h.Blocks*pages/total, n)
	}
}

// look writes what smaps_rollup says.
func (c *Crew) look(w *Process, pass, worker, batches int) {
	copied, fresh := 0, 0
	if batches > 0 {
		copied = c.Copied(pass, worker, batches) + c.Other(pass, worker, batches) + c.Smaps(pass, worker, batches)
		fresh = c.New(pass, worker, batches)
	}
	const base = 200 << 20
	w.Run.W.Append(
		traces.Memory{
			Head:         w.Run.head(w.Proc),
			Rss:          int64(base + fresh*pageBytes),
			Anonymous:    int64(base/2 + fresh*pageBytes),
			PrivateDirty: int64((copied + fresh) * pageBytes),
			SharedDirty:  int64(base/2 - copied*pageBytes),
			Source:       "smaps_rollup",
		},
	)
}

// Limit writes how much memory there may be used, and how much is.
func (r *Run) Limit(scope, path string, limit, usage int64) {
	r.W.Append(traces.Limit{Head: r.head(0), Scope: scope, Path: path, Limit: limit, Usage: usage, OomKills: -1})
}

// Host writes the machine.
func (r *Run) Host(memory int64) {
	r.W.Append(traces.Host{Head: r.head(0), Hostname: "host-1", BootID: "boot", Arch: "amd64", CPUs: 8, MemTotal: memory, PageSize: pageBytes})
}

// Lost notes that the recorder lost rows of a table.
func (r *Run) Lost(source, table string, count uint64) {
	r.W.Append(traces.Lost{Head: r.head(0), Source: source, Table: table, Count: count, Reason: "a map was full"})
}
