package copypageable_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

// asking is a loop whose copies the hook tells of; the kernel tier is not there.
func asking(x Copying) func(*Run) {
	return func(r *Run) {
		r.Machine("amd64", "nvidia")
		r.Process(-1, 0).Copying(x)
		r.Seal()
	}
}

// row is a copy as the hook sees it: torch's call takes the copy, and the wait.
func row(memory string, async bool, made string, ns int64) func(*Cuda, int) {
	return func(c *Cuda, n int) {
		c.Asked(traces.Copy{Source: fresh(n), Bytes: image, CallNS: ns, Async: async, Memory: memory, Made: made})
	}
}

var pinLooks = []traces.Pin{{Class: "torch.Tensor", Reached: 1, ReachedBytes: image}, {Class: "torch.Tensor", Reached: 1, ReachedBytes: image}}

const (
	long  = int64(3_000_000)
	short = int64(9_000)
	f32   = "float32=16777216"
)

// What is asked of torch is not what the driver does: nothing is proven by it. The last ones are correct programs that look like the
// bug, and bugs in disguise.
func TestAsked(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(*Run)
		want map[string]string
		says []string // of the rule that finds something
	}{
		{"not pinned", asking(Copying{Batch: row("pageable", false, "", long)}), map[string]string{"copy-pageable": "likely", "copy-pinned-sync": "not-applicable"},
			[]string{"as torch says", "90 copies", "the driver was not watched", "non_blocking=True"}},
		{"not pinned, and its bytes are the batch's", asking(Copying{Dtypes: f32, Batch: row("pageable", true, "", long)}), map[string]string{"copy-pageable": "likely"}, nil},
		{"pinned, and waited for", asking(Copying{Pin: true, Dtypes: f32, Batch: row("pinned", false, "", long)}), map[string]string{
			"copy-pinned-sync": "likely", "copy-pageable": "clean"}, []string{"without non_blocking=True"}},
		{"cast on the CPU", asking(Copying{Pin: true, Dtypes: f32, Looks: pinLooks, Batch: row("pinned", false, "cast", long)}), map[string]string{
			"copy-unpinned-by-cast": "likely", "copy-pageable": "cannot-tell"}, []string{"torch first makes such a tensor on the CPU"}},
		{"strided", asking(Copying{Pin: true, Dtypes: f32, Looks: pinLooks, Batch: row("pinned", true, "strided", long)}), map[string]string{
			"copy-unpinned-by-cast": "likely"}, []string{"cast or sliced"}},
		{"pinned, and not waited for", asking(Copying{Pin: true, Dtypes: f32, Looks: pinLooks, Batch: row("pinned", true, "", short)}), map[string]string{
			"copy-pageable": "clean", "copy-pinned-sync": "clean", "copy-unpinned-by-cast": "clean"}, nil},

		{"hostile: pinned, and whether it is the batch is not known", asking(Copying{Pin: true, Batch: row("pinned", true, "", short)}), map[string]string{
			"copy-pageable": "cannot-tell", "copy-pinned-sync": "cannot-tell"}, nil},
		{"hostile: a part of the batch is copied where nobody sees it", asking(Copying{Pin: true, Dtypes: f32 + ",int64=8388608", Batch: row("pinned", true, "", short)}),
			map[string]string{"copy-pageable": "cannot-tell", "copy-pinned-sync": "cannot-tell"}, nil},
		{"hostile: cast by the device, perhaps", asking(Copying{Pin: true, Dtypes: f32, Batch: row("pinned", true, "cast", short)}), map[string]string{
			"copy-pageable": "cannot-tell", "copy-pinned-sync": "cannot-tell"}, nil},
		{"hostile: nobody can say whether it is pinned", asking(Copying{Batch: row("", false, "", long)}), map[string]string{"copy-pageable": "cannot-tell"}, nil},
		{"hostile: unified memory, which no call waits for", asking(Copying{Batch: row("pageable", true, "", short)}), map[string]string{
			"copy-pageable": "cannot-tell"}, nil},
		{"hostile: a machine whose device reads any memory", func(r *Run) {
			r.Machine("arm64", "nvidia")
			r.Process(-1, 0).Copying(Copying{Batch: row("pageable", false, "", long)})
			r.Seal()
		}, map[string]string{"copy-pageable": "cannot-tell"}, nil},
		{"hostile: another thread copies", asking(Copying{Batch: func(c *Cuda, n int) {
			c.Aside = true
			row("pageable", false, "", long)(c, n)
			c.Aside = false
		}}), map[string]string{"copy-pageable": "cannot-tell"}, nil},
		{"hostile: a graph is captured", asking(Copying{Batch: func(c *Cuda, n int) {
			c.Asked(traces.Copy{Source: fresh(n), Bytes: image, CallNS: short, Async: true, Capturing: true})
		}}), map[string]string{"copy-pageable": "cannot-tell"}, nil},
		{"hostile: too few", asking(Copying{Batches: 25, Batch: row("pageable", false, "", long)}), map[string]string{"copy-pageable": "cannot-tell"}, nil},
		{"hostile: a tiny share", asking(Copying{Step: 800 * ms, Batch: row("pageable", false, "", long)}), map[string]string{"copy-pageable": "note"}, nil},
		{"hostile: an evaluation", asking(Copying{Eval: true, Batch: row("pageable", false, "", long)}), map[string]string{"copy-pageable": "note"}, nil},
		{"hostile: weights that stay on the host", asking(Copying{Pin: true, Dtypes: f32, Batch: func(c *Cuda, n int) {
			row("pinned", true, "", short)(c, n)
			for i := range 12 {
				c.Asked(traces.Copy{Source: heap + uint64(i)*64*mib, Bytes: 11 * mib, CallNS: long, Memory: "pageable"})
			}
		}}), map[string]string{"copy-pageable": "clean", "copy-pinned-sync": "clean"}, nil},
		{"most batches are left out for want of time", asking(Copying{Batches: 300, Batch: func(c *Cuda, n int) {
			if n%10 == 0 {
				skipped := uint32(9)
				if n == 0 {
					skipped = 0
				}
				c.Asked(traces.Copy{Source: fresh(n), Bytes: image, CallNS: long, Memory: "pageable", Skipped: skipped})
			}
			if n == 299 { // as the process ends
				c.Asked(traces.Copy{Skipped: 9})
			}
		}}), map[string]string{"copy-pageable": "likely"}, []string{"29 copies"}},
		{"hostile: only the end is left out", asking(Copying{Batches: 300, Batch: func(c *Cuda, n int) {
			switch {
			case n < 100:
				row("pageable", false, "", long)(c, n)
			case n == 299:
				c.Asked(traces.Copy{Skipped: 200})
			}
		}}), map[string]string{"copy-pageable": "likely"}, []string{"90 copies"}},
		{"the driver was watched: its rows count", machine(func(r *Run) {
			p := r.Process(-1, 0)
			r.Add(p.Proc, traces.CudaLibrary{Library: "driver", Watched: 19, How: "multi"})
			p.Copying(Copying{Batch: func(c *Cuda, n int) {
				c.Asked(traces.Copy{Source: fresh(n), Bytes: image, CallNS: 1000, Memory: "pinned"})
				images(c, n)
			}})
		}), map[string]string{"copy-pageable": "proven", "copy-pinned-sync": "not-applicable"}, []string{"90 copies"}},
		{"the driver was watched, and saw none", machine(func(r *Run) {
			p := r.Process(-1, 0)
			r.Add(p.Proc, traces.CudaLibrary{Library: "driver", Watched: 19, How: "multi"})
			p.Copying(Copying{Batch: row("pageable", false, "", long)})
		}), map[string]string{"copy-pageable": "not-applicable"}, nil},
		{"rows of the hook are lost", func(r *Run) {
			r.Machine("amd64", "nvidia")
			r.Process(-1, 0).Copying(Copying{Pin: true, Dtypes: f32, Batch: row("pinned", true, "", short)})
			r.Lost("hook", "", 3)
			r.Seal()
		}, map[string]string{"copy-pageable": "cannot-tell"}, nil},
		{"asked for, and nothing came", func(r *Run) {
			r.Machine("amd64", "nvidia")
			p := r.Process(-1, 0)
			p.Hooked("DPTRACE_NATIVE=0")
			p.Copying(Copying{})
			r.Seal()
		}, map[string]string{"copy-pageable": "cannot-tell"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			for rule, want := range c.want {
				var says []string
				if want == "likely" || want == "proven" {
					says = c.says
				}
				Verdict(t, r.Findings, r.Checks, rule, want, says)
			}
		})
	}
}
