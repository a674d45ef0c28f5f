package copypinnedsync_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/copypinnedsync"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

const (
	heap  = uint64(0x7f00_0000_0000) // no address of it is pinned
	block = uint64(0x7e00_0000_0000) // 256 MiB of it are
	mib   = 1 << 20
	image = 16 * mib
	ms    = int64(1e6)
)

func machine(play func(*Run)) func(*Run) {
	return func(r *Run) {
		r.Machine("amd64", "nvidia")
		r.WatchCuda()
		play(r)
		r.Seal()
	}
}

func loop(x Copying) func(*Run) {
	return machine(func(r *Run) {
		p := r.Process(-1, 0)
		p.Cuda().Memory("pinned", block, 256*mib)
		p.Copying(x)
	})
}

// with changes the plain bug: pinned by the loader, copied without non_blocking=True.
func with(change func(*Copying)) func(*Run) {
	x := Copying{Pin: true, Batch: waited, Calls: map[string]uint64{"cuMemcpyHtoDAsync_v2": 100, "cuStreamSynchronize": 100}}
	change(&x)
	return loop(x)
}

// place of a batch: the allocator has three blocks in turn.
func place(n int) uint64 { return block + uint64(n%3)*64*mib }

func waited(c *Cuda, n int) { c.Waited(place(n), image) }

func async(c *Cuda, n int) { c.Async(place(n), image) }

// after is a copy with something after it.
func after(next string, gap, took int64) func(*Cuda, int) {
	return func(c *Cuda, n int) {
		c.Copy(traces.Copy{Source: place(n), Bytes: image, CallNS: 3000, Next: next, GapNS: gap, NextNS: took})
	}
}

