package samples

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/digests"
)

// Census is what all workers of a pass delivered, nearly every sample of which was
// looked at.
type Census struct {
	Delivered  int  // samples
	Samples    int  // of them that were looked at
	Shared     int  // different ones that several workers delivered
	Everywhere int  // of them, that each worker delivered, once
	Surplus    int  // deliveries of them beyond their first
	Own        int  // different ones that one worker delivered several times: equal rows of the data
	Seam       int  // samples at the end of each worker's share that are the beginning of the next one's, the same number at all
	Seams      int  // of such places
	Rotated    bool // one worker's are another's, begun elsewhere: every n-th of several rounds
}

// Nearly reports whether so many of some samples were looked at that what they have in
// common shows: 19 of 20.
func Nearly(looked, all int) bool { return all > 0 && 20*looked >= 19*all }

// Count what several workers read; nil: too few samples were looked at, or some
// have next to nothing in them.
func Count(reads []*Read) *Census {
	c := &Census{}
	keys := make([][]digests.Sum, len(reads))
	for i, r := range reads {
		by := r.basis()
		if !Nearly(len(r.digests), r.Samples) {
			return nil
		}
		c.Delivered += r.Samples
		for k := range r.digests {
			key, ok := r.digests[k].key(by)
			if !ok {
				return nil
			}
			keys[i] = append(keys[i], key)
		}
	}
	c.tally(keys)
	c.seams(reads, keys)
	c.Rotated = len(keys) > 1 && rotated(keys[0], keys[1])
	return c
}

func (c *Census) tally(keys [][]digests.Sum) {
	type count struct{ workers, times, last int }
	of := map[digests.Sum]*count{}
	for w, list := range keys {
		c.Samples += len(list)
		for _, k := range list {
			n := of[k]
			if n == nil {
				n = &count{last: -1}
				of[k] = n
			}
			n.times++
			if n.last != w {
				n.last = w
				n.workers++
			}
		}
	}
	for _, n := range of {
		if n.times > n.workers {
			c.Own++
		}
		if n.workers < 2 {
			continue
		}
		c.Shared++
		c.Surplus += n.workers - 1
		if n.workers == len(keys) && n.times == n.workers {
			c.Everywhere++
		}
	}
}

// seams looks for samples that are the last ones of each worker and the first ones of
// the next, and nothing else in common.
func (c *Census) seams(reads []*Read, keys [][]digests.Sum) {
	if c.Shared == 0 || c.Own > 0 || c.Shared != c.Surplus || c.Shared%(len(keys)-1) != 0 {
		return
	}
	n := c.Shared / (len(keys) - 1)
	for i := range keys[1:] {
		a, b := keys[i], keys[i+1]
		if !reads[i].ends() || reads[i+1].digests[0].position != 0 {
			return
		}
		if reads[i].Worker.Number+1 != reads[i+1].Worker.Number || 2*n > len(a) || 2*n > len(b) || !slices.Equal(a[len(a)-n:], b[:n]) {
			return
		}
	}
	c.Seam, c.Seams = n, len(keys)-1
}

// ends reports whether the last sample was looked at.
func (r *Read) ends() bool { return int(r.digests[len(r.digests)-1].position) == r.Samples-1 }

// rotated reports whether one list is the other, begun elsewhere: data that are gone
// through several times and then dealt out.
func rotated(a, b []digests.Sum) bool {
	if len(a) != len(b) || len(a) == 0 || a[0] == b[0] {
		return false
	}
	at := slices.Index(a, b[0])
	return at > 0 && slices.Equal(a[at:], b[:len(a)-at]) && slices.Equal(a[:at], b[len(a)-at:])
}
