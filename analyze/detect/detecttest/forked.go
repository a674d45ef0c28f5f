package detecttest

import "github.com/dptrace/dptrace/traces"

// Fork is played processes that a program forks itself to run a target.
type Fork struct {
	Target    string
	Held      []Held // that they inherit
	Own       bool   // each has containers of its own
	Processes int
	OneByOne  bool // each is forked when the one before has ended
	Copied    int  // pages that each gets for itself
	Let       int  // of so many, the last ones, the parent lets go of what they inherited before they end
	Killed    int  // so many of the first do not live to look as they end
	New       int  // pages that are mapped after the fork
	Gone      int  // pages of each container's blocks that the parent has no longer
	Kernel    bool // the kernel counts, too
}

// forked is a played process, and the number that its containers begin with.
type forked struct {
	*Process
	parent *Process
	fork   *Fork
	first  uint32
}

// Fork plays them. What the process holds is looked at as each has ended.
func (p *Process) Fork(f Fork) {
	first, begun := int64(firstBlock), []forked{}
	for i := range f.Processes {
		if i == 0 || f.Own {
			p.loaders++ // numbers of extents that no loader has
			f.left(p, first)
			first += 1000
		}
		c := forked{p.Run.child(int32(1000+p.Proc%60), "fork", -1, 0), p, &f, p.loaders}
		c.look(c.Process, "begin", 0, 0)
		if f.OneByOne {
			p.Run.Wait(1e9)
			c.ends(i)
		}
		begun = append(begun, c)
	}
	p.Run.Wait(1e9)
	for i, c := range begun {
		if !f.OneByOne {
			c.ends(i)
		}
	}
}

func (c forked) ends(i int) {
	f, r := c.fork, c.Run
	c.look(c.Process, "window", f.New, f.Copied/2+f.New)
	if f.Kernel {
		row := traces.Cow{Head: r.head(c.Proc), Mapping: "anon", User: uint64(f.Copied), Final: true}
		for b := 0; b*pages < f.Copied; b++ {
			row.Blocks = append(row.Blocks, firstBlock+int64(b))
			row.Pages = append(row.Pages, int64(min(pages, f.Copied-b*pages)))
		}
		r.W.Append(row)
	}
	if i >= f.Killed {
		c.look(c.Process, "end", f.New, f.Copied+f.New)
	}
	if i < f.Processes-f.Let {
		c.look(c.parent, "held", -f.Gone, 0)
	}
}

// look writes what one of them, or their parent, sees in its pagemap; present is
// what is there beyond the containers' blocks.
func (c forked) look(of *Process, when string, present, private int) {
	r, crew, pid, total := c.Run, Crew{Held: c.fork.Held}, int32(1000+c.parent.Proc%60), 0
	row := func(extent uint32, present, private int) {
		r.W.Append(traces.Private{Head: r.head(of.Proc), Worker: -1, When: when, Extent: extent, Parent: pid,
			Present: int64(present) * pageBytes, Private: int64(private) * pageBytes})
	}
	for i, h := range c.fork.Held {
		n := h.Blocks * pages
		row(crew.number(c.first, i), n+min(present, 0), min(max(private-total, 0), n))
		total += n
	}
	if when != "held" {
		row(0, total+present, private)
	}
}

// left writes the containers that a process is left.
func (f *Fork) left(p *Process, block int64) {
	c := Crew{Held: f.Held}
	for i, h := range f.Held {
		p.Run.W.Append(traces.Extent{Head: p.Run.head(p.Proc), Extent: c.number(p.loaders, i), Target: f.Target, Path: h.Path, Class: h.Class,
			Items: h.Items, Sampled: h.Sampled, Starts: []int64{block}, Counts: []int64{int64(h.Blocks)}})
		block += int64(h.Blocks)
	}
}
