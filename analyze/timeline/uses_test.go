package timeline

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// played plays a training loop: A to F are calls of next() of these loaders (with
// ! the end of a pass, with - one with gradients off), b a backward call, digits
// steps of that optimizer, which throw the gradients away (with + they do not),
// z gradients thrown away without a step, g no_grad, e and t eval() and train(),
// l load_state_dict; . is the end of the process.
type played struct {
	rows     []traces.BatchNext
	row      traces.BatchNext
	zeroed   uint64
	evals    bool
	evaluate bool
	passes   map[byte]uint32
	batches  map[byte]uint32
}

func play(loop string) *played {
	p := &played{passes: map[byte]uint32{}, batches: map[byte]uint32{}}
	p.row.Grad = true
	for i := 0; i < len(loop); i++ {
		mark := byte(0)
		if i+1 < len(loop) && strings.IndexByte("!-+", loop[i+1]) >= 0 {
			mark = loop[i+1]
		}
		switch ch := loop[i]; {
		case ch >= 'A' && ch <= 'F':
			p.next(ch, mark)
		case ch >= '1' && ch <= '9':
			p.row.Steps++
			p.row.Optimizer = uint32(ch - '0')
			if p.row.Backwards > p.zeroed {
				p.row.GradsFrom, p.row.GradsTo = p.zeroed, p.row.Backwards
			}
			if mark != '+' {
				p.zeroed = p.row.Backwards
			}
		default:
			p.other(ch)
		}
	}
	return p
}

func (p *played) other(ch byte) {
	switch ch {
	case 'b':
		p.row.Backwards++
	case 'z':
		p.zeroed = p.row.Backwards
	case 'g':
		p.row.GradOff = true
	case 'e':
		p.evals, p.evaluate = true, true
	case 't':
		p.evals = false
	case 'l':
		p.row.Restarts++
	case '.':
		r := p.row
		r.Status, r.Rows = "exit", -1
		p.add(r)
	}
}

func (p *played) next(loader, mark byte) {
	r := p.row
	r.Loader, r.Pass, r.Batch, r.Status, r.Rows = uint32(loader-'A'+1), p.passes[loader], p.batches[loader], "ok", 8
	p.batches[loader]++
	switch mark {
	case '!':
		r.Status, r.Rows = "stop", -1
		p.passes[loader]++
		p.batches[loader] = 0
	case '-':
		r.Grad = false
	}
	p.add(r)
}

func (p *played) add(r traces.BatchNext) {
	r.Head = traces.Head{TsNS: int64(1e6 * (1 + len(p.rows))), Proc: 1}
	r.CallNS = r.TsNS - 5e5
	r.Watched, r.Evaluating = true, p.evals || p.evaluate
	p.rows = append(p.rows, r)
	p.evaluate = p.evals
	p.row.GradsFrom, p.row.GradsTo, p.row.GradOff = 0, 0, false
}

// build the timeline of a loop.
func (p *played) build() *Timeline {
	b := NewBuilder()
	b.Add(traces.Batch{Part: &traces.Part{Name: "p", Sealed: true}, Table: "batch_next", Rows: p.rows})
	return b.build(nil)
}

