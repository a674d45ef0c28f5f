// Package detecttest makes traces for the tests of rules: it plays programs
// that draw from real generators and writes what the hook would have written,
// and it compares the findings of recorded traces with golden files.
package detecttest

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/dptrace/dptrace/analyze/rng"
)

// Gen is a generator that a played program draws from.
type Gen struct {
	Kind  string
	Class string
	g     interface{ Encode() []byte }
}

// MT is np.random.RandomState(seed), or torch's generator after manual_seed.
func MT(seed uint32) *Gen {
	m := rng.SeedMT19937(seed)
	return &Gen{rng.KindMT19937, "numpy.random.mtrand.RandomState", &m}
}

// Python is random.Random(seed).
func Python(seed uint64) *Gen {
	m := rng.SeedPython(seed)
	return &Gen{rng.KindMT19937, "random.Random", &m}
}

// PCG is like np.random.default_rng(seed), with another way to turn seeds into
// states.
func PCG(seed uint64) *Gen { return pcg(seed, rng.KindPCG64) }

// DXSM is like np.random.Generator(np.random.PCG64DXSM(seed)).
func DXSM(seed uint64) *Gen { return pcg(seed, rng.KindPCG64DXSM) }

func pcg(seed uint64, kind string) *Gen {
	r := rand.New(rand.NewPCG(seed, 1))
	p := rng.PCG{
		State: rng.U128{Hi: r.Uint64(), Lo: r.Uint64()},
		Inc:   rng.U128{Hi: r.Uint64(), Lo: r.Uint64() | 1},
		DXSM:  kind == rng.KindPCG64DXSM,
	}
	return &Gen{kind, "numpy.random._generator.Generator", &p}
}

// Philox is like np.random.Generator(np.random.Philox(seed)).
func Philox(seed uint64) *Gen {
	r := rand.New(rand.NewPCG(seed, 2))
	return &Gen{rng.KindPhilox, "numpy.random._generator.Generator", &rng.Philox{Key: [2]uint64{r.Uint64(), r.Uint64()}, Pos: 4}}
}

// SFC is like np.random.Generator(np.random.SFC64(seed)).
func SFC(seed uint64) *Gen {
	r := rand.New(rand.NewPCG(seed, 3))
	return &Gen{rng.KindSFC64, "numpy.random._generator.Generator", &rng.SFC64{State: [4]uint64{r.Uint64(), r.Uint64(), r.Uint64(), 13}}}
}

// CV2 is OpenCV's generator; -1: never seeded.
func CV2(seed int64) *Gen { return &Gen{rng.KindCV2, "cv2", &rng.CV2{Seed: seed}} }

// Sobol is a quasi-random engine; each seed is another sequence.
func Sobol(seed uint64) *Gen {
	s := &rng.Sobol{}
	binary.LittleEndian.PutUint64(s.Sequence[:], seed)
	return &Gen{rng.KindSobol, "torch.quasirandom.SobolEngine", s}
}

// Jump is what fast_forward does to a quasi-random engine.
func (g *Gen) Jump(n int) {
	s := g.g.(*rng.Sobol)
	s.Jumps++
	s.Drawn += uint64(n)
}

// Draw n 32-bit words; the 64-bit generators give whole outputs and, for an
// odd n, half of one.
func (g *Gen) Draw(n int) {
	switch t := g.g.(type) {
	case *rng.MT19937:
		for range n {
			t.Uint32()
		}
	case *rng.CV2:
		t.Bytes += uint64(4 * n)
	case *rng.Sobol:
		t.Drawn += uint64(n)
	case interface {
		Uint64() uint64
		Uint32() uint32
	}:
		for range n / 2 {
			t.Uint64()
		}
		if n%2 == 1 {
			t.Uint32()
		}
	}
}

// Copy is what fork or pickle make of a generator.
func (g *Gen) Copy() *Gen {
	c := *g
	switch t := g.g.(type) {
	case *rng.MT19937:
		v := *t
		c.g = &v
	case *rng.PCG:
		v := *t
		c.g = &v
	case *rng.Philox:
		v := *t
		c.g = &v
	case *rng.SFC64:
		v := *t
		c.g = &v
	case *rng.CV2:
		v := *t
		c.g = &v
	case *rng.Sobol:
		v := *t
		c.g = &v
	}
	return &c
}

// Set makes g the same as another, as seeding in place does.
func (g *Gen) Set(o *Gen) { g.g = o.Copy().g }

// state is the row of rng_state: position, name of the block, everything.
func (g *Gen) state() (pos int64, id, raw []byte) {
	m, ok := g.g.(*rng.MT19937)
	if !ok {
		return 0, nil, g.g.Encode()
	}
	for _, w := range m.Key.ID() {
		id = binary.LittleEndian.AppendUint32(id, w)
	}
	return int64(m.Pos), id, m.Encode()
}

// Next draws n raw outputs.
func (g *Gen) Next(n int) []uint64 {
	var out []uint64
	for range n {
		switch t := g.g.(type) {
		case *rng.MT19937:
			out = append(out, uint64(t.Uint32()))
		case interface{ Uint64() uint64 }:
			out = append(out, t.Uint64())
		}
	}
	return out
}
