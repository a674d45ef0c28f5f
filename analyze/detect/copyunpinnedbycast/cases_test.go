package copyunpinnedbycast_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/copyunpinnedbycast"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

const (
	heap  = uint64(0x7f00_0000_0000) // no address of it is pinned
	block = uint64(0x7e00_0000_0000) // 256 MiB of it are
	mib   = 1 << 20
	image = 16 * mib
)

func machine(play func(*Run)) func(*Run) {
	return func(r *Run) {
		r.Machine("amd64", "nvidia")
		r.WatchCuda()
		play(r)
		r.Seal()
	}
}

// with changes the plain bug: one float32 tensor is pinned, and copied as bfloat16.
func with(change func(*Copying)) func(*Run) {
	x := Copying{Pin: true, Dtypes: "float32=16777216", Looks: []traces.Pin{tensor(image, 1), tensor(image, 1)}, Batch: copied(image / 2)}
	change(&x)
	return machine(func(r *Run) {
		p := r.Process(-1, 0)
		p.Cuda().Memory("pinned", block, 256*mib)
		p.Copying(x)
	})
}

// tensor is a look at a batch of which so much was pinned.
func tensor(bytes int64, n int32) traces.Pin {
	return traces.Pin{Class: "builtins.list", Reached: n, ReachedBytes: bytes}
}

func fresh(n int) uint64 { return heap + uint64(n%3)*64*mib }

// copied is a copy of so much out of memory that is not pinned.
func copied(bytes int64) func(*Cuda, int) {
	return func(c *Cuda, n int) { c.StagedWaited(fresh(n), bytes) }
}

