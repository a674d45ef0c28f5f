package draws

import (
	"github.com/dptrace/dptrace/analyze/rng"
	"github.com/dptrace/dptrace/traces"
)

// wordsLog follows a generator of few words, whose distances are cheap: states
// are joined as they come, and none is kept. Its intervals lie on chains; what
// stream a chain is of is found later.
type wordsLog struct {
	last   any // rng.PCG, rng.Philox, rng.SFC64, rng.CV2 or rng.Sobol; nil before the first
	seq    uint32
	at     int64 // position of last in its chain
	chains []chain
}

// chain is states joined by stepping; span.stream numbers the chains of its log
// until they are placed on streams.
type chain struct {
	origin any
	end    int64 // words from the origin to the last state
}

func decodeWords(kind string, raw []byte) (any, error) {
	switch kind {
	case rng.KindPCG64, rng.KindPCG64DXSM:
		return rng.DecodePCG(kind, raw)
	case rng.KindPhilox:
		return rng.DecodePhilox(raw)
	case rng.KindSFC64:
		return rng.DecodeSFC64(raw)
	case rng.KindSobol:
		return rng.DecodeSobol(raw)
	}
	return rng.DecodeCV2(raw)
}

func (l *log) words(o observation, raw []byte, p *partLogs) {
	state, err := decodeWords(l.slot.Kind, raw)
	if err != nil {
		l.unjoined(o) // of a kind that this version does not know
		return
	}
	w := l.others
	if w == nil {
		w = &wordsLog{}
		l.others = w
	}
	if w.last != nil {
		n, ok, spent := p.distance(w.last, state, o.micros)
		if ok && o.when != found {
			l.joined(o, int32(len(w.chains)-1), w.at, w.at+n, w.seq)
			w.at += n
			w.chains[len(w.chains)-1].end = w.at
			w.last, w.seq = state, o.seq
			return
		}
		if spent {
			p.spent = true
			l.leftOut(o)
		} else {
			l.unjoined(o)
		}
	} else {
		l.started(o)
	}
	w.chains = append(w.chains, chain{origin: state})
	w.last, w.seq, w.at = state, o.seq, 0
}

// wordsPerMicro is more 32-bit words than one thread draws in a microsecond:
// SFC64 and PCG64 fill arrays with about one 64-bit word per nanosecond.
const wordsPerMicro = 5000

// outputsPerBlock is how many steps of SFC64 cost as much as a block of MT19937.
const outputsPerBlock = 400

// distance in words from a to b, if b can come after a within the time; spent
// says that to know it would take more steps than may still be taken.
func (p *partLogs) distance(a, b any, micros uint32) (n int64, ok, spent bool) {
	limit := int64(micros)*wordsPerMicro + 1<<16
	switch a := a.(type) {
	case rng.PCG:
		b := b.(rng.PCG)
		n, ok = a.Distance(&b)
	case rng.Philox:
		b := b.(rng.Philox)
		n, ok = a.Distance(&b)
	case rng.SFC64:
		b := b.(rng.SFC64)
		if ahead := b.Counter() - a.Counter(); ahead <= uint64(limit/2) && ahead > uint64(p.outputs) {
			return 0, false, true
		}
		var steps int64
		n, steps, ok = a.Distance(&b, limit/2)
		p.outputs -= steps
	case rng.CV2:
		b := b.(rng.CV2)
		n, ok = b.Words()-a.Words(), a.Seed == b.Seed
	case rng.Sobol:
		b := b.(rng.Sobol)
		n, ok = b.Words()-a.Words(), a.Sequence == b.Sequence && a.Jumps == b.Jumps
	}
	return n, ok && n >= 0 && n <= limit, false
}

// placeWords places the chains of generators of few words on streams.
func (r *resolver) placeWords() {
	var sfc []*sfcChain
	r.all(func(_ *traces.Part, l *log) {
		w := l.others
		if w == nil || len(l.spans) == 0 {
			l.others = nil
			return
		}
		if l.slot.Kind == rng.KindSFC64 {
			for i := range w.chains {
				sfc = append(sfc, &sfcChain{chain: &w.chains[i]})
			}
		}
	})
	drawn, ok := r.streams.placeSFC64(sfc, r.budget*outputsPerBlock)
	r.budget -= drawn / outputsPerBlock
	r.Exhausted = r.Exhausted || !ok
	r.all(func(_ *traces.Part, l *log) {
		w := l.others
		if w == nil {
			return
		}
		streams, offsets := make([]int32, len(w.chains)), make([]int64, len(w.chains))
		for i := range w.chains {
			if g, isSFC := w.chains[i].origin.(rng.SFC64); isSFC {
				streams[i], offsets[i] = sfc[0].stream, g.Position()
				sfc = sfc[1:]
			} else {
				streams[i], offsets[i] = r.streams.place(w.chains[i].origin)
			}
		}
		for i := range l.spans {
			x := &l.spans[i]
			n := x.stream
			x.stream, x.from, x.to = streams[n], x.from+offsets[n], x.to+offsets[n]
		}
		for i := range l.parts {
			x := &l.parts[i]
			n := x.stream
			x.stream, x.from, x.to = streams[n], x.from+offsets[n], x.to+offsets[n]
		}
		l.others = nil
	})
}
