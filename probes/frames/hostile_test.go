package frames_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/dptrace/dptrace/probes/frames"
)

// Memory that is no code any more, with pointers that lead into it: there may be an error, or nonsense, and no more.
func TestHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const size = 1 << 12
	for _, version := range []string{"3.8.1", "3.9.0", "3.10.0", "3.11.0", "3.12.0", "3.13.0", "3.14.0"} {
		l, ok := frames.LayoutOf(version)
		if !ok {
			t.Fatal(version)
		}
		for range 3000 {
			memory := make([]byte, size)
			for i := 0; i < size; i += 8 {
				word := r.Uint64()
				switch r.IntN(4) {
				case 0:
					word = r.Uint64N(size) // a pointer, or a length
				case 1:
					word = r.Uint64N(200)
				case 2:
					word = 1<<2 | 1<<5 | uint64(r.IntN(2))<<6 // of a string
				}
				binary.LittleEndian.PutUint64(memory[i:], word)
			}
			_, _ = l.Place(bytes.NewReader(memory), frames.Frame{Code: r.Uint64N(size), Instruction: r.Uint64N(2 * size)})
		}
	}
	for _, version := range []string{"", "3", "2.7.18", "3.7.1", "3.99.0", "3.x"} {
		if _, ok := frames.LayoutOf(version); ok {
			t.Errorf("%q has a layout", version)
		}
	}
}
