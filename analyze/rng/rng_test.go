package rng

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"
)

// vectors.json holds states and draws of real generators; vectors.py made it.
type vectors struct {
	Walks []struct {
		Kind                     string
		Seed                     uint64
		Start, Odd, After, Later string
		Draws32                  []uint32
		Draws64                  []uint64
		LaterWords               int64
	}
	Jumped []struct{ Kind, Start, Jumped string }
	Seeds  []struct {
		By           string
		Seed         uint64
		Start, After string
		Draws32      []uint32
	}
}

func load(t *testing.T) vectors {
	t.Helper()
	b, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Walks) == 0 || len(v.Jumped) == 0 || len(v.Seeds) == 0 {
		t.Fatal("vectors.json lacks a part")
	}
	return v
}

// generator is what the 64-bit generators have in common, for these tests.
type generator interface {
	Uint64() uint64
	Uint32() uint32
	Encode() []byte
}

func decode(t *testing.T, kind, state string) generator {
	t.Helper()
	raw, err := hex.DecodeString(state)
	if err != nil {
		t.Fatal(err)
	}
	var g generator
	switch kind {
	case KindPCG64, KindPCG64DXSM:
		var p PCG
		p, err = DecodePCG(kind, raw)
		g = &p
	case KindPhilox:
		var p Philox
		p, err = DecodePhilox(raw)
		g = &p
	case KindSFC64:
		var s SFC64
		s, err = DecodeSFC64(raw)
		g = &s
	default:
		t.Fatalf("kind %q", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(g.Encode(), raw) {
		t.Fatalf("%s: decoding and encoding changes the state", kind)
	}
	return g
}

func distance(a, b generator) (int64, bool) {
	switch a := a.(type) {
	case *PCG:
		return a.Distance(b.(*PCG))
	case *Philox:
		return a.Distance(b.(*Philox))
	case *SFC64:
		n, _, ok := a.Distance(b.(*SFC64), 1<<20)
		return n, ok
	}
	return 0, false
}

func TestNumPyGenerators(t *testing.T) {
	for _, v := range load(t).Walks {
		g := decode(t, v.Kind, v.Start)
		for i, want := range v.Draws32 {
			if got := g.Uint32(); got != want {
				t.Errorf("%s seed %d: 32-bit draw %d is %d, want %d", v.Kind, v.Seed, i, got, want)
			}
		}
		if got := hex.EncodeToString(g.Encode()); got != v.Odd {
			t.Errorf("%s seed %d: state after an odd number of 32-bit draws\n got %s\nwant %s", v.Kind, v.Seed, got, v.Odd)
		}
		for i, want := range v.Draws64 {
			if got := g.Uint64(); got != want {
				t.Errorf("%s seed %d: 64-bit draw %d is %d, want %d", v.Kind, v.Seed, i, got, want)
			}
		}
		if got := hex.EncodeToString(g.Encode()); got != v.After {
			t.Errorf("%s seed %d: state at the end\n got %s\nwant %s", v.Kind, v.Seed, got, v.After)
		}
		start, odd, after, later := decode(t, v.Kind, v.Start), decode(t, v.Kind, v.Odd), decode(t, v.Kind, v.After), decode(t, v.Kind, v.Later)
		for _, d := range []struct {
			from, to generator
			want     int64
		}{
			{start, start, 0},
			{start, odd, 3},
			{odd, after, 10}, // random_raw leaves the half word for later
			{start, after, 13},
			{after, later, v.LaterWords},
		} {
			if got, ok := distance(d.from, d.to); !ok || got != d.want {
				t.Errorf("%s seed %d: distance %d %v, want %d", v.Kind, v.Seed, got, ok, d.want)
			}
		}
		if v.Kind == KindSFC64 {
			if _, ok := distance(after, start); ok {
				t.Error("sfc64: a distance backwards")
			}
			continue
		}
		if got, ok := distance(later, start); !ok || got != -13-v.LaterWords {
			t.Errorf("%s seed %d: distance backwards %d %v", v.Kind, v.Seed, got, ok)
		}
	}
}

func TestOtherStreams(t *testing.T) {
	v := load(t)
	for i := 0; i+1 < len(v.Walks); i += 2 { // two seeds of each kind
		a, b := decode(t, v.Walks[i].Kind, v.Walks[i].Start), decode(t, v.Walks[i+1].Kind, v.Walks[i+1].Later)
		if n, ok := distance(a, b); ok {
			t.Errorf("%s: two seeds are %d words apart", v.Walks[i].Kind, n)
		}
	}
	for _, j := range v.Jumped {
		if n, ok := distance(decode(t, j.Kind, j.Start), decode(t, j.Kind, j.Jumped)); ok {
			t.Errorf("%s: jumped by only %d words", j.Kind, n)
		}
	}
}

func TestMT19937(t *testing.T) {
	for _, v := range load(t).Seeds {
		raw, _ := hex.DecodeString(v.Start)
		m, err := DecodeMT19937(raw)
		if err != nil {
			t.Fatal(err)
		}
		seeded := SeedMT19937(uint32(v.Seed))
		if v.By == "python" {
			seeded = SeedPython(v.Seed)
		}
		if m != seeded {
			t.Errorf("%s seed %d: seeding gives another state", v.By, v.Seed)
		}
		origin := m.Key
		var draws []uint32
		for range 700 {
			draws = append(draws, m.Uint32())
		}
		draws = append(draws[:5:5], draws[620:630]...)
		for i := range draws {
			if draws[i] != v.Draws32[i] {
				t.Errorf("%s seed %d: draw %d is %d, want %d", v.By, v.Seed, i, draws[i], v.Draws32[i])
			}
		}
		if got := hex.EncodeToString(m.Encode()); got != v.After {
			t.Errorf("%s seed %d: another state after 700 draws", v.By, v.Seed)
		}
		origin.Next()
		if origin.ID() == m.Key.ID() {
			t.Error("one block stepped, two were drawn from: the names must differ")
		}
		origin.Next()
		if !origin.Same(&m.Key) || origin.ID() != m.Key.ID() {
			t.Error("two blocks stepped are not the block that 700 draws end in")
		}
	}
}

func TestDamagedStates(t *testing.T) {
	for _, n := range []int{0, 1, 39, 41, 95, 2499, 2501} {
		raw := make([]byte, n)
		if _, err := DecodeMT19937(raw); err == nil {
			t.Errorf("mt19937 of %d bytes", n)
		}
		if _, err := DecodePCG(KindPCG64, raw); err == nil {
			t.Errorf("pcg64 of %d bytes", n)
		}
		if _, err := DecodePhilox(raw); err == nil {
			t.Errorf("philox of %d bytes", n)
		}
		if _, err := DecodeSFC64(raw); err == nil {
			t.Errorf("sfc64 of %d bytes", n)
		}
		if _, err := DecodeCV2(raw); err == nil {
			t.Errorf("cv2 of %d bytes", n)
		}
		if _, err := DecodeSobol(raw); err == nil {
			t.Errorf("sobol of %d bytes", n)
		}
	}
	raw := bytes.Repeat([]byte{0xff}, 2500)
	m, err := DecodeMT19937(raw)
	if err != nil || m.Pos < 0 || m.Pos > Block {
		t.Errorf("a position outside of the block: %d %v", m.Pos, err)
	}
	p, err := DecodePhilox(raw[:96])
	if err != nil {
		t.Fatal(err)
	}
	p.Uint64() // must not index past the buffer
}

func BenchmarkBlock(b *testing.B) {
	m := SeedMT19937(1)
	for b.Loop() {
		m.Key.Next()
	}
}
