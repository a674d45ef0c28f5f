package copypageable_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/copypageable"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

const (
	heap  = uint64(0x7f00_0000_0000) // no address of it is pinned
	block = uint64(0x7e00_0000_0000) // 64 MiB of it are
	mib   = 1 << 20
	image = 16 * mib
	kib   = 1 << 10
	ms    = int64(1e6)
)

// machine has a GPU, and its driver is watched.
func machine(play func(*Run)) func(*Run) {
	return func(r *Run) {
		r.Machine("amd64", "nvidia")
		r.WatchCuda()
		play(r)
		r.Seal()
	}
}

func loop(x Copying) func(*Run) { return machine(func(r *Run) { r.Process(-1, 0).Copying(x) }) }

// fresh is another address for each of three batches.
func fresh(n int) uint64 { return heap + uint64(n%3)*64*mib }

func images(c *Cuda, n int) { c.StagedWaited(fresh(n), image) }

func pinned(c *Cuda) { c.Memory("pinned", block, 256*mib) }

// first does something else with the first batches.
func first(n int, early, late func(*Cuda, int)) func(*Cuda, int) {
	return func(c *Cuda, b int) {
		if b < n {
			early(c, b)
		} else {
			late(c, b)
		}
	}
}

const torchTo = "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py:1340 Module.to\n"

// sited is images that are asked for in turn by these places.
func sited(places map[uint32]string, turns ...uint32) func(*Cuda, int) {
	return func(c *Cuda, n int) {
		if n == 0 {
			for site, frames := range places {
				c.At(site, frames)
			}
		}
		c.Site = turns[n%len(turns)]
		images(c, n)
	}
}

