package cow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

func (c *copies) base(certainty finding.Certainty) finding.Finding {
	l := c.group.Loaders[0]
	return finding.Finding{Rule: id, Certainty: certainty, Loader: finding.Loader{ID: c.group.ID, At: l.At(), Role: string(c.group.Loaders.Role())}, Proof: proof(c.round)}
}

func proof(r memory.Round) string {
	if r[0].Tier() == memory.Kernel {
		return "kernel"
	}
	return "hook"
}

func (c *copies) finding() finding.Finding {
	f := c.base(c.certainty)
	f.Title, f.Cost = c.title(), c.cost()
	f.Evidence = slices.Concat(c.counted(), c.curve(), c.why(), c.shares(), c.rest(), c.limits(), c.parent())
	f.Fix = c.fix()
	f.Verify = c.t.Verify(id)
	f.NotABugIf = "this much memory for the workers is planned for."
	return f
}

func (c *copies) title() string {
	workers := words.Count(len(c.round.Shares()), "worker")
	names := memory.Names(c.round[0].Ranked())
	var title string
	switch {
	case c.certainty == finding.Proven:
		title = fmt.Sprintf("%s copy %s: %s in each, %s in all", workers, names, c.each(), words.Bytes(c.limit.Load))
	case c.forecast > 0 && c.projected.Share() >= significant && c.limit.Share() < significant:
		title = fmt.Sprintf("%s are copying %s: %s so far, %s when they are through", workers, names, words.Bytes(c.limit.Load), words.Bytes(c.forecast))
	case c.certainty == finding.Likely:
		title = fmt.Sprintf("%s have %s of %s to themselves, %s each", workers, words.Bytes(c.limit.Load), names, c.each())
	case c.limited:
		title = fmt.Sprintf("%s copied %s of %s, %s of the memory there is", workers, words.Bytes(c.limit.Load), names, memory.Percent(c.limit.Share()))
	default:
		title = fmt.Sprintf("%s copied %s of %s", workers, words.Bytes(c.limit.Load), names)
	}
	if again := c.again(); again != "" {
		title += ", " + again
	}
	if ranks := c.round.Ranks(); len(ranks) > 1 {
		title += ", on " + words.Ints("rank", ranks)
	}
	return title
}

// each is what a worker copied: one number, or from least to most.
func (c *copies) each() string {
	var least, most int64 = -1, 0
	for _, s := range c.round.Shares() {
		if least < 0 || s.Charged < least {
			least = s.Charged
		}
		most = max(most, s.Charged)
	}
	if a, b := words.Bytes(least), words.Bytes(most); float64(least) < 0.9*float64(most) {
		return a + " to " + b
	}
	return words.Bytes(c.limit.Load / int64(len(c.round.Shares())))
}

// again says in how many passes it happened, if workers live for one.
func (c *copies) again() string {
	if c.round[0].Persist || len(c.group.Rounds) < 2 {
		return ""
	}
	n, all := 0, 0
	for _, r := range c.group.Rounds {
		if r[0].Passes[0].Delivered == 0 {
			continue
		}
		all++
		if 2*r.Sum((*memory.WorkerSet).Sum) >= c.limit.Load {
			n++
		}
	}
	if n == all && n > 1 {
		return fmt.Sprintf("in each of %d passes", n)
	}
	return fmt.Sprintf("in %d of %d passes", n, all)
}

func (c *copies) cost() string {
	r := c.round
	cost := fmt.Sprintf("%s per worker × %s = %s", c.each(), words.Count(len(r.Shares()), "worker"), words.Bytes(c.limit.Load))
	if c.limited {
		cost += fmt.Sprintf(", %s of %s", memory.Percent(c.limit.Share()), c.limit.What())
	}
	if c.forecast > 0 {
		cost += fmt.Sprintf("; forecast %s", words.Bytes(c.forecast))
		if c.limited {
			cost += " (" + memory.Percent(c.projected.Share()) + ")"
		}
	}
	return cost
}

// listed is how many workers are listed one by one.
const listed = 8

// counted is the bytes of each worker, and who counted them.
func (c *copies) counted() (list []finding.Evidence) {
	for _, crew := range c.round {
		if len(list) == listed {
			break
		}
		list = append(list, finding.Evidence{Text: c.countedIn(crew), Refs: refs(crew)})
	}
	return list
}

