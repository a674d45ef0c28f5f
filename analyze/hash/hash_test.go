package hash_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze/hash"
)

// TestMix: the first outputs of splitmix64 with seed 1234567, from its
// reference implementation.
func TestMix(t *testing.T) {
	const gamma = 0x9e3779b97f4a7c15
	state := uint64(1234567)
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := hash.Mix(state); got != want {
			t.Errorf("output %d: %d, want %d", i, got, want)
		}
		state += gamma
	}
}

// TestLow: each zero more halves what is taken, and takes none that was not.
func TestLow(t *testing.T) {
	const n = 1 << 16
	for zeros := range uint(8) {
		taken := 0
		for i := range uint64(n) {
			if hash.Low(i, zeros) {
				taken++
			}
			if zeros > 0 && hash.Low(i, zeros) && !hash.Low(i, zeros-1) {
				t.Fatalf("%d is taken with %d zeros, and not with one fewer", i, zeros)
			}
		}
		if want := n >> zeros; taken < want*9/10 || taken > want*11/10 {
			t.Errorf("%d zeros: %d of %d, want about %d", zeros, taken, n, want)
		}
	}
	if hash.Low(1, 63) || !hash.Low(1, 0) {
		t.Error("the ends: no zeros take all, 63 next to nothing")
	}
}