// The last ones are correct programs that look like the bug, bugs in disguise, and what cannot be told.
var cases = []struct {
	name string
	play func(*Run)
	want string
	says []string
}{
	{"waited for", with(func(*Copying) {}), "proven", []string{"3.6 ms of each step of 8.7 ms (41 %)", "2 us after the copy's call", "non_blocking=True",
		"loader of train.py:88", "what the wait exposes, not what the copy takes", "The wait is for all that was queued", "take 0.3 ms", "possible, and not measured"}},
	{"by a worker, at one address", with(func(x *Copying) {
		x.Dtypes, x.Batch = "float32=16777216", func(c *Cuda, _ int) { c.Waited(block, image) }
	}), "proven", []string{"float32 tensors"}},
	{"two tensors, the second is waited for", with(func(x *Copying) {
		x.Batch = func(c *Cuda, n int) {
			async(c, n)
			c.Waited(place(n)+32*mib, mib)
		}
	}), "proven", []string{"90 copies"}},
	{"one rank of two", machine(func(r *Run) {
		for rank := range 2 {
			p := r.Process(rank, 2)
			p.Group("ddp", 0, 1)
			p.Cuda().Memory("pinned", block, 256*mib)
			x := Copying{Pin: true, Batch: async, Calls: map[string]uint64{"cuStreamSynchronize": 100}}
			if rank == 1 {
				x.Batch = waited
			}
			p.Copying(x)
		}
	}), "proven", []string{", on rank 1"}},
	{"a value of the loss every 50 steps", with(func(x *Copying) { x.Calls["cuMemcpyDtoHAsync_v2"] = 2 }), "proven", nil},
	{"while the pinned memory of before is not known", machine(func(r *Run) {
		p := r.Process(-1, 0)
		r.Add(p.Proc, traces.CudaLibrary{Library: "driver", Late: true, Watched: 19, How: "multi"})
		p.Cuda().Memory("pinned", block, 256*mib)
		p.Copying(Copying{Pin: true, Batch: waited, Calls: map[string]uint64{"cuStreamSynchronize": 100}})
	}), "proven", nil},
	{"on a machine whose device reads any memory", func(r *Run) {
		r.Machine("arm64", "nvidia")
		r.WatchCuda()
		p := r.Process(-1, 0)
		p.Cuda().Memory("pinned", block, 256*mib)
		p.Copying(Copying{Pin: true, Batch: waited, Calls: map[string]uint64{"cuStreamSynchronize": 100}})
		r.Seal()
	}, "proven", nil},

	{"not waited for", with(func(x *Copying) { x.Batch = async }), "clean", []string{"goes on after 90 copies"}},
	{"hostile: .item() in each step", with(func(x *Copying) { x.Calls["cuMemcpyDtoHAsync_v2"] = 100 }), "likely", []string{"only moves there"}},
	{"hostile: torch.cuda.synchronize() at the end of each step", with(func(x *Copying) { x.Calls["cuCtxSynchronize"] = 100 }), "likely", nil},
	{"hostile: .item() by a call that does not tell its direction", with(func(x *Copying) { x.Calls["cuMemcpyAsync"] = 100 }), "likely", nil},
	{"hostile: torch.cuda.synchronize() of CUDA 13", with(func(x *Copying) { x.Calls["cuCtxSynchronize_v2"] = 100 }), "likely", nil},
	{"hostile: how often it waits otherwise is not known", with(func(x *Copying) { x.Calls = nil }), "likely", nil},
	{"hostile: the program pins a buffer itself and writes to it again", with(func(x *Copying) { x.Pin = false }), "likely", []string{"writes to the same pinned memory"}},
	{"a slow machine: the wait comes later, and the blocks change", with(func(x *Copying) { x.Batch = after("stream-sync", 12_000, 3*ms) }), "proven", nil},
	{"hostile: the batch goes through a buffer that it pins itself, and it waits before it fills that again", with(func(x *Copying) {
		x.Batch = func(c *Cuda, _ int) {
			c.Copy(traces.Copy{Source: block, Bytes: image, CallNS: 3000, Next: "stream-sync", GapNS: 12_000, NextNS: 3 * ms})
		}
	}), "likely", []string{"writes to the same pinned memory"}},
	{"hostile: .cpu() right after", with(func(x *Copying) {
		x.Batch = func(c *Cuda, n int) {
			c.Copy(traces.Copy{Source: place(n), Bytes: image, CallNS: 3000, Next: "copy", GapNS: 5000})
			c.Copy(traces.Copy{Target: heap, Bytes: mib, CallNS: 3000, Direction: "to-host", Function: "cuMemcpyDtoHAsync_v2", Next: "stream-sync", NextNS: 3 * ms})
		}
	}), "clean", nil},
	{"hostile: a wait long after", with(func(x *Copying) { x.Batch = after("stream-sync", 500_000, 3*ms) }), "clean", nil},
	{"hostile: a wait for another stream", with(func(x *Copying) { x.Batch = after("other-stream-sync", 3000, 3*ms) }), "clean", nil},
	{"hostile: a launch first", with(func(x *Copying) { x.Batch = after("launch", 3000, 0) }), "clean", nil},
	{"hostile: an event of a prefetcher", with(func(x *Copying) { x.Batch = after("event", 3000, 0) }), "clean", nil},
	{"hostile: synchronize() right after, to take the time", with(func(x *Copying) { x.Batch = after("context-sync", 5000, 3*ms) }), "note",
		[]string{"waits for the whole device", "takes the time", "cuCtxSynchronize"}},
	{"hostile: warm-up only", with(func(x *Copying) {
		x.Batch = func(c *Cuda, n int) {
			if n < 10 {
				waited(c, n)
			} else {
				async(c, n)
			}
		}
	}), "clean", nil},
	{"hostile: a tiny share", with(func(x *Copying) { x.Step = 900 * ms }), "note", []string{"not worth changing"}},
	{"hostile: an evaluation", with(func(x *Copying) { x.Eval = true }), "note", nil},
	{"hostile: no optimizer", with(func(x *Copying) { x.NoStep = true }), "likely", nil},
	{"hostile: weights from pinned memory, a dozen layers", with(func(x *Copying) {
		x.Batch = func(c *Cuda, n int) {
			for i := range 12 {
				c.Waited(block+uint64(i)*8*mib, 8*mib)
			}
		}
	}), "cannot-tell", nil},
	{"hostile: not pinned", with(func(x *Copying) {
		x.Batch = func(c *Cuda, n int) { c.StagedWaited(heap+uint64(n%3)*64*mib, image) }
	}), "not-applicable", []string{"nothing is copied from pinned memory"}},
	{"hostile: freed before, and the allocator has it", with(func(x *Copying) {
		x.Before = func(c *Cuda) { c.Memory("freed", block, 0) }
	}), "not-applicable", nil},
	{"hostile: a free may be lost", machine(func(r *Run) {
		p := r.Process(-1, 0)
		p.Cuda().Memory("pinned", block, 256*mib)
		p.Copying(Copying{Pin: true, Batch: waited})
		r.Lost("kernel", "host_memory", 1)
	}), "cannot-tell", nil},
	{"hostile: a free may be lost with rows of copies", machine(func(r *Run) {
		p := r.Process(-1, 0)
		p.Cuda().Memory("pinned", block, 256*mib)
		p.Copying(Copying{Pin: true, Batch: waited})
		r.Lost("kernel", "copy", 1)
	}), "cannot-tell", nil},
	{"hostile: another thread waits", with(func(x *Copying) {
		x.Batch = func(c *Cuda, n int) {
			c.Aside = true
			waited(c, n)
			c.Aside = false
		}
	}), "cannot-tell", []string{"another thread"}},
	{"hostile: managed memory", with(func(x *Copying) {
		x.Before = func(c *Cuda) { c.Memory("managed", heap, 256*mib) }
		x.Batch = func(c *Cuda, n int) { c.Waited(heap, image) }
	}), "cannot-tell", nil},
	{"hostile: too few", with(func(x *Copying) { x.Batches = 25 }), "cannot-tell", nil},
	{"CPU only", func(r *Run) {
		r.Machine("amd64", "none")
		r.Process(-1, 0).Copying(Copying{})
		r.Seal()
	}, "not-applicable", nil},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, copypinnedsync.Rule.ID, c.want, c.says)
		})
	}
}
