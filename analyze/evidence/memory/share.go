package memory

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Tier is who has counted what a worker copied.
type Tier int

const (
	Unseen Tier = iota // nobody
	Hook               // the worker itself, by /proc/self/pagemap
	Kernel             // the kernel: write faults on pages that were shared
)

// WorkerMemory is one worker process and what it copied of what it inherited.
type WorkerMemory struct {
	Number        int
	Process       *timeline.Process
	Tier          Tier
	Curve         []Point
	Charged       int64            // bytes of the objects of its dataset
	By            map[uint32]int64 // the same by Extent.Extent; what lies in the blocks of two counts in both
	Others        int64            // bytes of the objects of other datasets; kernel tier only, as all that follows
	Outside       int64            // bytes of heap and anonymous memory where no such objects are
	Rest          int64            // bytes of stacks and private file mappings, and what could not be classified
	Forked        bool             // it forked itself: what it wrote to since then is not counted
	Open          bool             // its last count is not in the trace
	Present       int64            // bytes of its dataset's extents that were in memory when it began; 0 unknown
	Private       int64            // of them, what nobody else maps, at the end; hook tier
	NewAnon       int64            // growth of anonymous memory between the first and the last look; 0 without two
	NewFile       int64            // the same of file and shared mappings
	PrivateGrowth int64            // by which private memory grew that is not new: as smaps_rollup says
	Looked        bool             // there were two looks
	Samples       int64            // that it has fetched, if each fetch was a full batch
	Refs          []finding.Ref
}

// Point is what a worker has copied so far.
type Point struct {
	TS               int64 // ns
	Charged, Outside int64
}

// WorkerSet is the workers that were started together, and the passes they served:
// one pass, or all if they are persistent.
type WorkerSet struct {
	Loader  *timeline.Loader
	Passes  []*timeline.Pass
	Shares  []*WorkerMemory
	Extents []traces.Extent
	Whole   bool // its workers are gone after their pass, and served it to the end
	Persist bool
	page    int64
}

// Crews of a loader's workers, in their order.
func (m *Memory) Crews(l *timeline.Loader) []*WorkerSet {
	p := m.parts[l.Process.Part]
	if p == nil {
		return nil
	}
	var crews []*WorkerSet
	for _, pass := range l.Passes {
		workers := slices.DeleteFunc(slices.Clone(pass.Workers), func(w *timeline.WorkerPass) bool { return w.Process == nil || w.Process == l.Process })
		if len(workers) == 0 {
			continue
		}
		object := objectOf(l, pass.Object)
		if n := len(crews); n > 0 && crews[n-1].Shares[0].Process == workers[0].Process {
			crews[n-1].Passes = append(crews[n-1].Passes, pass)
			for _, w := range workers {
				crews[n-1].fetched(w, object)
			}
			continue
		}
		crew := &WorkerSet{Loader: l, Passes: []*timeline.Pass{pass}, Extents: p.extentsFor(pass), Persist: object.Persistent, page: cmp.Or(p.page, 4096)}
		for _, w := range workers {
			crew.Shares = append(crew.Shares, &WorkerMemory{Number: w.Number, Process: w.Process})
			crew.fetched(w, object)
		}
		crews = append(crews, crew)
	}
	for _, crew := range crews {
		pass := crew.Passes[0] // broken off, but not earlier than the others: the program's way of counting epochs
		crew.Whole = !crew.Persist && (pass.Exhausted || len(crews) > 1 && !pass.Abandoned)
		for _, s := range crew.Shares {
			p.measure(crew, s)
		}
	}
	return crews
}

func (c *WorkerSet) fetched(w *timeline.WorkerPass, object *traces.Loader) {
	for _, s := range c.Shares {
		if s.Process == w.Process {
			s.Samples += int64(w.Windows) * int64(max(object.BatchSize, 1))
		}
	}
}

func objectOf(l *timeline.Loader, number uint32) *traces.Loader {
	for i := range l.Objects {
		if l.Objects[i].Loader == number {
			return &l.Objects[i]
		}
	}
	return l.First()
}

// measure fills in a share from what the tiers have seen.
func (p *part) measure(crew *WorkerSet, s *WorkerMemory) {
	if l := p.looks[s.Process.Proc]; l != nil && l.n > 1 {
		s.Looked = true
		s.NewAnon = l.last.Anonymous - l.first.Anonymous
		s.PrivateGrowth = (l.last.PrivateDirty - l.first.PrivateDirty) - s.NewAnon
		s.NewFile = (l.last.Rss - l.last.Anonymous) - (l.first.Rss - l.first.Anonymous)
	}
	p.byHook(crew, s)
	p.byKernel(crew, s)
}

func (p *part) ref(l *timeline.Loader, table string, seq uint64) finding.Ref {
	return finding.Ref{Part: l.Process.Part.Name, Table: table, Seq: seq}
}

