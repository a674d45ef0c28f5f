package draws

import (
	"github.com/dptrace/dptrace/analyze/rng"
	"github.com/dptrace/dptrace/traces"
)

// follow joins the states of all Mersenne twisters. It takes one block after
// another that is known whole and steps it as long as some log waits for a
// later block; all logs that begin in one block are followed in one go. Blocks
// that are known whole and passed on the way place their streams on this one.
type follow struct {
	*Streams
	queue   []fragment
	pending map[int32][]fragment // of the queue, by block number
	placed  map[int32]place      // of blocks that are known whole
	bare    map[rng.ID]int32     // streams of blocks that are not: only what lies in one block is known
	bySlot  map[[2]string]*tries
	left    int64 // blocks that may still be stepped
}

type place struct {
	stream int32
	block  int64
}

// fragment is a log from one row on.
type fragment struct {
	part *traces.Part
	log  *log
	row  int
	key  int32 // number of its block, -1 if that is not known whole
}

// follower is a log on its way along a stream.
type follower struct {
	fragment // row is the one that it waits for
	at       int64
	waits    bool
}

// tries counts how the joins of one slot went, over all processes: a generator
// that is re-seeded for each sample never joins, and shall not cost much.
type tries struct{ ok, failed int }

// fewBlocks is how far a join is tried after it has only failed so far.
const (
	manyFailures = 8
	fewBlocks    = 8
)

// blocksPerMicro is more blocks than one thread steps in a microsecond (0.46 µs
// each here, NumPy and torch need about 1 µs with tempering).
const blocksPerMicro = 4

// maxBlocks bounds one join: about half a second.
const maxBlocks = 1 << 20

func (s *Streams) followMersenne() {
	f := &follow{Streams: s, pending: map[int32][]fragment{}, placed: map[int32]place{}, bare: map[rng.ID]int32{}, bySlot: map[[2]string]*tries{}, left: s.budget}
	s.internAll()
	s.all(func(part *traces.Part, l *log) {
		for n := len(l.mersenne); n > 0 && l.mersenne[n-1].when != after; n-- {
			l.mersenne = l.mersenne[:n-1] // nothing was drawn in a fetch after it
		}
		if len(l.mersenne) > 0 {
			l.started(l.mersenne[0].observation)
			f.push(part, l, 0)
		}
	})
	for len(f.queue) > 0 {
		next := f.queue[0]
		f.queue = f.queue[1:]
		switch {
		case next.key < 0:
			f.inBlock(next)
		case f.pending[next.key] != nil:
			f.step(next.key)
		}
	}
	s.budget = f.left
	s.all(func(_ *traces.Part, l *log) { l.mersenne = nil })
}

func (f *follow) push(part *traces.Part, l *log, row int) {
	fr := fragment{part, l, row, f.keyOf(part, l, l.mersenne[row].id)}
	f.queue = append(f.queue, fr)
	if fr.key >= 0 {
		f.pending[fr.key] = append(f.pending[fr.key], fr)
	}
}

func (f *follow) tries(l *log) *tries {
	k := [2]string{l.slot.Path, l.slot.Kind}
	if f.bySlot[k] == nil {
		f.bySlot[k] = &tries{}
	}
	return f.bySlot[k]
}

// broke ends a fragment before a row that does not follow from the one before
// it, and begins the next one there.
func (f *follow) broke(fr fragment) {
	o := fr.log.mersenne[fr.row].observation
	if o.when != found {
		f.tries(fr.log).failed++
	}
	fr.log.unjoined(o)
	f.push(fr.part, fr.log, fr.row)
}

// inBlock follows a fragment whose block is not known whole: as long as its
// states stay in that block.
func (f *follow) inBlock(fr fragment) {
	rows := fr.log.mersenne
	id := rows[fr.row].id
	s, ok := f.bare[id]
	if !ok {
		s = f.streams.make(nil)
		f.bare[id] = s
	}
	at := int64(rows[fr.row].pos)
	for fr.row++; fr.row < len(rows); fr.row++ {
		r := &rows[fr.row]
		if r.id != id || int64(r.pos) < at || r.when == found {
			f.broke(fr)
			return
		}
		fr.log.joined(r.observation, s, at, int64(r.pos), rows[fr.row-1].seq)
		at = int64(r.pos)
	}
}

