package copies

import (
	"math/rand/v2"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// TestSpans compares with a list of what each byte is.
func TestSpans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const size = 60
	for range 400 {
		var s spans
		var bytes [size]int // number of the range that each is of; 0 none
		kinds, begins := []Kind{Pageable}, []uint64{0}
		for n := range 40 {
			from := uint64(r.IntN(size - 10))
			long := uint64(1 + r.IntN(10))
			row := traces.HostMemory{What: []string{"pinned", "registered", "managed", "freed", "unregistered"}[r.IntN(5)], Address: from, Bytes: int64(long)}
			s = s.take(&row)
			switch row.What {
			case "freed", "unregistered":
				if of := bytes[from]; of != 0 && begins[of] == from {
					forget(&bytes, of)
				}
			default:
				for i := from; i < from+long; i++ { // what lay there before is gone as a whole
					if bytes[i] != 0 {
						forget(&bytes, bytes[i])
					}
				}
				kinds, begins = append(kinds, map[string]Kind{"managed": Managed}[row.What]), append(begins, from)
				if row.What != "managed" {
					kinds[len(kinds)-1] = Pinned
				}
				for i := from; i < from+long; i++ {
					bytes[i] = len(kinds) - 1
				}
			}
			at, to := uint64(r.IntN(size-10)), uint64(1+r.IntN(10))
			to += at
			want := kinds[bytes[at]]
			for i := at; i < to; i++ {
				if bytes[i] != bytes[at] {
					want = Unknown
				}
			}
			if got := s.kind(at, to, Pageable); got != want {
				t.Fatalf("after %d rows: %d to %d is %d, want %d: %v", n+1, at, to, got, want, s)
			}
		}
	}
}

func forget(bytes *[60]int, of int) {
	for i := range bytes {
		if bytes[i] == of {
			bytes[i] = 0
		}
	}
}

// TestBytesAtTheEnd: addresses that go around are nowhere.
func TestBytesAtTheEnd(t *testing.T) {
	s := spans{}.take(&traces.HostMemory{What: "pinned", Address: 1<<64 - 10, Bytes: 100})
	if len(s) != 0 {
		t.Errorf("%v", s)
	}
}
