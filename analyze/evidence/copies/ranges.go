package copies

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Kind of memory.
type Kind uint8

// Kinds of memory that a copy's source lies in, at the time of the copy.
const (
	Unknown  Kind = iota // partly pinned, or what was pinned before is not known
	Pageable             // in nothing that the driver was told to know
	Pinned               // all of it, by the driver or by the program
	Managed              // it moves by itself
	Reached              // pageable, and the device may read such memory by itself
)

// span is memory of one kind.
type span struct {
	from, to uint64
	kind     Kind
}

// spans by their addresses, none over another.
type spans []span

// over is the places in the list of those that have any byte in common with a range.
func (s spans) over(from, to uint64) (first, end int) {
	first, _ = slices.BinarySearchFunc(s, from, func(x span, at uint64) int {
		if x.to <= at {
			return -1
		}
		return 1
	})
	for end = first; end < len(s) && s[end].from < to; end++ {
	}
	return first, end
}

// add a range. What lay there was given back, whether or not that was seen.
func (s spans) add(x span) spans {
	first, end := s.over(x.from, x.to)
	return slices.Replace(s, first, end, x)
}

// free what begins at an address.
func (s spans) free(address uint64) spans {
	first, end := s.over(address, address+1)
	if first < end && s[first].from == address {
		return slices.Delete(s, first, first+1)
	}
	return s
}

// kind of a range: that of the span which all of it is in, or outside if nothing of
// it is in any.
func (s spans) kind(from, to uint64, outside Kind) Kind {
	first, end := s.over(from, to)
	switch {
	case first == end:
		return outside
	case s[first].from <= from && to <= s[first].to:
		return s[first].kind
	}
	return Unknown
}

// take a row.
func (s spans) take(m *traces.HostMemory) spans {
	to := m.Address + uint64(max(m.Bytes, 0))
	switch {
	case m.What == "freed" || m.What == "unregistered":
		return s.free(m.Address)
	case to <= m.Address:
		return s
	case m.What == "pinned" || m.What == "registered":
		return s.add(span{m.Address, to, Pinned})
	case m.What == "managed":
		return s.add(span{m.Address, to, Managed})
	}
	return s
}

// inherited is what a process had from its parent as it began, which is no longer
// what the driver knows: nothing can be said of memory there.
func (p *partRows) inherited(process *timeline.Process) (s spans) {
	for parent := process.Parent; parent != nil; parent = parent.Parent {
		rows := p.procs[parent.Proc]
		if rows == nil || parent.Part != process.Part {
			continue
		}
		for i := range rows.memory {
			if m := &rows.memory[i]; m.TsNS < process.Begin {
				s = s.take(m)
			}
		}
	}
	for i := range s {
		s[i].kind = Unknown
	}
	return s
}

// told is the tables that tell of copies, and of the memory that they read from.
var told = []string{"host_memory", "copy", "cuda_library"}

func incomplete(t *timeline.Timeline, process *timeline.Process) bool {
	return t.Incomplete(process, told...)
}

// classify says what memory each copy of a process read from.
func (p *partRows) classify(t *timeline.Timeline, process *timeline.Process, r *procRows) {
	if r.hooked() {
		p.classifyAsked(r)
		return
	}
	slices.SortStableFunc(r.memory, func(a, b traces.HostMemory) int { return cmp.Compare(a.TsNS, b.TsNS) })
	slices.SortStableFunc(r.copies, func(a, b copied) int { return cmp.Compare(a.at, b.at) })
	if incomplete(t, process) || len(r.memory) > mostMemory {
		return // what is in a range may have been given back: both kinds of rows come through one ring
	}
	outside := Pageable
	switch {
	case r.late || !p.watches(r):
		outside = Unknown
	case p.reaches():
		outside = Reached
	}
	s, m := p.inherited(process), 0
	for i := range r.copies {
		c := &r.copies[i]
		for ; m < len(r.memory) && r.memory[m].TsNS <= c.at; m++ {
			s = s.take(&r.memory[m])
		}
		if to := c.source + uint64(max(c.bytes, 0)); c.plain && to > c.source {
			c.kind = s.kind(c.source, to, outside)
		}
	}
}

// hooked reports whether the copies of a process are those that the hook has told of.
func (r *procRows) hooked() bool { return len(r.copies) > 0 && r.copies[0].hook }

// choose whose rows of copies count: the driver's, where it was watched.
func (r *procRows) choose() {
	if len(r.copies) == 0 && (r.driver == nil || r.driver.How == "") {
		r.copies = r.asked
	} else {
		r.skips = nil
	}
}

// classifyAsked leaves what the hook knows, but where devices read any memory.
func (p *partRows) classifyAsked(r *procRows) {
	for i := range r.copies {
		if c := &r.copies[i]; c.kind == Pageable && p.reaches() {
			c.kind = Reached
		}
	}
	slices.SortStableFunc(r.copies, func(a, b copied) int { return cmp.Compare(a.at, b.at) })
}

// watches reports whether the driver's calls are watched in a process.
func (p *partRows) watches(r *procRows) bool {
	if r.driver != nil {
		return r.driver.How != ""
	}
	return p.watched
}

// reaches reports whether the devices of the machine may read pageable memory by
// themselves: those of Grace Hopper and its kin do, which are arm64. The trace does
// not tell them from others, and an older one not what the machine is.
func (p *partRows) reaches() bool { return p.host.Arch != "amd64" }
