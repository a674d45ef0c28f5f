package looptime

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// even is batches that all take the same.
func even(n int, t batchTimes) []batchTimes {
	return slices.Repeat([]batchTimes{t}, n)
}

// What the queues give where it can be told by hand.
func TestReplay(t *testing.T) {
	for _, c := range []struct {
		name  string
		q     queues
		batch batchTimes
		total float64 // of a batch
	}{
		{"inline: all is waited for", queues{}, batchTimes{service: 0.1, own: 0.01, step: 0.02}, 0.13},
		{"one worker sets the pace", queues{1, 2}, batchTimes{service: 0.1, step: 0.02}, 0.1},
		{"four workers share it", queues{4, 2}, batchTimes{service: 0.1, step: 0.02}, 0.025},
		{"the step sets the pace", queues{8, 2}, batchTimes{service: 0.1, step: 0.05}, 0.05},
		{"the sampler is in the training process", queues{8, 2}, batchTimes{service: 0.01, own: 0.04, step: 0.02}, 0.06},
		{"a long way, one batch ahead", queues{1, 1}, batchTimes{service: 0.01, transfer: 0.09, step: 0.02}, 0.1},
		{"a long way, ten ahead", queues{1, 10}, batchTimes{service: 0.01, transfer: 0.09, step: 0.02}, 0.02},
	} {
		out := c.q.replay(even(1000, c.batch), 100)
		if got := out.total / float64(out.counted); math.Abs(got/c.total-1) > 0.02 {
			t.Errorf("%s: %.4f s for a batch, want %.4f", c.name, got, c.total)
		}
		if step := out.total - out.waited; math.Abs(step/(c.batch.step*float64(out.counted))-1) > 0.02 {
			t.Errorf("%s: %.3f s are no waiting, want the steps, %.3f", c.name, step, c.batch.step*float64(out.counted))
		}
	}
}

// More workers and more batches ahead never make it slower, and nothing is faster
// than its steps, whatever the times.
func TestReplayMonotone(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		all := make([]batchTimes, 50+r.IntN(100))
		steps := 0.0
		for i := range all {
			all[i] = batchTimes{service: r.Float64(), transfer: r.Float64() / 10, step: r.Float64() / 5}
			if i < len(all)-1 {
				steps += all[i].step
			}
		}
		before := math.Inf(1)
		for _, q := range []queues{{1, 1}, {1, 2}, {1, 8}} {
			out := q.replay(all, 0)
			if out.whole > before+1e-9 || out.whole < steps-1e-9 {
				t.Fatalf("%+v: %.3f s, fewer ahead %.3f, steps %.3f", q, out.whole, before, steps)
			}
			before = out.whole
		}
		if many := (queues{64, 4}).replay(all, 0); many.whole > before+1e-9 {
			t.Fatalf("64 workers take %.3f s, one %.3f", many.whole, before)
		}
	}
}

// A pass of any length keeps no more than it may, in whole runs that all series have
// in common.
func TestSeries(t *testing.T) {
	kept := 0
	var one, every series[int]
	for b := range uint32(3_000_000) {
		every.add(b, int(b), &kept)
		if b%7 == 3 {
			one.add(b, int(b), &kept)
		}
	}
	if len(every.batches) > mostKept || len(one.batches) > mostKept || kept != len(every.batches)+len(one.batches) {
		t.Errorf("kept %d and %d, counted %d", len(every.batches), len(one.batches), kept)
	}
	both := 0
	for _, b := range one.batches {
		if slices.Contains(every.batches, b) {
			both++
		}
	}
	if both < runLength/7 || every.batches[0] != 0 {
		t.Errorf("%d batches in common, from %d on", both, every.batches[0])
	}
	for i, b := range every.batches {
		if every.values[i] != int(b) {
			t.Fatalf("batch %d has the value of %d", b, every.values[i])
		}
	}
}

func TestHistogram(t *testing.T) {
	var h histogram
	for range 98 {
		h.add(1000)
	}
	h.add(1_000_000)
	h.add(2_000_000)
	if all, short := h.without(0), h.without(0.02); all != 98*1000+3_000_000 || short != 98*1000 {
		t.Errorf("all %d, without the longest %d", all, short)
	}
	if h.median() != 1000 {
		t.Errorf("median %d", h.median())
	}
	var few histogram
	few.add(5)
	if few.without(0.5) != 5 {
		t.Error("one of few was left out")
	}
}

// A loader that computes gets nothing from more workers than there are processors.
func TestCost(t *testing.T) {
	c := cost{free: 2, most: 2, cpu: 0.1, alone: 0.1, actual: 0.1}
	for workers, want := range map[int]float64{1: 0.1, 2: 0.1, 4: 0.2, 8: 0.4} {
		if got, _ := c.stretch(workers); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d workers: %v s for a batch, want %v", workers, got, want)
		}
	}
	if c.factor(4, 4) != 1 || c.factor(1, 8) != 4 {
		t.Errorf("factors %v %v", c.factor(4, 4), c.factor(1, 8))
	}
	sleeping := cost{free: 2, most: 2, cpu: 0.001, alone: 0.1, actual: 0.1}
	if sleeping.factor(1, 32) != 1 {
		t.Errorf("sleeping workers are stretched by %v", sleeping.factor(1, 32))
	}
}