// The last ones are correct programs that look like the bug, bugs in disguise, and what cannot be told.
var cases = []struct {
	name string
	play func(*Run)
	want string
	says []string
}{
	{"as bfloat16", with(func(*Copying) {}), "proven", []string{"cast or sliced on the CPU", "8.4 MB are 1/2 of the batch's float32 tensors (16.8 MB)",
		"The pin step got to 1 tensor of a batch (16.8 MB)", "x = x.to(device, non_blocking=True).to(torch.bfloat16)", "train.py:88"}},
	{"as float64", with(func(x *Copying) { x.Batch = copied(2 * image) }), "proven", []string{".to(torch.float64)", "cast on the CPU", "8 bytes in place of each 4", "not:slice"}},
	{"bytes as float32", with(func(x *Copying) { x.Dtypes, x.Batch = "uint8=16777216", copied(4*image) }), "proven", []string{".to(torch.float32)"}},
	{"without workers, twice its bytes", with(func(x *Copying) { x.Dtypes, x.Batch = "", copied(2*image) }), "proven",
		[]string{"tensors that were pinned (16.8 MB)", ".to(dtype)"}},
	{"beside a small label", with(func(x *Copying) {
		x.Looks = []traces.Pin{tensor(image+64, 2)}
		x.Dtypes = "float32=16777216,int64=4096"
	}), "proven", nil},
	{"the image is cast, the mask is not", with(func(x *Copying) {
		x.Looks = []traces.Pin{tensor(image+8*mib, 2)}
		x.Dtypes = "float32=16777216,int64=8388608"
		x.Batch = func(c *Cuda, n int) {
			c.StagedWaited(fresh(n), image/2)
			c.Async(block, 8*mib)
		}
	}), "likely", []string{"8.4 MB"}}, // the bytes of the one cast are those of the other
	{"the image is cast, the mask is not, and they differ", with(func(x *Copying) {
		x.Looks = []traces.Pin{tensor(image+6*mib, 2)}
		x.Dtypes = "float32=16777216,int64=6291456"
		x.Batch = func(c *Cuda, n int) {
			c.StagedWaited(fresh(n), image/2)
			c.Async(block, 6*mib)
		}
	}), "proven", nil},
	{"with non_blocking=True", with(func(x *Copying) { x.Batch = func(c *Cuda, n int) { c.Staged(fresh(n), image/2) } }), "proven", nil},

	{"a slice with steps, as many bytes", with(func(x *Copying) { x.Batch = copied(image) }), "likely",
		[]string{"something else is copied", "not made of the pinned tensors", "x.contiguous()"}},
	{"clean: what was pinned is copied", with(func(x *Copying) { x.Batch = func(c *Cuda, n int) { c.Async(block, image) } }), "clean", nil},
	{"clean: and waited for", with(func(x *Copying) { x.Batch = func(c *Cuda, n int) { c.Waited(block, image) } }), "clean", nil},
	{"hostile: cast on the device", with(func(x *Copying) { x.Batch = func(c *Cuda, n int) { c.Async(block, image) } }), "clean", nil},
	{"hostile: cast into pinned memory by the program", with(func(x *Copying) { x.Batch = func(c *Cuda, n int) { c.Async(block, image/2) } }), "clean", nil},
	{"hostile: a mask that is computed in the loop, half as large, beside the batch", with(func(x *Copying) {
		x.Batch = func(c *Cuda, n int) {
			c.Async(block, image)
			c.StagedWaited(fresh(n), image/2)
		}
	}), "clean", nil},
	{"hostile: a part of the batch is cropped in the loop", with(func(x *Copying) { x.Batch = copied(11 * mib) }), "likely", nil},
	{"hostile: nothing is pinned, as pin_memory=True was not given", with(func(x *Copying) { x.Pin, x.Looks = false, nil }), "not-applicable", nil},
	{"hostile: the pin step leaves the batch alone", with(func(x *Copying) {
		x.Looks = []traces.Pin{{Class: "__main__.Batch", Holder: "__main__.Batch", Left: 1, LeftBytes: image, LargestBytes: image, Fields: "image"}}
		x.Batch = copied(image)
	}), "not-applicable", []string{"pin-memory-noop"}},
	{"hostile: it pins one part and leaves another", with(func(x *Copying) {
		x.Looks = []traces.Pin{{Class: "builtins.dict", Reached: 1, ReachedBytes: mib, Holder: "__main__.Batch", Left: 1, LeftBytes: image, LargestBytes: image,
			Fields: "image", Path: "['b']"}}
	}), "cannot-tell", []string{"pin-memory-noop"}},
	{"hostile: no look at any batch", with(func(x *Copying) { x.Looks = nil }), "cannot-tell", nil},
	{"hostile: a tiny share", with(func(x *Copying) { x.Step = 900e6 }), "note", nil},
	{"hostile: an evaluation", with(func(x *Copying) { x.Eval = true }), "note", nil},
	{"hostile: the label alone is cast, and has less than 64 KiB", with(func(x *Copying) {
		x.Looks = []traces.Pin{tensor(image+32<<10, 2)}
		x.Batch = func(c *Cuda, n int) { c.Async(block, image) }
	}), "clean", nil},
	{"hostile: a dozen layers whose weights stay on the CPU", with(func(x *Copying) {
		x.Batch = func(c *Cuda, n int) {
			c.Async(block, image)
			for i := range 12 {
				c.StagedWaited(heap+uint64(i)*64*mib, image/2)
			}
		}
	}), "clean", nil},
	{"hostile: what was pinned before is not known", machine(func(r *Run) {
		p := r.Process(-1, 0)
		r.Add(p.Proc, traces.CudaLibrary{Library: "driver", Late: true, Watched: 19, How: "multi"})
		p.Copying(Copying{Pin: true, Dtypes: "float32=16777216", Looks: []traces.Pin{tensor(image, 1)}, Batch: copied(image / 2)})
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
			Verdict(t, r.Findings, r.Checks, copyunpinnedbycast.Rule.ID, c.want, c.says)
		})
	}
}

// What copy-pageable says of the same copies is said here.
func TestExplains(t *testing.T) {
	run := NewRun(t)
	cases[0].play(run)
	r, err := analyze.Run(run.Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Rule == "copy-pageable" {
			t.Errorf("%s beside %s", f.Title, copyunpinnedbycast.Rule.ID)
		}
	}
	for _, c := range r.Checks {
		if c.Rule == "copy-pageable" && c.Status != finding.CannotTell {
			t.Errorf("copy-pageable: %s", c.Status)
		}
	}
}