// The last ones are correct programs that look like the bug, bugs in disguise, and what cannot be told.
var cases = []struct {
	name string
	play func(*Run)
	want string
	says []string
}{
	{"not pinned", loop(Copying{Batch: images}), "proven", []string{"train.py:88", "DataLoader(..., pin_memory=True)", "non_blocking=True",
		"most often of 16.8 MB", "90 copies", "without pin_memory=True", "waited for the copy's stream", "possible, and not measured", "not:(0 %)"}},
	{"not pinned, and not waited for", loop(Copying{Batch: func(c *Cuda, n int) { c.Staged(fresh(n), image) }}), "proven",
		[]string{"changes nothing for such memory", "the call itself waits"}},
	{"from a worker, always at one address", loop(Copying{Dtypes: "float32=16777216,int64=4096", Batch: func(c *Cuda, _ int) { c.StagedWaited(heap, image) }}),
		"proven", []string{"16.8 MB are the batch's float32 tensors (16.8 MB)"}},
	{"asked for at a line", loop(Copying{Batch: sited(map[uint32]string{3: torchTo + "/home/me/train.py:31 fit\n/home/me/train.py:90 <module>"}, 3)}), "proven",
		[]string{"Asked for at /home/me/train.py:31 (fit), called from /home/me/train.py:90: Python was executing that line in all 90 copies",
			"# at /home/me/train.py:31 (fit), for each tensor of the batch"}},
	{"asked for at two lines", loop(Copying{Batch: sited(map[uint32]string{3: "/home/me/train.py:31 fit", 4: "/home/me/train.py:32 fit"}, 3, 4, 4)}), "proven",
		[]string{"Asked for at several lines: of all 90 copies, 60 at /home/me/train.py:32 (fit) and 30 at /home/me/train.py:31 (fit)"}},
	{"looked at now and then", loop(Copying{Batch: sited(map[uint32]string{3: "/home/me/train.py:31 fit"}, 3, 0, 0)}), "proven",
		[]string{"that line in 30 of 90 copies"}},
	{"asked for by a library", loop(Copying{Batch: sited(map[uint32]string{3: torchTo[:len(torchTo)-1]}, 3)}), "proven",
		[]string{"not:Asked for at", "# in the loop over the loader of train.py:88, for each tensor"}},
	{"hostile: a line that was not read", loop(Copying{Batch: sited(map[uint32]string{3: "/home/me/train.py:31 fit"}, 9)}), "proven", []string{"not:Asked for at"}},
	{"hostile: lines that are none", loop(Copying{Batch: sited(map[uint32]string{3: "\n:x\n \x1b[31m:1 "}, 3)}), "proven", []string{"not:\x1b"}},
	{"two tensors", loop(Copying{Dtypes: "float32=16777216,int64=1048576", Batch: func(c *Cuda, _ int) {
		c.StagedWaited(heap, image)
		c.StagedWaited(heap+32*mib, mib)
	}}), "proven", []string{"180 copies", "1.0 MB are the batch's int64 tensors"}},
	{"two tensors of one type", loop(Copying{Dtypes: "float32=18874368", Batch: func(c *Cuda, _ int) {
		c.StagedWaited(heap, image)
		c.StagedWaited(heap+32*mib, 2*mib)
	}}), "proven", []string{"float32 tensors (18.9 MB)"}},
	{"cast on the CPU", loop(Copying{Dtypes: "uint8=4194304", Batch: func(c *Cuda, _ int) { c.StagedWaited(heap, image) }}), "proven",
		[]string{"with 4 bytes in place of each 1"}},
	{"the label alone is not pinned", loop(Copying{Pin: true, Before: pinned, Batch: func(c *Cuda, n int) {
		c.Async(block, image)
		c.StagedWaited(fresh(n), 4*mib)
	}}), "proven", []string{"pin_memory=True, and this is not what it pinned", "print(x.is_pinned())"}},
	{"one rank of two", machine(func(r *Run) {
		for rank := range 2 {
			p := r.Process(rank, 2)
			p.Group("ddp", 0, 1)
			p.Copying(Copying{Before: pinned, Batch: func(c *Cuda, n int) {
				if rank == 1 {
					images(c, n)
				} else {
					c.Async(block, image)
				}
			}})
		}
	}), "proven", []string{", on rank 1"}},
	{"several passes", loop(Copying{Passes: 4, Batches: 30, Batch: images}), "proven", []string{"110 copies"}},
	{"memory that was pinned is freed, and the allocator gets its address", loop(Copying{Before: pinned, Batch: func(c *Cuda, n int) {
		if n == 0 {
			c.Memory("freed", block, 0)
		}
		c.StagedWaited(block+uint64(n%3)*64*mib, image)
	}}), "proven", nil},
	{"an mmap was registered, and is no longer", loop(Copying{Before: func(c *Cuda) {
		c.Memory("registered", block, 256*mib)
		c.Memory("unregistered", block, 0)
	}, Batch: func(c *Cuda, n int) { c.StagedWaited(block+uint64(n%3)*64*mib, image) }}), "proven", nil},
	{"an evaluation from time to time within the pass", loop(Copying{Batch: func(c *Cuda, n int) {
		images(c, n)
		if n%25 == 24 {
			for i := range 5 {
				c.Next(9, 0, i, "ok")
				c.StagedWaited(fresh(n), image)
			}
			c.Next(9, 0, 5, "stop")
		}
	}}), "proven", []string{"in all 86 steps"}},
	{"the last batch of each pass is smaller", loop(Copying{Passes: 3, Batches: 40, Dtypes: "float32=16777216", Batch: func(c *Cuda, n int) {
		if n%40 == 39 {
			c.StagedWaited(heap, image/8)
		} else {
			c.StagedWaited(heap, image)
		}
	}}), "proven", nil},

	{"pinned, and not waited for", loop(Copying{Pin: true, Before: pinned, Batch: func(c *Cuda, n int) { c.Async(block, image) }}), "clean",
		[]string{"90 copies of its batches are from pinned memory"}},
	{"hostile: pinned, and waited for", loop(Copying{Pin: true, Before: pinned, Batch: func(c *Cuda, n int) { c.Waited(block, image) }}), "clean", nil},
	{"hostile: an mmap that was registered", loop(Copying{Before: func(c *Cuda) { c.Memory("registered", heap, 512*mib) },
		Batch: func(c *Cuda, n int) { c.Waited(fresh(n), image) }}), "clean", nil},
	{"hostile: part of a pinned block", loop(Copying{Before: pinned, Batch: func(c *Cuda, n int) { c.Async(block+uint64(n)*mib, image) }}), "clean", nil},
	{"hostile: pinned after the warm-up", loop(Copying{Before: pinned, Batch: first(10, images, func(c *Cuda, n int) { c.Async(block, image) })}), "clean", nil},
	{"hostile: nothing is larger than 64 KiB", loop(Copying{Batch: func(*Cuda, int) {}, Calls: map[string]uint64{"cuMemcpyHtoDAsync_v2": 100}}),
		"not-applicable", []string{"nothing of more than 64 KiB"}},
	{"hostile: too few", loop(Copying{Batches: 25, Batch: images}), "cannot-tell", []string{"too few copies"}},
	{"hostile: warm-up only", loop(Copying{Batches: 8, Batch: images}), "cannot-tell", []string{"after the first 10 batches"}},
	{"hostile: a tiny share of the step", loop(Copying{Step: 800 * ms, Batch: func(c *Cuda, n int) { c.StagedWaited(fresh(n), mib) }}), "note",
		[]string{"not worth changing"}},
	{"hostile: one copy in a hundred takes long", loop(Copying{Step: 100 * ms, Batch: func(c *Cuda, n int) {
		row := traces.Copy{Source: fresh(n), Bytes: 128 * kib, CallNS: 20_000}
		if n == 50 {
			row.CallNS = 3e9
		}
		c.Copy(row)
	}}), "note", nil},
	{"hostile: two of them", loop(Copying{Step: 100 * ms, Batch: func(c *Cuda, n int) {
		row := traces.Copy{Source: fresh(n), Bytes: 128 * kib, CallNS: 20_000}
		if n%50 == 30 {
			row.CallNS = 3e9
		}
		c.Copy(row)
	}}), "note", nil},
	{"hostile: one, two or three copies", loop(Copying{Batch: func(c *Cuda, n int) {
		for range 1 + n%3 {
			images(c, n)
		}
	}}), "cannot-tell", []string{"do not come in step"}},
	{"hostile: the batch is cropped in the loop", loop(Copying{Dtypes: "float32=16777216", Batch: func(c *Cuda, n int) { c.StagedWaited(fresh(n), 11*mib) }}),
		"likely", []string{"is not the batch"}},
	{"hostile: an evaluation", loop(Copying{Eval: true, Batch: images}), "note", nil},
	{"hostile: no optimizer", loop(Copying{NoStep: true, Batch: images}), "likely", nil},
	{"hostile: managed memory", loop(Copying{Before: func(c *Cuda) { c.Memory("managed", heap, 512*mib) }, Batch: images}), "cannot-tell",
		[]string{"managed"}},
	{"hostile: a range that is pinned in part", loop(Copying{Before: func(c *Cuda) { c.Memory("pinned", heap+mib, 512*mib) },
		Batch: func(c *Cuda, n int) { c.StagedWaited(heap, image) }}), "cannot-tell", nil},
	{"hostile: watched too late", machine(func(r *Run) {
		p := r.Process(-1, 0)
		r.Add(p.Proc, traces.CudaLibrary{Library: "driver", Late: true, Watched: 19, How: "multi"})
		p.Copying(Copying{Batch: images})
	}), "cannot-tell", []string{"before it was watched"}},
	{"hostile: the driver could not be watched", machine(func(r *Run) {
		p := r.Process(-1, 0)
		r.Add(p.Proc, traces.CudaLibrary{Library: "driver", Note: "no permission"})
		p.Copying(Copying{})
	}), "cannot-tell", []string{"could not be watched: no permission"}},
	{"hostile: nor in any process", func(r *Run) {
		r.Machine("amd64", "")
		p := r.Process(-1, 0)
		r.Add(0, traces.CudaLibrary{Library: "driver", Note: "no permission"})
		p.Copying(Copying{})
		r.Seal()
	}, "cannot-tell", []string{"could not be watched: no permission"}},
	{"hostile: rows of pinned memory are lost", machine(func(r *Run) {
		r.Process(-1, 0).Copying(Copying{Batch: images})
		r.Lost("kernel", "host_memory", 2)
	}), "cannot-tell", nil},
	{"hostile: rows of copies are lost", machine(func(r *Run) {
		r.Process(-1, 0).Copying(Copying{Batch: images})
		r.Lost("kernel", "copy", 2)
	}), "cannot-tell", nil},
	{"hostile: forked with what its parent had pinned", machine(func(r *Run) {
		parent := r.Process(-1, 0)
		parent.Cuda().Memory("pinned", heap, 512*mib)
		r.Wait(ms)
		r.Add(77, traces.Process{Pid: 4000, Ppid: int32(1000 + parent.Proc), Kind: "fork", Hook: "on", Cwd: "/home/me/proj", Rank: -1, LocalRank: -1})
		child := *parent
		child.Proc = 77
		child.Copying(Copying{Batch: images})
	}), "cannot-tell", nil},
	{"hostile: a machine whose device reads any memory", func(r *Run) {
		r.Machine("arm64", "nvidia")
		r.WatchCuda()
		r.Process(-1, 0).Copying(Copying{Batch: images})
		r.Seal()
	}, "cannot-tell", []string{"arm64"}},
	{"hostile: another thread copies", loop(Copying{Batch: func(c *Cuda, n int) {
		c.Aside = true
		images(c, n)
		c.Aside = false
	}}), "cannot-tell", []string{"another thread"}},
	{"hostile: a graph is captured", loop(Copying{Batch: func(c *Cuda, n int) {
		c.Copy(traces.Copy{Source: fresh(n), Bytes: image, CallNS: 3000, Capturing: true})
	}}),
		"cannot-tell", []string{"CUDA graph"}},
	{"hostile: the copies fail", loop(Copying{Batch: func(c *Cuda, n int) { c.Copy(traces.Copy{Source: fresh(n), Bytes: image, CallNS: 3e6, Result: 700}) }}),
		"cannot-tell", nil},
	{"hostile: copies to the host", loop(Copying{Batch: func(c *Cuda, n int) {
		c.Copy(traces.Copy{Target: fresh(n), Bytes: image, CallNS: 3e6, Direction: "to-host", Function: "cuMemcpyDtoHAsync_v2"})
	}, Calls: map[string]uint64{"cuMemcpyDtoHAsync_v2": 100}}), "not-applicable", nil},
	{"hostile: a direction that the call does not tell", loop(Copying{Batch: func(c *Cuda, n int) {
		row := traces.Copy{Source: fresh(n), Bytes: image, CallNS: 3e6, Function: "cuMemcpyAsync", Direction: "device"}
		c.Copy(row)
	}, Calls: map[string]uint64{"cuMemcpyAsync": 100}}), "not-applicable", nil},
	{"hostile: faster than any copy from there", loop(Copying{Batch: func(c *Cuda, n int) { c.Copy(traces.Copy{Source: fresh(n), Bytes: image, CallNS: 30_000}) }}),
		"cannot-tell", []string{"less time than the bytes need"}},
	{"hostile: pinned by a call that is not watched, and waited for", loop(Copying{Batch: func(c *Cuda, n int) { c.Waited(fresh(n), image) }}),
		"cannot-tell", []string{"less time than the bytes need"}},
	{"hostile: rows of a matrix, copied in two dimensions", loop(Copying{Batch: func(c *Cuda, n int) {
		c.Copy(traces.Copy{Source: fresh(n), Bytes: image, CallNS: 3e6, Rows: 64})
	}}), "cannot-tell", nil},
	{"hostile: weights that stay in the host's memory, a dozen layers", loop(Copying{Before: pinned, Batch: func(c *Cuda, n int) {
		c.Async(block, image)
		for i := range 12 {
			c.StagedWaited(heap+uint64(i)*64*mib, 8*mib)
		}
	}}), "cannot-tell", []string{"13 copies come between two"}},
	{"hostile: and the batch's bytes are known", loop(Copying{Pin: true, Dtypes: "float32=16777216", Before: pinned, Batch: func(c *Cuda, n int) {
		c.Async(block, image)
		for i := range 12 {
			c.StagedWaited(heap+uint64(i)*64*mib, 8*mib-4)
		}
	}}), "clean", nil},
	{"hostile: three layers of them, at the same place each time", loop(Copying{Dtypes: "uint8=1048576", Batch: func(c *Cuda, n int) {
		for i := range 3 {
			c.StagedWaited(heap+uint64(i)*64*mib, 7*mib)
		}
	}}), "cannot-tell", []string{"as weights do"}},
	{"hostile: one, and what the batch takes is not known", loop(Copying{Batch: func(c *Cuda, n int) { c.StagedWaited(heap, image) }}), "likely",
		[]string{"weights, states of the optimizer"}},
	{"hostile: states of the optimizer, at the end of the step", loop(Copying{Batch: func(c *Cuda, n int) {
		c.Run.Wait(20 * ms)
		images(c, n)
	}}), "cannot-tell", []string{"long after"}},
	{"hostile: gradients offloaded, by the threads of the backward", loop(Copying{Pin: true, Before: pinned, Batch: func(c *Cuda, n int) {
		c.Async(block, image)
		c.Aside = true
		for i := range 6 {
			c.StagedWaited(heap+uint64(i)*64*mib, 8*mib)
		}
		c.Aside = false
	}}), "clean", nil},
	{"hostile: a copy now and then", loop(Copying{Batch: func(c *Cuda, n int) {
		if n%3 == 0 {
			images(c, n)
		}
	}}), "cannot-tell", []string{"do not come in step"}},
	{"hostile: two loaders in turn", loop(Copying{Batch: func(c *Cuda, n int) {
		c.Next(9, 0, n, "ok")
		images(c, n)
	}}), "cannot-tell", []string{"right after another of it"}},
	{"hostile: a checkpoint is loaded between two passes", machine(func(r *Run) {
		p := r.Process(-1, 0)
		x := Copying{Pin: true, Batch: func(c *Cuda, n int) { c.Async(block, image) }}
		pinned(p.Cuda())
		p.Copying(x)
		for i := range 50 {
			p.Cuda().StagedWaited(heap+uint64(i)*64*mib, image)
		}
	}), "clean", nil},
	{"hostile: copies without any loader at work", machine(func(r *Run) {
		p := r.Process(-1, 0)
		for n := range 50 {
			images(p.Cuda(), n)
		}
		p.Copying(Copying{})
	}), "not-applicable", nil},

	{"CPU only", func(r *Run) {
		r.Machine("amd64", "none")
		r.Process(-1, 0).Copying(Copying{})
		r.Seal()
	}, "not-applicable", []string{"nothing is copied to a device"}},
	{"an older trace", func(r *Run) {
		r.Process(-1, 0).Copying(Copying{})
		r.Seal()
	}, "not-applicable", nil},
	{"a GPU that this program does not use", loop(Copying{}), "not-applicable", nil},
	{"a GPU, hook tier", func(r *Run) {
		r.Machine("amd64", "nvidia")
		r.Process(-1, 0).Copying(Copying{})
		r.Seal()
	}, "cannot-tell", []string{"kernel tier"}},
	{"an accelerator that batches are pinned for, hook tier", func(r *Run) {
		r.Machine("amd64", "")
		r.Process(-1, 0).Copying(Copying{Pin: true, Looks: []traces.Pin{{Class: "torch.Tensor", Reached: 1, ReachedBytes: image}}})
		r.Seal()
	}, "cannot-tell", []string{"kernel tier"}},
	{"cut", func(r *Run) {
		r.Machine("amd64", "nvidia")
		r.WatchCuda()
		r.Process(-1, 0).Copying(Copying{Before: pinned, Batch: func(c *Cuda, n int) { c.Async(block, image) }})
	}, "cannot-tell", []string{"cut"}},
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
			Verdict(t, r.Findings, r.Checks, copypageable.Rule.ID, c.want, c.says)
		})
	}
}

