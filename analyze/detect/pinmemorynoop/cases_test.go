package pinmemorynoop_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/pinmemorynoop"
	"github.com/dptrace/dptrace/traces"
)

const mb = 1 << 20

// batch is a look at a dataclass of two tensors, 3 MB in all, that was left as it is.
func batch(change ...func(*traces.Pin)) traces.Pin {
	p := traces.Pin{Loader: 1, Class: "__main__.Batch", Left: 2, LeftBytes: 3 * mb, LargestBytes: 2 * mb, Holder: "__main__.Batch",
		Fields: "image,mask", Made: "dataclass"}
	for _, c := range change {
		c(&p)
	}
	return p
}

// dict is a look at a dictionary of two tensors.
func dict(change ...func(*traces.Pin)) traces.Pin {
	p := traces.Pin{Loader: 1, Class: "builtins.dict", Reached: 2, ReachedBytes: 3 * mb}
	for _, c := range change {
		c(&p)
	}
	return p
}

func held(class, fields, made string) func(*traces.Pin) {
	return func(p *traces.Pin) { p.Class, p.Holder, p.Fields, p.Made = class, class, fields, made }
}

// cases: want is the certainty or the status, and words that must be in what is said; those behind "not:" must not.
var cases = []struct {
	name string
	off  bool // pin_memory
	lost bool
	all  []traces.Pin
	want string
	says []string
}{
	{name: "a dataclass", all: []traces.Pin{batch(), batch()}, want: "proven",
		says: []string{"torch does not look into Batch", "2 tensors (3.1 MB a batch)", "self.mask = self.mask.pin_memory()", "batch.image.is_pinned()"}},
	{name: "a frozen one", all: []traces.Pin{batch(held("__main__.Batch", "image,mask", "frozen"))}, want: "proven",
		says: []string{"dataclasses.replace(self, image=self.image.pin_memory(), mask=", "not:self.mask ="}},
	{name: "a namespace", all: []traces.Pin{batch(held("types.SimpleNamespace", "image", ""))}, want: "proven", says: []string{"vars(batch)", "not:def pin_memory"}},
	{name: "a set", all: []traces.Pin{batch(held("builtins.set", "[0],[1]", ""))}, want: "proven", says: []string{"list(batch)"}},
	{name: "lists and dictionaries in an object", all: []traces.Pin{batch(held("data.Batch", "boxes[],masks{},meta?", ""))}, want: "proven",
		says: []string{"[t.pin_memory() for t in self.boxes]", "for k, t in self.masks.items()}", "give its class such a method"}},
	{name: "in a list", all: []traces.Pin{batch(func(p *traces.Pin) { p.Class, p.Path = "builtins.list", "[0]" })}, want: "proven", says: []string{"batch[0] is one"}},
	{name: "an array", all: []traces.Pin{{Loader: 1, Class: "numpy.ndarray", Arrays: 1, ArrayBytes: mb, LargestBytes: mb, Holder: "numpy.ndarray"}},
		want: "proven", says: []string{"1 NumPy array", "torch.from_numpy(batch)", "not:is_pinned()"}},
	{name: "one class of two", all: []traces.Pin{dict(), batch()}, want: "proven", says: []string{"1 of 2 batches"}},

	{name: "beside tensors that are pinned", all: []traces.Pin{batch(func(p *traces.Pin) { p.Class, p.Path, p.Reached, p.ReachedBytes = "builtins.dict", "['x']", 1, mb })},
		want: "likely", says: []string{"pins 1.0 MB of a batch and leaves 3.1 MB", "never goes to the device"}},
	{name: "labels beside a large image", all: []traces.Pin{batch(func(p *traces.Pin) { p.Class, p.Path, p.Reached, p.ReachedBytes = "builtins.dict", "['y']", 1, 40*mb })},
		want: "note", says: []string{"pins 41.9 MB of a batch and leaves 3.1 MB"}},
	{name: "pinned by the loop", all: []traces.Pin{batch(func(p *traces.Pin) { p.Pins = "/home/me/proj/train.py:7" })}, want: "likely",
		says: []string{"train.py:7", "pins these tensors itself"}},
	{name: "it may answer", all: []traces.Pin{batch(func(p *traces.Pin) { p.Unsure = "getattr" })}, want: "likely", says: []string{"__getattr__"}},
	{name: "another function pins", all: []traces.Pin{batch(func(p *traces.Pin) { p.Unsure = "replaced" })}, want: "likely", says: []string{"replaced"}},

	{name: "a dictionary", all: []traces.Pin{dict(), dict()}, want: "clean", says: []string{"all tensors of 2 batches"}},
	{name: "small", all: []traces.Pin{batch(func(p *traces.Pin) { p.LargestBytes = 64 << 10 })}, want: "clean", says: []string{"small"}},
	{name: "pinned by the collate function", all: []traces.Pin{batch(func(p *traces.Pin) { p.Pinned = 2 })}, want: "clean"},
	{name: "one of them is", all: []traces.Pin{batch(func(p *traces.Pin) { p.Pinned = 1 })}, want: "clean"},
	{name: "an array beside tensors", all: []traces.Pin{dict(func(p *traces.Pin) { p.Arrays, p.ArrayBytes, p.Holder = 1, mb, "numpy.ndarray" })}, want: "clean"},
	{name: "a small array", all: []traces.Pin{{Loader: 1, Class: "numpy.ndarray", Arrays: 1, ArrayBytes: 800, LargestBytes: 800, Holder: "numpy.ndarray"}}, want: "clean"},

	{name: "its own way to its items", all: []traces.Pin{{Loader: 1, Class: "data.Lazy", Unsure: "container"}}, want: "cannot-tell", says: []string{"data.Lazy"}},
	{name: "no batch", want: "cannot-tell", says: []string{"no batch was looked at"}},
	{name: "rows are lost", all: []traces.Pin{dict()}, lost: true, want: "cannot-tell"},
	{name: "not asked for, or no accelerator", off: true, want: "not-applicable", says: []string{"no accelerator"}},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			main := run.Process(-1, 0)
			run.Add(main.Proc, traces.Loader{Loader: 1, Length: -1, BatchSize: 8, File: "/home/me/proj/train.py", Line: 88, PinMemory: !c.off},
				traces.Pass{Loader: 1, Phase: "begin"})
			for i, p := range c.all {
				p.Batch = uint32(i)
				run.Add(main.Proc, traces.BatchNext{Loader: 1, Batch: uint32(i), Worker: -1, Status: "ok", Grad: true, Rows: 8}, p)
			}
			run.Add(main.Proc, traces.Pass{Loader: 1, Phase: "end", End: "exhausted", Delivered: uint32(len(c.all))})
			if c.lost {
				run.Lost("hook", "pin", 3)
			}
			run.End("0")
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, pinmemorynoop.Rule.ID, c.want, c.says)
		})
	}
}

// TestCost: with copies recorded, what they take is part of the cost, and copy-pageable says nothing of its own.
func TestCost(t *testing.T) {
	for _, recorded := range []bool{false, true} {
		run := NewRun(t)
		run.Machine("amd64", "nvidia")
		x := Copying{Pin: true, Looks: []traces.Pin{batch(), batch()}}
		if recorded {
			run.WatchCuda()
			x.Batch = func(c *Cuda, n int) { c.StagedWaited(0x7f0000000000+uint64(n%3)<<26, 2*mb) }
		}
		run.Process(-1, 0).Copying(x)
		run.Seal()
		r, err := analyze.Run(run.Open(t), analyze.Rules)
		if err != nil {
			t.Fatal(err)
		}
		says := []string{"not:block the training thread"}
		if recorded {
			says = []string{"block the training thread for 0.4 ms of each step of 5.6 ms (8.1 %)", "90 copies"}
		}
		Verdict(t, r.Findings, r.Checks, pinmemorynoop.Rule.ID, "proven", says)
		for _, f := range r.Findings {
			if f.Rule == "copy-pageable" {
				t.Errorf("beside it: %s", f.Title)
			}
		}
	}
}
