package otlp

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/traces"
)

// Ids are made of what a run is called and of where a batch stands in it, so that
// who exports a trace twice sends the same ids twice, and a backend has each span
// once.
type traceID [16]byte

type spanID [8]byte

// seed is what all ids of a process are made of.
type seed [2]uint64

func newSeed(p *traces.Part, proc uint32) seed {
	h := sha256.New()
	for _, text := range []string{p.RunID, p.BootID, p.Name} {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	var b [12]byte
	binary.LittleEndian.PutUint64(b[:], uint64(p.Started))
	binary.LittleEndian.PutUint32(b[8:], proc)
	h.Write(b[:])
	sum := h.Sum(nil)
	return seed{binary.LittleEndian.Uint64(sum), binary.LittleEndian.Uint64(sum[8:])}
}

// What ids are of.
const (
	ofBatch = iota + 1
	ofPass
	ofFinding
)

// trace is the id of one.
func (s seed) trace(kind uint64, numbers ...uint64) (id traceID) {
	a, b := mix(s[0]^kind), mix(s[1]+kind)
	for _, n := range numbers {
		a, b = mix(a^n), mix(b+n)
	}
	binary.BigEndian.PutUint64(id[:8], a)
	binary.BigEndian.PutUint64(id[8:], b|1) // never all zero, which is no id
	return id
}

func (s seed) batch(b *stages.Batch) traceID {
	return s.trace(ofBatch, uint64(b.Object), uint64(b.Pass), uint64(b.Number))
}

// span is the id of the nth span of a trace; 0 is its root.
func (t traceID) span(n int) (id spanID) {
	h := mix(binary.BigEndian.Uint64(t[:8]) + mix(binary.BigEndian.Uint64(t[8:])^uint64(n)))
	binary.BigEndian.PutUint64(id[:], max(h, 1))
	return id
}

// kept reports whether the trace is in a sample, the same in each export: by the
// 56 lowest bits of its id, as OpenTelemetry's consistent probability sampling
// takes them for random.
func (t traceID) kept(share float64) bool {
	const bits = 56
	return float64(binary.BigEndian.Uint64(t[8:])&(1<<bits-1)) >= (1-share)*(1<<bits)
}

// mix is the finalizer of SplitMix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