// TestAnyRows: whatever rows say, they are judged.
func TestAnyRows(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	number := func() int64 {
		return []int64{0, -1, 1, 70_000, image, 1 << 40, math.MaxInt64, math.MinInt64, r.Int64N(1 << 30)}[r.IntN(9)]
	}
	what := []string{"pinned", "registered", "managed", "freed", "unregistered", "?"}
	next := []string{"stream-sync", "context-sync", "launch", ""}
	for range 30 {
		run := NewRun(t)
		machine(func(run *Run) {
			run.Process(-1, 0).Copying(Copying{Dtypes: []string{"", "float32=16777216,x=,=5", "int64=9223372036854775807"}[r.IntN(3)], Pin: r.IntN(2) == 0,
				Looks: []traces.Pin{{Reached: int32(number()), ReachedBytes: number(), Left: int32(number()), LeftBytes: number()}}, Batch: func(c *Cuda, n int) {
					for range r.IntN(3) {
						c.Run.Add(c.Process.Proc, traces.HostMemory{What: what[r.IntN(len(what))], Address: uint64(number()), Bytes: number()},
							traces.Copy{Direction: "to-device", Main: r.IntN(4) > 0, Source: uint64(number()), Bytes: number(), Rows: number(), CallNS: number(),
								NextNS: number(), GapNS: number(), Next: next[r.IntN(len(next))], Capturing: r.IntN(20) == 0})
					}
				}, Calls: map[string]uint64{"cuMemcpyAsync": uint64(number())}})
		})(run)
		result, err := analyze.Run(run.Open(t), analyze.Rules)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range result.Checks {
			if strings.Contains(c.Reason, "could not judge") {
				t.Fatalf("%s: %s", c.Rule, c.Reason)
			}
		}
	}
}
