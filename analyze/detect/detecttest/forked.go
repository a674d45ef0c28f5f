package detecttest

import "github.com/dptrace/dptrace/traces"

// Fork is played processes that a program forks itself to run a target.
type Fork struct {
	Target    string
	Held      []Held // that they inherit
	Own       bool   // each has containers of its own
	Processes int
	Copied    int  // pages that each gets for itself
	Let       int  // of so many, the last ones, the parent lets go of what they inherited before they end
	Killed    int  // so many of the first do not live to look as they end
	New       int  // pages that are mapped after the fork
	Gone      int  // pages of each container's blocks that the parent has no longer
	Kernel    bool // the kernel counts, too
}

// Fork plays them; what the process held is looked at as each has ended.
func (p *Process) Fork(f Fork) {
	r, pid := p.Run, int32(1000+p.Proc%60)
	c := Crew{Held: f.Held}
	first := int64(firstBlock)
	for i := range f.Processes {
		if i == 0 || f.Own {
			p.loaders++ // numbers of extents that no loader has
			f.left(p, first)
			if f.Own {
				first += 1000
			}
		}
		child := r.child(pid, "fork", -1, 0)
		look := func(of *Process, when string, present, private int) {
			total := 0
			for i, h := range f.Held {
				n := min(max(private-total, 0), h.Blocks*pages)
				total += h.Blocks * pages
				r.W.Append(traces.Private{Head: r.head(of.Proc), Worker: -1, When: when, Extent: c.number(p.loaders, i), Parent: pid,
					Present: int64(h.Blocks*pages+min(present, 0)) * pageBytes, Private: int64(n) * pageBytes})
			}
			if when != "held" {
				r.W.Append(traces.Private{Head: r.head(of.Proc), Worker: -1, When: when, Parent: pid,
					Present: int64(total+present) * pageBytes, Private: int64(private) * pageBytes})
			}
		}
		look(child, "begin", 0, 0)
		look(child, "window", f.New, f.Copied/2+f.New)
		if f.Kernel {
			row := traces.Cow{Head: r.head(child.Proc), Mapping: "anon", User: uint64(f.Copied), Final: true}
			for b := 0; b*pages < f.Copied; b++ {
				row.Blocks = append(row.Blocks, firstBlock+int64(b))
				row.Pages = append(row.Pages, int64(min(pages, f.Copied-b*pages)))
			}
			r.W.Append(row)
		}
		if i >= f.Killed {
			look(child, "end", f.New, f.Copied+f.New)
		}
		if i < f.Processes-f.Let {
			look(p, "held", -f.Gone, 0)
		}
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
