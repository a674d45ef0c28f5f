package draws

import (
	"github.com/dptrace/dptrace/analyze/rng"
	"github.com/dptrace/dptrace/traces"
)

// mtRow is one state of an MT19937, kept until everything is there: joining two
// states means stepping from one to the other, and equal generators in hundreds
// of workers shall be stepped once.
type mtRow struct {
	observation
	pos uint16
	id  rng.ID
}

func (p *partLogs) mersenne(l *log, o observation, r *traces.RngState) {
	id, err := rng.DecodeID(r.ID)
	if err != nil {
		l.unjoined(o) // of a kind that this version does not know
		return
	}
	if len(r.Raw) > 0 {
		if m, err := rng.DecodeMT19937(r.Raw); err == nil && m.Key.ID() == id {
			known := p.raws[r.Proc]
			if known == nil {
				known = map[rng.ID]*rng.Key{}
				p.raws[r.Proc] = known
			}
			known[id] = &m.Key
		}
	}
	if n := len(l.mersenne); n > 0 && l.mersenne[n-1].when == begin && o.when == begin {
		l.mersenne = l.mersenne[:n-1] // the pass was begun anew
	}
	l.mersenne = append(l.mersenne, mtRow{o, uint16(min(max(r.Pos, 0), rng.Block)), id})
}

// keyStore holds each distinct block once.
type keyStore struct {
	keys []*rng.Key
	byID map[rng.ID][]int32
}

// intern gives a block its number.
func (s *keyStore) intern(k *rng.Key) int32 {
	id := k.ID()
	for _, n := range s.byID[id] {
		if s.keys[n].Same(k) {
			return n
		}
	}
	s.keys = append(s.keys, k)
	s.byID[id] = append(s.byID[id], int32(len(s.keys)-1))
	return int32(len(s.keys) - 1)
}

// internAll takes the blocks of all parts over, in an order that does not
// depend on the order of merging.
func (s *Streams) internAll() {
	s.keys = &keyStore{byID: map[rng.ID][]int32{}}
	s.all(func(part *traces.Part, l *log) {
		known := s.parts[part].raws[l.key.proc]
		for i := range l.mersenne {
			if k := known[l.mersenne[i].id]; k != nil {
				n := s.keys.intern(k)
				known[l.mersenne[i].id] = s.keys.keys[n] // the copies can go
			}
		}
	})
}

// keyOf finds the whole block of a row: as its process wrote it, else as any
// other did, for the 128 bits of an id name a block. -1: nobody did.
func (s *Streams) keyOf(part *traces.Part, l *log, id rng.ID) int32 {
	numbers := s.keys.byID[id]
	if len(numbers) == 0 {
		return -1
	}
	if k := s.parts[part].raws[l.key.proc][id]; k != nil {
		for _, n := range numbers {
			if s.keys.keys[n] == k {
				return n
			}
		}
	}
	return numbers[0]
}
