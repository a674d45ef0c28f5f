package draws

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// search is what one search for generators left out.
type search struct {
	proc, loader uint32
	way, why     string
	path         string
}

// mostSearches of a part are kept.
const mostSearches = 4096

func (p *partLogs) search(r *traces.RngSearch) {
	s := search{r.Proc, r.Loader, r.Way, r.Why, r.Path}
	if len(p.searches) < mostSearches && !slices.Contains(p.searches, s) {
		p.searches = append(p.searches, s)
	}
}

// Unsearched says where a generator of a loader's fetches may be that nobody
// found; "" nowhere, or it is an older trace.
func (s *Streams) Unsearched(ranks timeline.Ranks) string {
	for _, l := range ranks {
		if text := s.unsearched(l); text != "" {
			return text
		}
	}
	return ""
}

func (s *Streams) unsearched(l *timeline.Loader) string {
	mine := processesOf(l)
	walk, process, whole := "", "", false
	for _, x := range s.searches[l.Process.Part] {
		at := x.path
		if at == "" {
			at = "its objects"
		}
		switch {
		case !mine[x.proc] || x.loader != 0 && !loads(l, x.loader):
		case x.way == "code" && x.why == "anew" && l.Iterable():
			return x.path + ": made anew, from one seed, by the code of the stream: nobody sees its numbers drawn"
		case x.way == "code" && x.why == "anew":
			return x.path + ": made anew in each call, from one seed: each sample gets the same numbers, and nobody sees them drawn"
		case x.why == "unreadable":
			return x.path + ": a generator whose state dptrace cannot read"
		case x.way == "process":
			whole = whole || x.why == ""
			if x.why != "" {
				process = "the search of the whole process for generators was not complete (" + x.why + ")"
			}
		case x.way == "walk" && x.why != "" && x.why != "type":
			walk = fmt.Sprintf("the search for generators left something out at %s (%s)", at, x.why)
		}
	}
	if walk != "" && (!whole || process != "") {
		return walk
	}
	return ""
}

// processesOf a loader are its own and those of its workers, by number.
func processesOf(l *timeline.Loader) map[uint32]bool {
	all := map[uint32]bool{l.Process.Proc: true}
	for _, p := range l.Passes {
		for _, w := range p.Workers {
			if w.Process != nil && w.Process.Part == l.Process.Part {
				all[w.Process.Proc] = true
			}
		}
	}
	return all
}

func loads(l *timeline.Loader, object uint32) bool {
	return slices.ContainsFunc(l.Objects, func(o traces.Loader) bool { return o.Loader == object })
}
