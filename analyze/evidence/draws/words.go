package draws

import (
	"github.com/dptrace/dptrace/analyze/rng"
)

// wordsLog follows a generator of few words, whose distances are cheap: states
// are joined as they come, and none is kept. Its intervals lie on chains; what
// stream a chain is of is found later.
type wordsLog struct {
	last   any // rng.PCG, rng.Philox, rng.SFC64 or rng.CV2; nil before the first
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
	}
	return rng.DecodeCV2(raw)
}

func (l *log) words(o observation, raw []byte) {
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
		if n, ok := distance(w.last, state, o.micros); ok && o.when != found {
			l.joined(o, int32(len(w.chains)-1), w.at, w.at+n, w.seq)
			w.at += n
			w.chains[len(w.chains)-1].end = w.at
			w.last, w.seq = state, o.seq
			return
		}
		l.unjoined(o)
	} else {
		l.started(o)
	}
	w.chains = append(w.chains, chain{origin: state})
	w.last, w.seq, w.at = state, o.seq, 0
}

// wordsPerMicro is more 32-bit words than one thread draws in a microsecond:
// SFC64 and PCG64 fill arrays with about one 64-bit word per nanosecond.
const wordsPerMicro = 5000

// distance in words from a to b, if b can come after a within the time.
func distance(a, b any, micros uint32) (int64, bool) {
	limit := int64(micros)*wordsPerMicro + 1<<16
	var n int64
	var ok bool
	switch a := a.(type) {
	case rng.PCG:
		b := b.(rng.PCG)
		n, ok = a.Distance(&b)
	case rng.Philox:
		b := b.(rng.Philox)
		n, ok = a.Distance(&b)
	case rng.SFC64:
		b := b.(rng.SFC64)
		n, _, ok = a.Distance(&b, limit/2)
	case rng.CV2:
		b := b.(rng.CV2)
		n, ok = b.Words()-a.Words(), a.Seed == b.Seed
	}
	return n, ok && n >= 0 && n <= limit
}