func (c *copies) countedIn(crew *memory.WorkerSet) string {
	by := crew.By()
	var what []string
	for _, e := range crew.Ranked() {
		text := fmt.Sprintf("%s (%s, %s items", e.Path, memory.Class(e), words.Number(e.Items))
		if len(crew.Ranked()) > 1 {
			text += ", " + words.Bytes(by[e.Extent])
		}
		what = append(what, text+")")
	}
	var each []string
	for _, s := range crew.Shares {
		if len(each) == listed {
			each = append(each, fmt.Sprintf("and %d more", len(crew.Shares)-listed))
			break
		}
		each = append(each, fmt.Sprintf("worker %d %s", s.Number, words.Bytes(s.Charged)))
	}
	if len(what) == 0 {
		what = []string{"a container whose name is lost"}
	}
	text := fmt.Sprintf("Of the memory that %s lies on, ", words.List(what))
	if len(what) > 1 {
		text = fmt.Sprintf("Of the memory that %s lie on (where they share pages, these count for each), ", words.List(what))
	}
	if rank := crew.Loader.Rank(); rank > 0 || len(c.round) > 1 {
		text += fmt.Sprintf("on rank %d ", rank)
	}
	first, last := crew.Passes[0].Number, crew.Passes[len(crew.Passes)-1].Number
	when := fmt.Sprintf("in pass %d", first)
	if last != first {
		when = fmt.Sprintf("in passes %d to %d", first, last)
	}
	if crew.Tier() == memory.Kernel {
		return text + fmt.Sprintf("%s copied: %s (the kernel counted the write faults on pages that were shared, in pages of 4 KiB).", when, strings.Join(each, ", "))
	}
	text += fmt.Sprintf("%s got pages that nobody else maps: %s (by their own /proc/self/pagemap; new pages are subtracted).", when, strings.Join(each, ", "))
	if crew.Certain() > 0 {
		return text + fmt.Sprintf(" Only %s were there when they began: what they have beyond that in all are copies.", words.Bytes(crew.Present()))
	}
	return text + " Copied pages look like this, and so do pages that the main process has let go of."
}

func refs(crew *memory.WorkerSet) []finding.Ref {
	out := crew.ExtentRefs(crew.Ranked()...)
	for i, s := range crew.Shares {
		if i == listed {
			break
		}
		out = append(out, s.Refs...)
	}
	return out
}

// curve of the worker that copied most, and where it ends.
func (c *copies) curve() []finding.Evidence {
	crew := c.round[0]
	var s *memory.WorkerMemory
	for _, one := range crew.Shares {
		if s == nil || one.Charged > s.Charged {
			s = one
		}
	}
	var text string
	if len(crew.Passes) > 1 {
		var steps []string
		for _, p := range few(crew.Passes) {
			steps = append(steps, fmt.Sprintf("%s after pass %d", words.Bytes(s.At(end(p))), p.Number))
		}
		text = fmt.Sprintf("Worker %d had copied %s.", s.Number, words.List(steps))
	} else if grown := s.Grown(); len(grown) > 1 {
		var steps []string
		begin := crew.Passes[0].Begin
		for _, p := range few(grown) {
			steps = append(steps, fmt.Sprintf("%s after %s", words.Bytes(p.Charged), memory.Seconds(max(0, float64(p.TS-begin)/1e9))))
		}
		text = fmt.Sprintf("Worker %d had copied %s.", s.Number, words.List(steps))
	}
	if text != "" {
		text += " "
	}
	plateau := crew.Plateau()
	switch {
	case c.forecast > 0:
		text += fmt.Sprintf("It was still growing, after about %s of %s items; at most %s are there to be copied by each worker.",
			words.Number(s.Samples), words.Number(crew.Main().Items), words.Bytes(plateau))
	case 10*s.Charged >= 9*plateau:
		text += fmt.Sprintf("That is all there is: %s.", words.Bytes(plateau))
	default:
		text += fmt.Sprintf("At most %s are there to be copied by each worker.", words.Bytes(plateau))
	}
	return []finding.Evidence{{Text: text}}
}

// end of a pass: what is counted in it is written down within a second or so.
func end(p *timeline.Pass) int64 {
	const late = 1_500_000_000
	l := p.Loader
	if p.Number+1 < len(l.Passes) {
		return min(p.End+late, max(p.End, l.Passes[p.Number+1].Begin))
	}
	return p.End + 10*late
}

// few of many: the first, the last and one or two between, spread evenly.
func few[T any](all []T) []T {
	const most = 4
	if len(all) <= most {
		return all
	}
	var out []T
	for i := range most {
		out = append(out, all[i*(len(all)-1)/(most-1)])
	}
	return out
}

func (c *copies) why() []finding.Evidence {
	return []finding.Evidence{{Text: "A Python object holds its reference count. To use an object of " + memory.Names(c.round[0].Ranked()) +
		" writes it, and the first write to a page after the fork copies the page, for each worker anew. Nothing leaks: it ends when each worker has its own copy."}}
}