// byHook reads what the worker saw in its own pagemap. Pages that are new since
// it began are subtracted: they are private, and no copies.
func (p *part) byHook(crew *WorkerSet, s *WorkerMemory) {
	first := map[uint32]traces.Private{}
	s.By = map[uint32]int64{}
	var begin, last finding.Ref
	for _, r := range p.private[s.Process.Proc] {
		if r.Parent != crew.Loader.Process.Pid {
			continue
		}
		f, ok := first[r.Extent]
		if !ok {
			first[r.Extent], f = r, r
		}
		copied := max(0, r.Private-f.Private-max(0, r.Present-f.Present))
		if r.Extent != 0 {
			s.By[r.Extent] = max(s.By[r.Extent], copied)
			continue
		}
		if !ok {
			s.Tier, s.Present, begin = Hook, r.Present, p.ref(crew.Loader, "private", r.Seq)
		}
		ts := r.TsNS
		if r.When == "end" && int(r.Pass) < len(crew.Passes) { // persistent workers look when they are asked for the next pass
			ts = min(ts, crew.Passes[r.Pass].End)
		}
		s.Curve = append(s.Curve, Point{TS: ts, Charged: copied})
		s.Charged = max(s.Charged, copied)
		s.Private, s.Open = r.Private, r.When != "end"
		last = p.ref(crew.Loader, "private", r.Seq)
	}
	if s.Tier == Hook {
		s.Refs = []finding.Ref{begin, last}
	}
}

// byKernel reads the kernel's counts, which are better than the hook's.
func (p *part) byKernel(crew *WorkerSet, s *WorkerMemory) {
	rows := p.cow[s.Process.Proc]
	if len(rows) == 0 {
		return
	}
	mine, known := runsOf(crew.Extents...), runsOf(p.extents[crew.Loader.Process.Proc]...)
	*s = WorkerMemory{Number: s.Number, Process: s.Process, Tier: Kernel, Open: true, By: map[uint32]int64{}, Present: s.Present, Samples: s.Samples,
		NewAnon: s.NewAnon, NewFile: s.NewFile, PrivateGrowth: s.PrivateGrowth, Looked: s.Looked}
	slices.SortStableFunc(rows, func(a, b cowRow) int { return cmp.Compare(a.seq, b.seq) })
	blocks := map[int64]placed{} // where a block is mapped is found out late at times, so the last row that names it counts
	var charged, others, outside, rest int64
	add := func(block int64, b placed, sign int64) {
		n := sign * b.bytes
		switch {
		case b.mapping == "shm": // no copies
		case b.mapping == "stack" || b.mapping == "file":
			rest += n
		case mine.has(block):
			charged += n
		case known.has(block):
			others += n
		case b.mapping == "unknown":
			rest += n
		case b.mapping != "new":
			outside += n
		}
	}
	last := map[string]uint64{}
	for _, r := range rows {
		s.Open = s.Open && !r.final
		if r.mapping == "parent" {
			s.Forked = s.Forked || r.written > 0
			continue
		}
		last[r.mapping] = r.seq
		for i, block := range r.blocks {
			if i < len(r.counts) {
				add(block, blocks[block], -1)
				blocks[block] = placed{r.mapping, r.counts[i] * crew.page}
				add(block, blocks[block], 1)
			}
		}
		if n := len(s.Curve); n > 0 && s.Curve[n-1].TS == r.ts {
			s.Curve = s.Curve[:n-1]
		}
		s.Curve = append(s.Curve, Point{r.ts, charged, outside})
	}
	s.Charged, s.Others, s.Outside, s.Rest = charged, others, outside, rest
	for _, e := range crew.Extents {
		its := runsOf(e)
		for block, b := range blocks {
			if its.has(block) && b.charges() {
				s.By[e.Extent] += b.bytes
			}
		}
	}
	for _, mapping := range []string{"heap", "anon", "new", "unknown"} {
		if seq, ok := last[mapping]; ok {
			s.Refs = append(s.Refs, p.ref(crew.Loader, "cow", seq))
		}
	}
}

// At is what a worker had copied of its dataset by a time.
func (s *WorkerMemory) At(ts int64) int64 {
	var n int64
	for _, p := range s.Curve {
		if p.TS <= ts {
			n = p.Charged
		}
	}
	return n
}

// placed is what was copied in a block, and what the block is mapped for.
type placed struct {
	mapping string
	bytes   int64
}

// charges reports whether what lies on the blocks of a container is held against
// it. They were there at the fork, whatever the kernel tier could find out.
func (b placed) charges() bool {
	return b.mapping != "shm" && b.mapping != "stack" && b.mapping != "file"
}

// Grown is the points of the curve at which the worker had copied more than
// before.
func (s *WorkerMemory) Grown() []Point {
	var out []Point
	for _, p := range s.Curve {
		if len(out) == 0 && p.Charged > 0 || len(out) > 0 && p.Charged > out[len(out)-1].Charged {
			out = append(out, p)
		}
	}
	return out
}