// trip is one run along one stream.
type trip struct {
	*follow
	stream  int32
	block   int64
	id      rng.ID
	waiting map[rng.ID][]*follower
	all     []*follower // in a fixed order
	n       int         // how many wait
	last    int64       // block after which nobody waits any more
}

// step follows all fragments that begin in a block.
func (f *follow) step(key int32) {
	at, ok := f.placed[key]
	if !ok {
		at = place{f.streams.make(f.keys.keys[key]), 0}
		f.placed[key] = at
	}
	t := &trip{follow: f, stream: at.stream, block: at.block, waiting: map[rng.ID][]*follower{}}
	k := *f.keys.keys[key]
	t.arrive(&k)
	for t.n > 0 && t.block < t.last {
		if f.left <= 0 {
			t.giveUp()
			return
		}
		f.left--
		k.Next()
		t.block++
		t.arrive(&k)
	}
	for _, w := range t.all {
		if w.waits {
			t.broke(w.fragment)
		}
	}
}

// arrive serves those who wait for this block, takes up those who begin in it,
// and notes where it is.
func (t *trip) arrive(k *rng.Key) {
	t.id = k.ID()
	if list := t.waiting[t.id]; list != nil {
		delete(t.waiting, t.id)
		t.n -= len(list)
		for _, w := range list {
			w.waits = false
			t.tries(w.log).ok++
			t.advance(w)
		}
	}
	if s, ok := t.bare[t.id]; ok {
		t.streams.link(s, t.stream, t.block*rng.Block)
	}
	for _, n := range t.keys.byID[t.id] {
		if !t.keys.keys[n].Same(k) {
			continue
		}
		if at, ok := t.placed[n]; !ok {
			t.placed[n] = place{t.stream, t.block}
		} else if at.stream != t.stream {
			t.streams.link(at.stream, t.stream, (t.block-at.block)*rng.Block)
		}
		list := t.pending[n]
		delete(t.pending, n)
		for _, fr := range list {
			w := &follower{fragment: fr, at: t.block*rng.Block + int64(fr.log.mersenne[fr.row].pos)}
			w.row++
			t.all = append(t.all, w)
			t.advance(w)
		}
	}
}

// advance takes the rows that lie in the block where the trip is, then waits
// for the next one's.
func (t *trip) advance(w *follower) {
	rows := w.log.mersenne
	for w.row < len(rows) {
		r := &rows[w.row]
		if r.id != t.id {
			break
		}
		at := t.block*rng.Block + int64(r.pos)
		if at < w.at || r.when == found {
			t.here()
			t.broke(w.fragment)
			return
		}
		w.log.joined(r.observation, t.stream, w.at, at, rows[w.row-1].seq)
		w.at = at
		w.row++
	}
	if w.row == len(rows) {
		return
	}
	r := &rows[w.row]
	if key := t.keyOf(w.part, w.log, r.id); key >= 0 {
		if at, ok := t.placed[key]; ok && at.stream == t.stream && at.block <= t.block {
			t.broke(w.fragment) // put back
			return
		}
	}
	if r.when == found {
		t.broke(w.fragment)
		return
	}
	t.last = max(t.last, t.block+t.reach(w.log, r))
	t.waiting[r.id] = append(t.waiting[r.id], w)
	w.waits = true
	t.n++
}

// here places the block where the trip is, which may not be known whole.
func (t *trip) here() {
	if _, ok := t.bare[t.id]; !ok {
		s := t.streams.make(nil)
		t.bare[t.id] = s
		t.streams.link(s, t.stream, t.block*rng.Block)
	}
}

// reach is how many blocks a row may lie ahead.
func (t *trip) reach(l *log, r *mtRow) int64 {
	tr := t.tries(l)
	if tr.failed >= manyFailures && tr.ok < tr.failed/4 {
		return fewBlocks
	}
	return min(int64(r.micros)*blocksPerMicro+32, maxBlocks)
}

// giveUp leaves out all that is not joined yet: the budget has ended.
func (t *trip) giveUp() {
	t.Exhausted = true
	for _, w := range t.all {
		if w.waits {
			t.leaveOut(w.fragment)
		}
	}
	for _, list := range t.pending {
		for _, fr := range list {
			fr.row++
			t.leaveOut(fr)
		}
	}
	clear(t.pending)
}

func (f *follow) leaveOut(fr fragment) {
	for ; fr.row < len(fr.log.mersenne); fr.row++ {
		if fr.log.mersenne[fr.row].when == after {
			fr.log.unfollowed++
		}
	}
}
