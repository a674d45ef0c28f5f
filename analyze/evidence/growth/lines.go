package growth

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Line is one container by its path: in all workers that were started together,
// or in the main process, of one loader on all ranks.
type Line struct {
	Path     string
	Function string // whose variable the path begins with; ""
	Class    string
	Graph    bool   // tensors in it hold their graph
	Cap      int64  // -1 none
	Bound    string // why it may be bounded, by code: Container.Bound
	Start    int    // number of the pass that started the workers
	Series   []Series
}

// InWorkers reports whether workers hold it.
func (l *Line) InWorkers() bool { return l.Series[0].Worker >= 0 }

// Crew is processes that serve a loader together: workers that were started
// together, on all ranks, or the main processes.
type Crew struct {
	Start   int // number of the pass that started them
	Members []Member
	Lines   []Line // the one first that grew most
}

// Member is one process of a crew.
type Member struct {
	Loader  *timeline.Loader
	Process *timeline.Process
	Worker  int // -1: the main process
	Passes  []*timeline.Pass
}

// Crews of a loader: of each start of workers, and the main processes last.
func (g *Growth) Crews(ranks timeline.Ranks) (crews []*Crew) {
	starts := map[int]*Crew{}
	mains := &Crew{}
	for _, l := range ranks {
		mains.Members = append(mains.Members, Member{Loader: l, Process: l.Process, Worker: -1, Passes: l.Passes})
		first := map[*timeline.Process]int{}
		for _, pass := range l.Passes {
			for _, w := range pass.Workers {
				if w.Process == nil || w.Process == l.Process {
					continue
				}
				if _, known := first[w.Process]; !known {
					first[w.Process] = pass.Number
				}
				start := first[w.Process]
				if starts[start] == nil {
					starts[start] = &Crew{Start: start}
					crews = append(crews, starts[start])
				}
				starts[start].serve(w, pass)
			}
		}
	}
	slices.SortFunc(crews, func(a, b *Crew) int { return cmp.Compare(a.Start, b.Start) })
	crews = append(crews, mains)
	for _, c := range crews {
		c.Lines = g.lines(c, ranks)
	}
	return crews
}

// serve notes that a worker served a pass.
func (c *Crew) serve(w *timeline.WorkerPass, pass *timeline.Pass) {
	for i := range c.Members {
		if c.Members[i].Process == w.Process {
			c.Members[i].Passes = append(c.Members[i].Passes, pass)
			return
		}
	}
	c.Members = append(c.Members, Member{Loader: pass.Loader, Process: w.Process, Worker: w.Number,
		Passes: []*timeline.Pass{pass}})
}

type place struct{ path, function string }

// lines of a crew. Of what the main process holds those are its loader's that
// grew most under it.
func (g *Growth) lines(c *Crew, ranks timeline.Ranks) (lines []Line) {
	at := map[place]int{}
	for _, m := range c.Members {
		for k, s := range g.series(m) {
			if m.Worker < 0 && !slices.ContainsFunc(ranks, func(l *timeline.Loader) bool {
				return l.Process == m.Process && has(l, s.loader())
			}) {
				continue
			}
			last := g.last(m, k)
			i, known := at[k]
			if !known {
				i = len(lines)
				at[k] = i
				lines = append(lines, Line{Path: k.path, Function: k.function, Class: last.Class, Cap: last.Cap, Bound: last.Bound, Start: c.Start})
			}
			line := &lines[i]
			line.Graph = line.Graph || last.Graph
			if last.Bound != "" {
				line.Bound = last.Bound
			}
			line.Series = append(line.Series, s)
		}
	}
	for i := range lines {
		slices.SortFunc(lines[i].Series, func(a, b Series) int {
			return cmp.Or(cmp.Compare(a.Process.Part.Name, b.Process.Part.Name), cmp.Compare(a.Process.Proc, b.Process.Proc))
		})
	}
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.Bytes(), a.Bytes()), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Function, b.Function))
	})
	return lines
}

func has(l *timeline.Loader, object uint32) bool {
	return slices.ContainsFunc(l.Objects, func(o traces.Loader) bool { return o.Loader == object })
}

// series of the containers of one process, by place. A container begins where it
// was first looked at.
func (g *Growth) series(m Member) map[place]Series {
	found := map[place]Series{}
	all := g.have(m.Process).containers
	for i := range all {
		r := &all[i]
		k := place{r.Path, r.Function}
		s, known := found[k]
		if !known {
			s = Series{Process: m.Process, Worker: m.Worker}
			s.Points = append(s.Points, Point{TS: r.TsNS, Loader: r.Loader, Pass: r.Pass, Served: r.FirstServed, Items: r.FirstItems, Seq: r.Seq})
		}
		s.Points = append(s.Points, Point{TS: r.TsNS, Loader: r.Loader, Pass: r.Pass, Served: r.Served, Items: r.Items,
			Bytes: r.AddedBytes + r.SharedBytes, Shared: r.SharedBytes, Seq: r.Seq})
		found[k] = s
	}
	return found
}

// last row of a container.
func (g *Growth) last(m Member, k place) (last traces.Container) {
	for _, r := range g.have(m.Process).containers {
		if r.Path == k.path && r.Function == k.function {
			last = r
		}
	}
	return last
}

// Bytes that were added in all processes, by estimate.
func (l *Line) Bytes() int64 {
	var sum int64
	for i := range l.Series {
		_, bytes, _ := l.Series[i].Growth()
		sum += max(bytes, 0)
	}
	return sum
}

// little: where a container grew by less than this share of what it grew by
// elsewhere, how it did so says nothing of the line.
const little = 0.1

// counts reports whether the line is judged by a process.
func (l *Line) counts(i int) bool {
	var most int64
	for k := range l.Series {
		items, _, _ := l.Series[k].Growth()
		most = max(most, items)
	}
	items, _, _ := l.Series[i].Growth()
	return float64(items) >= little*float64(most)
}

// Shape of the line: that of the process in which it is least like a leak, of
// those that were looked at often enough.
func (l *Line) Shape() Shape {
	shape := Few
	for i := range l.Series {
		if !l.counts(i) {
			continue
		}
		s := l.Series[i].Shape()
		if s != Few && (shape == Few || s < shape) {
			shape = s
		}
	}
	return shape
}

// Goes reports whether each process went on in a later pass as in its first.
func (l *Line) Goes() bool {
	for i := range l.Series {
		if l.counts(i) && !l.Series[i].Goes() {
			return false
		}
	}
	return true
}

// Stops reports whether it was emptied or has stopped in one of the processes.
func (l *Line) Stops() bool {
	for i := range l.Series {
		if since, _ := l.Series[i].Emptied(); since > 0 {
			return true
		}
		if s := l.Series[i].Shape(); s != Few && s != Steady {
			return true
		}
	}
	return false
}

// Rate is items added for each batch that was served, over all processes.
func (l *Line) Rate() float64 {
	var items, served int64
	for i := range l.Series {
		n, _, s := l.Series[i].Growth()
		items, served = items+n, served+s
	}
	return float64(items) / float64(max(served, 1))
}

// Refs are the first and the last look at it in some processes.
func (l *Line) Refs() (refs []finding.Ref) {
	for i := range l.Series[:min(len(l.Series), 8)] {
		p, points := l.Series[i].Process, l.Series[i].Points
		refs = append(refs, ref(p, "container", points[0].Seq), ref(p, "container", points[len(points)-1].Seq))
	}
	return refs
}
