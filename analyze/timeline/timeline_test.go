package timeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze/collect"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

func build(t *testing.T, r *Run) *timeline.Timeline {
	t.Helper()
	run := r.Open(t)
	e, err := collect.Read(run, timeline.Source)
	if err != nil {
		t.Fatal(err)
	}
	return collect.Of(e, timeline.Source)
}

func noGens(int, int) []*Gen { return nil }

// TestWorkersOfEachPass: 100 generations share 60 pids.
func TestWorkersOfEachPass(t *testing.T) {
	for _, persistent := range []bool{false, true} {
		r := NewRun(t)
		o := r.Process(-1, 0).Open(Loader{Workers: 3, Batches: 5, Persistent: persistent, Start: noGens})
		for range 100 {
			o.Pass(Train)
		}
		r.Seal()
		tl := build(t, r)
		if len(tl.Loaders) != 1 || len(tl.Loaders[0].Passes) != 100 {
			t.Fatalf("loaders: %+v", tl.Loaders)
		}
		seen := map[*timeline.Process]bool{}
		for _, p := range tl.Loaders[0].Passes {
			if len(p.Workers) != 3 || p.Delivered != 15 || !p.Exhausted || p.Abandoned || p.Role != timeline.Train || !p.Seeded {
				t.Fatalf("pass %d: %+v", p.Number, p)
			}
			for i, w := range p.Workers {
				if w.Number != i || w.Process == nil || w.Windows != 5 {
					t.Fatalf("pass %d worker %d: %+v", p.Number, i, w)
				}
				if seen[w.Process] && !persistent {
					t.Fatalf("pass %d worker %d: its process served before", p.Number, i)
				}
				seen[w.Process] = true
			}
		}
		if want := map[bool]int{false: 300, true: 3}[persistent]; len(seen) != want {
			t.Errorf("persistent %v: %d worker processes, want %d", persistent, len(seen), want)
		}
	}
}

// TestProcess: each process is found by its part and number, and no other.
func TestProcess(t *testing.T) {
	r := NewRun(t)
	o := r.Process(-1, 0).Open(Loader{Workers: 2, Batches: 3, Start: noGens})
	o.Pass(Train)
	r.Seal()
	tl := build(t, r)
	most := uint32(0)
	for _, p := range tl.Processes {
		if tl.Process(p.Part, p.Proc) != p {
			t.Errorf("process %d is not found", p.Proc)
		}
		most = max(most, p.Proc)
	}
	part := tl.Processes[0].Part
	if len(tl.Processes) < 3 || tl.Process(part, most+1) != nil || tl.Process(part, 0) != nil || tl.Process(nil, 1) != nil {
		t.Errorf("%d processes, or some that are not there", len(tl.Processes))
	}
}

// TestLoaders: which objects are one loader, and what the ranks call the same.
func TestLoaders(t *testing.T) {
	l := Loader{Workers: 1, Start: noGens}
	other := l
	other.Line = 90
	longer := l
	longer.Length = 65
	for _, c := range []struct {
		name string
		play func(*Run)
		want string // ID:passes of each
	}{
		{"made anew for each epoch", func(r *Run) {
			p := r.Process(-1, 0)
			for range 3 {
				p.Open(l).Pass(Train)
			}
		}, "1:3"},
		{"two made before either is used", func(r *Run) {
			p := r.Process(-1, 0)
			a, b := p.Open(l), p.Open(l)
			a.Pass(Train)
			b.Pass(Train)
			a.Pass(Train)
		}, "1:2 2:1"},
		{"two lines, two lengths", func(r *Run) {
			p := r.Process(-1, 0)
			p.Open(l).Pass(Train)
			p.Open(other).Pass(Train)
			p.Open(longer).Pass(Train)
		}, "1:1 2:1 3:1"},
		{"made and never used", func(r *Run) {
			p := r.Process(-1, 0)
			p.Open(other)
			p.Open(l).Pass(Train)
		}, "1:1"},
		{"two ranks", func(r *Run) {
			for rank := range 2 {
				p := r.Process(rank, 2)
				p.Open(l).Pass(Train)
				p.Open(other).Pass(Eval)
			}
		}, "1:1 1:1 2:1 2:1"},
		{"two ranks with parts of other lengths", func(r *Run) {
			r.Process(0, 2).Open(l).Pass(Train)
			r.Process(1, 2).Open(longer).Pass(Train)
		}, "1:1 1:1"},
		{"two ranks, each with two of one line", func(r *Run) {
			for rank := range 2 {
				p := r.Process(rank, 2)
				a, b := p.Open(l), p.Open(l)
				a.Pass(Train)
				b.Pass(Train)
			}
		}, "1:1 1:1 2:1 2:1"},
	} {
		r := NewRun(t)
		c.play(r)
		r.Seal()
		var got []string
		for _, l := range build(t, r).Loaders {
			got = append(got, fmt.Sprintf("%d:%d", l.ID, len(l.Passes)))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %s, want %s", c.name, strings.Join(got, " "), c.want)
		}
	}
}

