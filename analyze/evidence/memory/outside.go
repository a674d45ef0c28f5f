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

// Unnamed is what the workers of a crew copied of memory that no known container
// lies on, if it is too much for what import torch leaves and grew with the
// batches; else 0.
func (m *Memory) Unnamed(c *WorkerSet) int64 {
	p := m.parts[c.Loader.Process.Part]
	var sum, steady int64
	for _, s := range c.Shares {
		if s.Tier != Kernel {
			return 0
		}
		sum += s.Outside
		steady += p.steady(c.Loader.Process.Proc, s)
	}
	if steady <= UnnamedLeast*int64(len(c.Shares)) {
		return 0
	}
	return sum
}

// steady is what a worker copied outside in steps between which batches were
// delivered, the largest of them left out.
func (p *part) steady(main uint32, s *WorkerMemory) int64 {
	var steps []int64
	for i, from := 1, 0; i < len(s.Curve); i++ {
		a, b := s.Curve[from], s.Curve[i]
		if b.Outside-a.Outside >= step && p.delivered(main, a.TS, b.TS) {
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

// Parent is what the main process of a loader wrote to after it had forked.
// What of it was copied cannot be told.
func (m *Memory) Parent(c *WorkerSet) int64 {
	p := m.parts[c.Loader.Process.Part]
	var n int64
	for _, r := range p.cow[c.Loader.Process.Proc] {
		if r.mapping == "parent" {
			n = max(n, r.written*c.page)
		}
	}
	return n
}
