package rng

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// PCG is NumPy's PCG64 or PCG64DXSM: a linear congruential generator of 128
// bits, s' = s*multiplier + Inc, whose states are permuted into 64-bit outputs.
type PCG struct {
	State, Inc U128
	DXSM       bool
	half
}

var (
	pcgMultiplier = U128{2549297995355413924, 4865540595714422341}
	// PCG64DXSM's "cheap multiplier" of numpy/random/src/pcg64/pcg64.h.
	dxsmMultiplier = U128{0, 0xda942042e4dd58b5}
)

func (p *PCG) multiplier() U128 {
	if p.DXSM {
		return dxsmMultiplier
	}
	return pcgMultiplier
}

// DecodePCG reads the column rng_state.raw of kind pcg64 or pcg64dxsm.
func DecodePCG(kind string, raw []byte) (PCG, error) {
	if err := checkSize(kind, raw, 40); err != nil {
		return PCG{}, err
	}
	return PCG{decodeU128(raw), decodeU128(raw[16:]), kind == KindPCG64DXSM, decodeHalf(raw[32:])}, nil
}

// Encode is the opposite of DecodePCG.
func (p *PCG) Encode() []byte {
	b := make([]byte, 40)
	p.State.put(b)
	p.Inc.put(b[16:])
	p.half.put(b[32:])
	return b
}

func (h half) put(b []byte) {
	if h.has {
		binary.LittleEndian.PutUint32(b, 1)
	}
	binary.LittleEndian.PutUint32(b[4:], h.upper)
}

// Uint64 draws the next output.
func (p *PCG) Uint64() uint64 {
	before := p.State
	p.State = p.State.mul(p.multiplier()).add(p.Inc)
	if !p.DXSM { // XSL-RR of the state after the step
		return bits.RotateLeft64(p.State.Hi^p.State.Lo, -int(p.State.Hi>>58))
	}
	hi, lo := before.Hi, before.Lo|1 // DXSM of the state before it
	hi ^= hi >> 32
	hi *= dxsmMultiplier.Lo
	hi ^= hi >> 48
	return hi * lo
}

// Uint32 draws half an output, as NumPy does for 32-bit integers.
func (p *PCG) Uint32() uint32 { return p.half.draw(p.Uint64) }

func (h *half) draw(next func() uint64) uint32 {
	if h.has {
		h.has = false
		return h.upper
	}
	w := next()
	h.has, h.upper = true, uint32(w>>32)
	return uint32(w)
}

// Distance is the number of 32-bit words from p to o; negative if o comes
// first. It is false if they are not of one stream (another increment) or 1<<48
// steps or more apart.
func (p *PCG) Distance(o *PCG) (int64, bool) {
	if p.Inc != o.Inc || p.DXSM != o.DXSM {
		return 0, false
	}
	n, ok := lcgSteps(p.State, o.State, p.multiplier(), p.Inc).signed()
	return 2*n - o.words() + p.words(), ok
}

// lcgSteps counts the steps from state a to b, modulo 2^128. Bit k of a state
// has a period of 2^(k+1), so the number is found bit by bit (Brown, "Random
// number generation with arbitrary stride", 1994).
func lcgSteps(a, b, multiplier, increment U128) U128 {
	var steps U128
	one := U128{0, 1}
	for bit := one; a != b && !bit.zero(); bit = bit.shl1() {
		if a.and(bit) != b.and(bit) {
			a = a.mul(multiplier).add(increment)
			steps = steps.or(bit)
		}
		increment = multiplier.add(one).mul(increment)
		multiplier = multiplier.mul(multiplier)
	}
	return steps
}

// Python is an expression that makes the same generator in NumPy.
func (p *PCG) Python() string {
	name := "PCG64"
	if p.DXSM {
		name = "PCG64DXSM"
	}
	return fmt.Sprintf("g = np.random.%s(); g.state = {'bit_generator': '%s', "+
		"'state': {'state': %s, 'inc': %s}, 'has_uint32': %d, 'uinteger': %d}",
		name, name, p.State, p.Inc, p.words(), p.upper)
}

// Advance moves by so many 32-bit words, forwards or backwards; a half-used
// output is rounded up to the next whole one, and no half is kept back.
func (p *PCG) Advance(words int64) {
	steps := halves(words - p.words())
	p.half = half{}
	n := uint64(steps)
	hi := uint64(0)
	if steps < 0 {
		hi = ^uint64(0) // modulo 2^128, going back is going on
	}
	mult, inc := p.multiplier(), p.Inc
	accMult, accInc := U128{0, 1}, U128{}
	one := U128{0, 1}
	for d := (U128{hi, n}); !d.zero(); d = d.shr1() {
		if d.Lo&1 != 0 {
			accMult, accInc = accMult.mul(mult), accInc.mul(mult).add(inc)
		}
		inc, mult = mult.add(one).mul(inc), mult.mul(mult)
	}
	p.State = p.State.mul(accMult).add(accInc)
}

// halves is a number of 32-bit words in 64-bit ones, rounded up.
func halves(words int64) int64 { return (words + 1) >> 1 }
