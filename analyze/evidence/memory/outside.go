package memory

import "slices"

// UnnamedLeast is what a worker must copy, step by step, of memory that no known
// container lies on, so that somebody is to be told: more than import torch
// leaves, of which up to 87 MB were seen in a worker when the garbage collector
// ran (torch 2.15).
const UnnamedLeast = 128 << 20

// step is the growth between two counts that is one.
const step = 4 << 20

// atOnce is how many steps are not counted, the largest: one run of the garbage
// collector writes to all that was imported, and may fall between two counts.
const atOnce = 2

// Unnamed is what the workers copied of memory that no known container lies on,
// if it is too much for what import torch leaves and grew with the batches;
// else 0.
func (s *WorkerSet) Unnamed() int64 {
	var sum, steady int64
	for _, w := range s.Workers {
		if w.Tier != Kernel {
			return 0
		}
		sum += w.Outside
		steady += w.Steady
	}
	if steady <= UnnamedLeast*int64(len(s.Workers)) {
		return 0
	}
	return sum
}

// steady is what a worker copied outside in steps between which its main process
// was handed batches, the largest of them left out.
func (c *Copies) steady(main *rows) int64 {
	var steps []int64
	for i, from := 1, 0; i < len(c.Curve); i++ {
		a, b := c.Curve[from], c.Curve[i]
		if b.Outside-a.Outside >= step && main.deliveredBetween(a.TS, b.TS) {
			steps = append(steps, b.Outside-a.Outside)
			from = i
		}
	}
	slices.Sort(steps)
	var sum int64
	for _, n := range steps[:max(0, len(steps)-atOnce)] {
		sum += n
	}
	return sum
}
