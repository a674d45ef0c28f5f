package memory

import (
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Kinds of mapping in Cow.Mapping that are no plain memory.
const (
	shared       = "shm"    // no copies
	fresh        = "new"    // was not there at the fork
	forkedItself = "parent" // of a process that has forked: copied, or only write-protected
	unclear      = "unknown"
)

// written is how many pages a row counts.
func written(r *traces.Cow) int64 { return int64(r.User + r.Kernel) }

// Mapping is what one process has written to in one kind of mapping that it had
// inherited, in pages, by the kernel.
type Mapping struct {
	Kind   string // heap, anon, stack, file, unknown, and parent: see traces.Cow
	Pages  int64
	Blocks map[int64]int64 // of them those whose block is known
}

// Mappings of a process that it copied from, by kind.
func (m *Memory) Mappings(p *timeline.Process) []Mapping {
	kinds := map[string]*Mapping{}
	rows := m.have(p).cow
	for i := range rows {
		r := &rows[i]
		if r.Mapping == shared || r.Mapping == fresh {
			continue
		}
		k := kinds[r.Mapping]
		if k == nil {
			k = &Mapping{Kind: r.Mapping, Blocks: map[int64]int64{}}
			kinds[r.Mapping] = k
		}
		k.Pages = max(k.Pages, written(r))
		maps.Insert(k.Blocks, counts(r))
	}
	var all []Mapping
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, *kinds[kind])
	}
	return all
}

// counts of the blocks that a row names, in pages.
func counts(r *traces.Cow) func(yield func(block, pages int64) bool) {
	return func(yield func(block, pages int64) bool) {
		for i := range min(len(r.Blocks), len(r.Pages)) {
			if !yield(r.Blocks[i], r.Pages[i]) {
				return
			}
		}
	}
}

// placed is what was copied in a block, and what the block is mapped for.
type placed struct {
	mapping string
	bytes   int64
}

// chargeable reports whether what lies on the blocks of a container is held
// against it. They were there at the fork, whatever the kernel tier could find
// out.
func (b placed) chargeable() bool {
	return b.mapping != shared && b.mapping != "stack" && b.mapping != "file"
}

// tally sorts what one worker copied by what it belongs to, so far. Where a block
// is mapped is found out late at times, so the last row that names it counts.
type tally struct {
	mine, known                   Blocks // of the worker's dataset, of all datasets
	blocks                        map[int64]placed
	copied, others, outside, rest int64
}

func (t *tally) set(block int64, now placed) {
	t.add(block, t.blocks[block], -1)
	t.blocks[block] = now
	t.add(block, now, 1)
}

func (t *tally) add(block int64, b placed, sign int64) {
	n := sign * b.bytes
	switch {
	case b.mapping == shared:
	case !b.chargeable():
		t.rest += n
	case t.mine.Has(block):
		t.copied += n
	case t.known.Has(block):
		t.others += n
	case b.mapping == unclear:
		t.rest += n
	case b.mapping != fresh:
		t.outside += n
	}
}

// byKernel reads the kernel's counts of a worker; inherited is all containers of
// its main process.
func (r *rows) byKernel(set *WorkerSet, inherited []traces.Extent) Copies {
	c := Copies{Tier: Kernel, Open: true, ByExtent: map[uint32]int64{}}
	t := tally{mine: BlocksOf(set.Extents...), known: BlocksOf(inherited...), blocks: map[int64]placed{}}
	last := map[string]uint64{}
	for i := range r.cow {
		row := &r.cow[i]
		c.Open = c.Open && !row.Final
		if row.Mapping == forkedItself {
			c.Forked = c.Forked || written(row) > 0
			continue
		}
		last[row.Mapping] = row.Seq
		for block, pages := range counts(row) {
			t.set(block, placed{row.Mapping, pages * set.page})
		}
		if n := len(c.Curve); n > 0 && c.Curve[n-1].TS == row.TsNS {
			c.Curve = c.Curve[:n-1]
		}
		c.Curve = append(c.Curve, Point{row.TsNS, t.copied, t.outside})
	}
	c.Copied, c.Others, c.Outside, c.Rest = t.copied, t.others, t.outside, t.rest
	for _, e := range set.Extents {
		its := BlocksOf(e)
		for block, b := range t.blocks {
			if its.Has(block) && b.chargeable() {
				c.ByExtent[e.Extent] += b.bytes
			}
		}
	}
	for _, mapping := range []string{"heap", "anon", fresh, unclear} {
		if seq, ok := last[mapping]; ok {
			c.Refs = append(c.Refs, ref(set.Loader.Process.Part, "cow", seq))
		}
	}
	return c
}
