package draws

import (
	"math/rand/v2"
	"testing"
)

// TestCover compares with a picture of every single word.
func TestCover(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var c IntervalSet
		owner := map[int64]*Draws{} // by word of stream 0, the first who drew it
		for range 12 {
			d := &Draws{}
			var shared int64
			at := r.Int64N(40)
			for range 1 + r.IntN(3) {
				s := Span{Stream: 0, From: at, To: at + 1 + r.Int64N(15)}
				at = s.To + r.Int64N(3)
				d.Spans = append(d.Spans, s)
			}
			want := map[*Draws]int64{}
			for _, s := range d.Spans {
				for w := s.From; w < s.To; w++ {
					if owner[w] != nil {
						shared++
						want[owner[w]]++
					} else {
						owner[w] = d
					}
				}
			}
			got := map[*Draws]int64{}
			for _, s := range c.Add(d) {
				if s.Second != d || s.From >= s.To || owner[s.From] != s.First {
					t.Fatalf("piece %+v", s)
				}
				got[s.First] += s.To - s.From
				shared -= s.To - s.From
			}
			if shared != 0 {
				t.Fatalf("%d words too few", shared)
			}
			for d, n := range want {
				if got[d] != n {
					t.Fatalf("%d words of an earlier one, want %d", got[d], n)
				}
			}
		}
		if n := c.Words(); n != int64(len(owner)) {
			t.Fatalf("%d words in all, want %d", n, len(owner))
		}
	}
}

func TestCoverKeepsStreamsApart(t *testing.T) {
	var c IntervalSet
	c.Add(&Draws{Spans: []Span{{Stream: 1, From: 0, To: 10}}})
	if s := c.Add(&Draws{Spans: []Span{{Stream: 2, From: 0, To: 10}}}); s != nil {
		t.Errorf("shared between two streams: %+v", s)
	}
}

// Neighbours of one owner become one piece: 200,000 fetches of one process must
// not be 200,000 pieces.
func TestCoverJoins(t *testing.T) {
	var c IntervalSet
	d := &Draws{}
	for i := range int64(1000) {
		d.Spans = append(d.Spans, Span{From: 10 * i, To: 10*i + 10})
	}
	c.Add(d)
	if n := len(c.byStream[0]); n != 1 {
		t.Errorf("%d pieces", n)
	}
}