// told is the role of each pass of a loader, with its deliveries: T trained on, o
// used with grad mode off.
func told(t *Timeline, loader uint32) string {
	var all []string
	for _, l := range t.Loaders {
		if l.First().Loader != loader {
			continue
		}
		for _, p := range l.Passes {
			text := string(p.Role) + " "
			for i := range p.Delivered {
				switch {
				case p.Trained(i):
					text += "T"
				case p.GradOff(i):
					text += "o"
				default:
					text += "."
				}
			}
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}

func TestUses(t *testing.T) {
	for _, c := range []struct{ name, loop, a, b string }{
		{"a training loop", "Ab1 Ab1 Ab1 A! .", "train TTT", ""},
		{"no step on what no backward followed", "Ab1+ Ab1+ A1+ A! .", "train TT.", ""},
		{"accumulated gradients", "Ab Ab1 Ab Ab1 Ab A! .", "train TTTT.", ""},
		{"that a later step uses", "Ab Ab1 Ab A! Ab1 A! .", "train TTT, train T", ""},
		{"flushed after a skipped batch", "Ab Ab1 Ab A1 A! .", "train TTT.", ""},
		{"thrown away", "Ab1 Abz Ab1 A! .", "train T.T", ""},
		{"several batches at once", "AAAbbb1 AAAbbb1 AA A!bb1 .", "train TTTTTTTT", ""},
		{"a loop that looks ahead", "A Ab1 Ab1 Ab1 A!b1 .", "train TTTT", ""},
		{"and passes over the last", "A Ab1 Ab1 Ab1 A! .", "train .TTT", ""},
		{"the losses of a pass in one step", "AAAA!b1 AAAA!b1 .", "train TTT, train TTT", ""},
		{"a first batch without a step", "A Ab1 Ab1 Ab1 A! .", "train .TTT", ""},
		{"no optimizer", "AAAA! .", "unknown ...", ""},
		{"nothing but no_grad", "A-A-A! .", "eval oo", ""},
		{"gradients that nobody uses", "Ab1 A! Bbz Bbz Bbz B! .", "train T", "unknown ..."},
		{"the same in evaluation mode", "Ab1 A! eBbz Bbz Bbz B! .", "train T", "eval ..."},

		{"validation under no_grad", "Ab1 Ab1 A! B-B-B!- Ab1 A! .", "train TT, train T", "eval oo"},
		{"no_grad inside of its loop", "Ab1 Ab1 A! BgBgB! .", "train TT", "eval oo"},
		{"eval() alone", "Ab1 Ab1 A! eBBB!t Ab1 A! .", "train TT, train T", "eval .."},
		{"neither", "Ab1 Ab1 A! BBB! .", "train TT", "unknown .."},
		{"no_grad in the step of the optimizer is no evaluation", "Abg1 Abg1 A! .", "train TT", ""},
		{"evaluation mode in training", "eAb1 Ab1 Ab1 A! .", "train TTT", ""},
		{"validation that is left early", "Ab1 Ab1 A! BgBgBgB Ab1 Ab1 A! .", "train TT, train TT", "eval ooo."},
		{"validation with a pass that nothing is taken of", "Ab1 A! B! BgBgB! .", "train T", "eval , eval oo"},
		{"validation in the middle of a training pass", "Ab1 Ab1 B-B-B!- Ab1 A! .", "train TTT", "eval oo"},
		{"between the batch and its backward", "AB-B-B!-b1 Ab1 Ab1 A! .", "train TTT", "eval oo"},

		{"two loaders in one step", "ABb1 ABb1 ABb1 A! .", "train TTT", "train TTT"},
		{"a short one, cycled", "ABb1 ABb1 AB!Bb1 ABb1 A! .", "train TTTT", "train TT, train TT"},
		{"cycled from memory", "ABb1 ABb1 AB!b1 Ab1 A! .", "train TTTT", "train TT"},
		{"pseudo-labels of the second", "ABgb1 ABgb1 ABgb1 A! .", "train TTT", "train TTT"},
		{"a teacher before the second", "AgBb1 AgBb1 AgBb1 A! AgBb1 AgBb1 A! .", "unknown ooo, unknown oo", "train TTTTT"},
		{"turns", "Ab1 Bb2 Ab1 Bb2 A! .", "train TT", "train TT"},
		{"two steps on each batch", "Abb1b2 Abb1b2 A! .", "train TT", ""},

		{"a batch of validation after each step", "Ab1 Bg Ab1 Bg Ab1 Bg A! .", "train TTT", "eval ooo"},
		{"now and then", "Ab1 Ab1 Ab1 Bg Ab1 Ab1 Ab1 Bg Ab1 A! .", "train TTTTTTT", "eval oo"},
		{"in evaluation mode", "Ab1 eBt Ab1 eBt Ab1 eBt A! .", "train TTT", "eval ..."},
		{"with gradients", "Ab1 Ab1 Ab1 B Ab1 Ab1 Ab1 B Ab1 Ab1 A! .", "train TTTTTTTT", "unknown .."},
		{"of a loader that has evaluations of its own", "BgBgB! ABgb1 A! AgBb1 AgBb1 .", "train T, unknown oo", "eval oo, train TTT"},
	} {
		tl := play(c.loop).build()
		if a, b := told(tl, 1), told(tl, 2); a != c.a || b != c.b {
			t.Errorf("%s: %s\n\ta: %s, want %s\n\tb: %s, want %s", c.name, c.loop, a, c.a, b, c.b)
		}
	}
}

// TestRestarts: what load_state_dict separates.
func TestRestarts(t *testing.T) {
	for _, c := range []struct {
		loop string
		want bool // the first two passes are of one training
	}{
		{"Ab1 Ab1 A! Ab1 A! .", true},
		{"Ab1 Ab1 A! lAb1 A! .", false},
		{"lAb1 Ab1 A! Ab1 A! .", true},
		{"Ab1 lAb1 A! Ab1 A! .", true},
		{"Ab1 Ab1 A! Ab2 A! .", false},
	} {
		l := play(c.loop).build().Loaders[0]
		if got := l.Passes[0].SameTraining(l.Passes[1]); got != c.want || got != l.Passes[1].SameTraining(l.Passes[0]) {
			t.Errorf("%s: one training is %v", c.loop, got)
		}
	}
}

// TestTrainedAt: a step is taken before what is delivered after it.
func TestTrainedAt(t *testing.T) {
	tl := play("A Ab1 Ab1 A!b1 Bg B! Cb1 Cb C1 C! .").build()
	of := map[uint32]*Pass{}
	for _, l := range tl.Loaders {
		of[l.First().Loader] = l.Passes[0]
	}
	a, b, c := of[1], of[2], of[3]
	if !a.Trained(2) || a.TrainedAt(0) <= a.Begin || a.TrainedAt(0) >= a.TrainedAt(1) || a.TrainedAt(1) >= a.TrainedAt(2) ||
		a.TrainedAt(2) > b.Begin || a.TrainedAt(2) <= a.End {
		t.Errorf("a: %d %d %d, b begins at %d", a.TrainedAt(0), a.TrainedAt(1), a.TrainedAt(2), b.Begin)
	}
	if b.TrainedAt(0) != 0 || c.TrainedAt(1) <= c.TrainedAt(0) || c.TrainedAt(2) != 0 || c.TrainedAt(-1) != 0 || c.TrainedAt(1<<40) != 0 {
		t.Errorf("b: %d, c: %d %d %d", b.TrainedAt(0), c.TrainedAt(0), c.TrainedAt(1), c.TrainedAt(2))
	}
	if c.Known(2) != true || play("Cb1 C").build().Loaders[0].Passes[0].Known(1) || !play("Cb1 C").build().Loaders[0].Passes[0].Known(0) {
		t.Error("what was done with the last delivery of a process that was killed is not known")
	}
}

// TestUnwatched: one row of an older trace, and all is told as it was before.
func TestUnwatched(t *testing.T) {
	p := play("Ab1 Ab1 A! BBB! .")
	p.rows[1].Watched = false
	tl := p.build()
	if a, b := told(tl, 1), told(tl, 2); a != "train TT" || b != "eval .." || tl.Loaders[0].Passes[0].Watched() {
		t.Errorf("a: %s, b: %s", a, b)
	}
	if got := tl.Loaders[0].Passes[0].Rows(0); got != -1 {
		t.Errorf("rows: %d", got)
	}
}

// TestHostile: rows that no program makes, many of them.
func TestHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	wild := func() uint64 {
		return []uint64{0, 1, r.Uint64N(100), math.MaxUint64 - r.Uint64N(3), r.Uint64()}[r.IntN(5)]
	}
	var rows []traces.BatchNext
	for range 200_000 {
		rows = append(rows, traces.BatchNext{Head: traces.Head{TsNS: int64(wild()), Proc: 1}, CallNS: int64(wild()),
			Loader: uint32(1 + r.IntN(300)), Pass: uint32(r.IntN(3)), Status: []string{"ok", "ok", "ok", "stop", "error", "", "exit"}[r.IntN(7)],
			Steps: wild(), Optimizer: uint32(wild()), Backwards: wild(), GradsFrom: wild(), GradsTo: wild(), Rows: int32(wild()),
			GradOff: r.IntN(2) == 0, Evaluating: r.IntN(2) == 0, Watched: true})
	}
	b := NewBuilder()
	part := &traces.Part{Name: "p", Sealed: true}
	b.Add(traces.Batch{Part: part, Table: "batch_next", Rows: rows})
	lp := &b.parts[part].procs[1].loop
	if len(lp.waiting) > mostWaiting || len(lp.open) > mostShared {
		t.Errorf("%d wait, %d are open", len(lp.waiting), len(lp.open))
	}
	for _, l := range b.build(nil).Loaders {
		for _, p := range l.Passes {
			if len(p.Optimizers) > mostOptimizers {
				t.Errorf("%d optimizers", len(p.Optimizers))
			}
			for i := range p.Delivered {
				if at := p.TrainedAt(i); (at != 0) && !p.Trained(i) {
					t.Fatalf("pass %d: trained on at %d", p.Number, at)
				}
			}
		}
	}
}

// TestBitset compares it with a map.
func TestBitset(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var a, b bitset
	in := [2]map[int]bool{{}, {}}
	for range 300 {
		i, k := r.IntN(1000), r.IntN(500)
		a.add(i)
		b.add(k)
		in[0][i], in[1][k] = true, true
	}
	moved := a.earlier(1000, true)
	for i := range 1100 {
		one, two := in[0][i], in[1][i]
		if a.has(i) != one || a.or(b).has(i) != (one || two) || a.and(b).has(i) != (one && two) || b.andNot(a).has(i) != (two && !one) ||
			b.or(a).has(i) != (one || two) || a.andNot(b).has(i) != (one && !two) || moved.has(i) != (in[0][i+1] || i == 999) {
			t.Fatal(i)
		}
	}
	if a.count() != len(in[0]) || a.has(-1) {
		t.Error(a.count())
	}
}