func TestGap(t *testing.T) {
	play := func(how Pass, seal bool, more func(*Run)) string {
		r := NewRun(t)
		o := r.Process(-1, 0).Open(Loader{Workers: 2, Start: noGens})
		o.Pass(how)
		if more != nil {
			more(r)
		}
		if seal {
			r.Seal()
		}
		tl := build(t, r)
		return tl.Gap(tl.Loaders[0], []string{"rng_state"})
	}
	lost := func(table string) func(*Run) {
		return func(r *Run) {
			r.W.Append(traces.Lost{Head: traces.Head{TsNS: 5}, Source: "writer", Table: table, Count: 3, Reason: "disk full"})
		}
	}
	for _, c := range []struct{ name, got, want string }{
		{"nothing", play(Train, true, nil), ""},
		{"cut", play(Train, false, nil), "the recording was cut before the program ended"},
		{"lost by the hook", play(Pass{LostRows: true}, true, nil), "records were lost: 7 of this loader's processes"},
		{"lost by the writer", play(Train, true, lost("rng_state")), "records were lost: 3 of rng_state (disk full)"},
		{"lost elsewhere", play(Train, true, lost("memory")), ""},
		{"lost anywhere", play(Train, true, lost("")), "records were lost: 3 of an unknown table (disk full)"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
	// A worker that was started and not heard of.
	r := NewRun(t)
	r.Process(-1, 0).Open(Loader{Workers: 2, Start: noGens}).Pass(Train)
	r.W.Append(traces.Worker{Head: traces.Head{TsNS: 9e9, Proc: 1}, Loader: 1, Pass: 0, Worker: 2, Pid: 77, Phase: "begin"})
	r.Seal()
	tl := build(t, r)
	if got, want := tl.Gap(tl.Loaders[0], nil), "1 of 3 workers could not be watched from inside"; got != want {
		t.Errorf("an unhooked worker: %q, want %q", got, want)
	}
	// Passes of which no worker was heard of.
	for passes, want := range []string{"", "the workers of 1 pass are not known", "the workers of 2 passes are not known"} {
		r := NewRun(t)
		r.Process(-1, 0).Open(Loader{Workers: 2, Start: noGens}).Pass(Train)
		for n := range passes {
			r.W.Append(traces.Pass{Head: traces.Head{TsNS: 9e9, Proc: 1}, Loader: 1, Pass: uint32(1 + n), Phase: "begin"})
		}
		r.Seal()
		tl := build(t, r)
		if got := tl.Gap(tl.Loaders[0], nil); got != want {
			t.Errorf("%d passes without workers: %q, want %q", passes, got, want)
		}
	}
}

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		cwd, file string
		line      int32
		want      string
	}{
		{"/home/me/proj", "/home/me/proj/train.py", 8, "train.py:8"},
		{"/home/me/proj", "/home/me/proj/a/b.py", 0, "a/b.py"},
		{"/home/me/proj", "/home/me/other/b.py", 3, "/home/me/other/b.py:3"},
		{"", "/x/b.py", 3, "/x/b.py:3"},
		{"/x", "<stdin>", 3, "<stdin>:3"},
		{"/x", "", 3, "unknown place"},
	} {
		if got := timeline.Place(c.cwd, c.file, c.line); got != c.want {
			t.Errorf("Place(%q, %q, %d) = %q, want %q", c.cwd, c.file, c.line, got, c.want)
		}
	}
}
