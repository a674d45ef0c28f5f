package draws

import (
	"math"

	"github.com/dptrace/dptrace/traces"
)

// log is what was seen of one generator in one pass of one process.
type log struct {
	slot *Slot
	key  logKey
	hole uint64 // gaps of the part when its last row came
	ts   int64

	mersenne []mtRow   // states that are joined later: stepping is dear
	others   *wordsLog // states that were joined as they came

	spans      []span
	drew       int  // fetches with an interval, without the first
	drewFirst  bool // the first fetch of the pass has one
	broken     int  // fetches whose states do not join, without the first
	unfollowed int  // fetches left out when the budget ended
	gaps       int  // fetches next to rows that are lost
	fetches    int  // highest fetch seen, plus one
	late       bool // the state before the first draw was not seen: counts are lower bounds
	made       bool // the generator was not there when the pass began
	seeded     bool // the first fetch seeded it, or put another object in its place

	parts []part // what the first few fetches drew, one by one
}

// part is what one fetch drew, as in span.
type part struct {
	fetch    uint32
	stream   int32
	from, to int64
}

// mostParts is how many fetches of a pass are kept one by one.
const mostParts = 64

// span is raw outputs that were drawn inside of fetches, [from, to) on a stream
// in 32-bit words. The first fetch of a pass has a span of its own.
type span struct {
	stream        int32
	first         bool // drawn in the first fetch of the pass
	from, to      int64
	before, after uint32 // seq of the states around it
}

type when uint8

const (
	begin when = iota
	found
	before
	after
)

func whenOf(s string) when {
	switch s {
	case "begin", "fork":
		return begin
	case "before":
		return before
	case "after", "task", "end":
		return after
	}
	return found
}

// observation is one row of rng_state without the state.
type observation struct {
	seq    uint32
	fetch  uint32
	micros uint32 // in which the change since the state before it happened; saturates
	when   when
	gap    bool // rows before it are lost
}

// elapsed is the time in which a change happened: that of the fetch, or since
// the row before.
func (l *log) elapsed(r *traces.RngState) uint32 {
	ns := r.DurNS
	if ns <= 0 && l.ts > 0 {
		ns = r.TsNS - l.ts
	}
	l.ts = r.TsNS
	return uint32(min(max(ns/1000, 0), math.MaxUint32))
}

// joined says that stepping leads from the state before (row from) to o, over
// words [a, b) of a stream.
func (l *log) joined(o observation, stream int32, a, b int64, from uint32) {
	l.fetches = max(l.fetches, int(o.fetch)+1)
	if o.when != after || a == b {
		return
	}
	if o.gap { // what happened in the rows that are lost, nobody knows
		l.gaps++
		return
	}
	first := o.fetch == 0
	if first {
		l.drewFirst = true
	} else {
		l.drew++
	}
	if o.fetch < mostParts {
		l.parts = append(l.parts, part{o.fetch, stream, a, b})
	}
	if n := len(l.spans); n > 0 {
		s := &l.spans[n-1]
		if s.stream == stream && s.to == a && s.first == first {
			s.to, s.after = b, o.seq
			return
		}
	}
	l.spans = append(l.spans, span{stream, first, a, b, from, o.seq})
}

// unjoined says that o does not follow from the state before it.
func (l *log) unjoined(o observation) {
	l.fetches = max(l.fetches, int(o.fetch)+1)
	l.late = true
	switch {
	case o.when != after && o.when != found: // in the loop, or between two passes
	case o.gap:
		l.gaps++
	case o.fetch > 0: // seeded, or another object put in its place
		l.broken++
	case o.when == after:
		l.seeded = true
	}
}

// leftOut says that it is not known whether o follows: the budget has ended.
func (l *log) leftOut(o observation) {
	l.fetches = max(l.fetches, int(o.fetch)+1)
	l.late = true
	if o.when == after {
		l.unfollowed++
	}
}

// started says that o is the first state of the pass.
func (l *log) started(o observation) {
	if o.when != begin {
		l.late = true
		l.made = o.when == found
	}
	l.fetches = max(l.fetches, int(o.fetch)+1)
}
