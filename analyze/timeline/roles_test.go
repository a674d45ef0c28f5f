package timeline

import (
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// TestRoles plays deliveries to a loop: a letter is a call of next() of that
// loader (a batch), with ! the end of its pass, with - one without gradients;
// digits are steps of that optimizer, a blank means nothing.
func TestRoles(t *testing.T) {
	for _, c := range []struct {
		name, loop string
		want       map[string]Role // of each loader's first pass
	}{
		{"a training loop", "a1 a1 a1 a!", map[string]Role{"a": Train}},
		{"steps every other batch", "a a1 a a1 a!", map[string]Role{"a": Train}},
		{"one batch in all", "a1 a!", map[string]Role{"a": Train}},
		{"no optimizer anywhere", "a a a a!", map[string]Role{"a": Unknown}},
		{"validation without no_grad around next", "a1 a1 a! b b b!", map[string]Role{"a": Train, "b": Eval}},
		{"validation under no_grad alone in its process", "b- b- b!-", map[string]Role{"b": Eval}},
		{"training with no_grad around next", "a-1 a-1 a!-", map[string]Role{"a": Train}},
		{"two loaders in one step", "a b1 a b1 a b1 a! b!", map[string]Role{"a": Train, "b": Train}},
		{"two loaders in one step, no_grad around the first", "a- b1 a- b1 a!- b!", map[string]Role{"a": Eval, "b": Train}},
		{"a batch of validation now and then", "a1 a1 a1 a1 b a1 a1 a1 a1 b a1 a!", map[string]Role{"a": Train, "b": Eval}},
		{"the same under no_grad", "a1 b- a1 b- a1 b- a!", map[string]Role{"a": Train, "b": Eval}},
		{"sanity check first", "b b a1 a1 a!", map[string]Role{"a": Train, "b": Eval}},
		{"statistics of the training set, no other loader", "a a a!", map[string]Role{"a": Unknown}},
	} {
		b := NewBuilder()
		part := &traces.Part{Name: "p", Sealed: true}
		loaders := map[string]uint32{}
		var steps uint64
		var optimizer uint32
		var rows []traces.BatchNext
		for i := 0; i < len(c.loop); i++ {
			switch ch := c.loop[i]; {
			case ch >= '1' && ch <= '9':
				steps, optimizer = steps+1, uint32(ch-'0')
			case ch >= 'a' && ch <= 'z':
				name := string(ch)
				if loaders[name] == 0 {
					loaders[name] = uint32(len(loaders) + 1)
				}
				r := traces.BatchNext{Head: traces.Head{TsNS: int64(1000 + i), Proc: 1}, Loader: loaders[name], Status: "ok", Steps: steps, Optimizer: optimizer, Grad: true}
				for i+1 < len(c.loop) && (c.loop[i+1] == '!' || c.loop[i+1] == '-') {
					i++
					if c.loop[i] == '!' {
						r.Status = "stop"
					} else {
						r.Grad = false
					}
				}
				rows = append(rows, r)
			}
		}
		b.Add(traces.Batch{Part: part, Table: "batch_next", Rows: rows})
		got := map[string]Role{}
		for _, l := range b.build(nil).Loaders {
			for name, n := range loaders {
				if l.First().Loader == n {
					got[name] = l.Passes[0].Role
				}
			}
		}
		for name, want := range c.want {
			if got[name] != want {
				t.Errorf("%s: loader %s is %s, want %s", c.name, name, got[name], want)
			}
		}
	}
}

func TestAbandoned(t *testing.T) {
	type pass struct {
		delivered int
		exhausted bool
	}
	for _, c := range []struct {
		name   string
		passes []pass
		want   []bool
	}{
		{"all to their end", []pass{{8, true}, {8, true}}, []bool{false, false}},
		{"a look at one batch", []pass{{1, false}, {8, true}}, []bool{true, false}},
		{"cut at one length", []pass{{5, false}, {5, false}, {5, false}}, []bool{false, false, false}},
		{"cut short at the end", []pass{{8, true}, {3, false}}, []bool{false, true}},
		{"cut late", []pass{{8, true}, {6, false}}, []bool{false, false}},
		{"a short set to its end", []pass{{8, true}, {1, true}}, []bool{false, false}},
		{"nothing delivered", []pass{{0, false}}, []bool{true}},
	} {
		l := &Loader{}
		for _, p := range c.passes {
			l.Passes = append(l.Passes, &Pass{Delivered: p.delivered, Exhausted: p.exhausted})
		}
		markAbandoned(l)
		for i, p := range l.Passes {
			if p.Abandoned != c.want[i] {
				t.Errorf("%s: pass %d abandoned is %v", c.name, i, p.Abandoned)
			}
		}
	}
}