// shares of the workers' growth.
func (c *copies) shares() []finding.Evidence {
	var copied, anon, file int64
	for _, s := range c.round.Shares() {
		if !s.Looked {
			return nil
		}
		copied += s.Charged + s.Others + s.Outside + s.Rest
		anon += max(0, s.NewAnon)
		file += max(0, s.NewFile)
	}
	return []finding.Evidence{{Text: fmt.Sprintf("What the workers' memory grew by: %s copied, %s new anonymous memory, %s files and shared memory (the latter two between the first and the last look at smaps_rollup).",
		words.Bytes(copied), words.Bytes(anon), words.Bytes(file))}}
}

// rest is what else they copied.
func (c *copies) rest() []finding.Evidence {
	if c.round[0].Tier() != memory.Kernel {
		return nil
	}
	n := int64(len(c.round.Shares()))
	all, outside := c.others()
	if all == 0 {
		return nil
	}
	text := fmt.Sprintf("Not charged to the dataset: %s per worker of other memory that they inherited", words.Bytes(all/n))
	if all-outside > 0 {
		text += fmt.Sprintf(", of it %s of the objects of other datasets", words.Bytes((all-outside)/n))
	}
	return []finding.Evidence{{Text: text + ". Modules that were imported before are part of it: the garbage collector writes to their objects."}}
}

// limits is how much memory there is, and when it will be used up.
func (c *copies) limits() []finding.Evidence {
	if !c.limited {
		return nil
	}
	l := c.limit
	text := "The smallest limit for this is " + l.What()
	if l.Usage >= 0 && l.Asked < c.round[0].Passes[0].Begin {
		l.Usage = -1 // from before the workers were started
	}
	if l.Usage >= 0 {
		text += fmt.Sprintf("; %s of it were in use", words.Bytes(l.Usage))
	}
	text += "."
	if left, rate := l.Bytes-l.Usage, rate(c.round); c.forecast > 0 && l.Usage >= 0 && rate > 0 {
		if c.forecast-l.Load > left {
			text += fmt.Sprintf(" At %s per second, as observed, the limit is reached %s after the end of this recording.", words.Bytes(int64(rate)), memory.Seconds(float64(max(0, left))/rate))
		} else {
			text += fmt.Sprintf(" The forecast adds %s to that, which fits.", words.Bytes(c.forecast-l.Load))
		}
	}
	return []finding.Evidence{{Text: text, Refs: []finding.Ref{l.Ref}}}
}

func rate(r memory.Round) float64 {
	var sum float64
	for _, crew := range r {
		sum += crew.Rate()
	}
	return sum
}

// parent is what the main process wrote to: not added to anything.
func (c *copies) parent() []finding.Evidence {
	n := c.m.Parent(c.round[0])
	if n < noteworthy {
		return nil
	}
	return []finding.Evidence{{Text: fmt.Sprintf("The main process itself wrote to %s of memory after it had forked; to free objects at its end is enough for that. How much of it was copied cannot be told, and it is not part of the numbers above.", words.Bytes(n))}}
}

func (c *copies) unnamedFinding() finding.Finding {
	c2 := *c
	c2.round, c2.limit = c.unnamed, c.nameless
	f := c2.base(finding.Likely)
	shares := c.unnamed.Shares()
	n := int64(len(shares))
	var refs []finding.Ref
	var each []string
	for i, s := range shares {
		if i == listed {
			break
		}
		refs = append(refs, s.Refs...)
		each = append(each, fmt.Sprintf("worker %d %s", s.Number, words.Bytes(s.Outside)))
	}
	f.Title = fmt.Sprintf("%s copy %s of inherited memory that dptrace could not name: %s each", words.Count(len(shares), "worker"), words.Bytes(c.nameless.Load), words.Bytes(c.nameless.Load/n))
	f.Evidence = slices.Concat([]finding.Evidence{{
		Text: fmt.Sprintf("Of heap and anonymous memory on which no container of the dataset that dptrace can reach lies: %s copied, in several steps with batches in between (counted by the kernel).", strings.Join(each, ", ")), Refs: refs}},
		c2.limits())
	f.Cost = fmt.Sprintf("%s per worker × %s = %s, %s of %s", words.Bytes(c.nameless.Load/n), words.Count(len(shares), "worker"), words.Bytes(c.nameless.Load), memory.Percent(c.nameless.Share()), c.nameless.What())
	f.Fix = "Find what the workers use or write to that the main process has made before: Python objects in containers that are not\nreachable from the dataset's attributes (a C extension, a closure), or arrays that they write to in place."
	f.Verify = c.t.Verify(id)
	f.NotABugIf = "the workers are meant to have this memory to themselves, such as buffers that they write to."
	return f
}
