package stages

import (
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Clock puts the times of all parts on the monotonic clock of the first. It is for
// one goroutine.
type Clock struct {
	Begin int64 // of the run
	base  *traces.Part
	shift map[*traces.Part]int64

	last  *traces.Part // that was asked for, and its shift
	ahead int64
}

// NewClock is the clock of a run.
func NewClock(run *traces.Run, t *timeline.Timeline) *Clock {
	c := &Clock{shift: map[*traces.Part]int64{}, Begin: t.Begin}
	for _, p := range run.Parts {
		if c.base == nil {
			c.base = p
		}
		c.shift[p] = p.Ahead(c.base)
	}
	return c
}

// Of is a time of a part; never before 1, which viewers take for a time.
func (c *Clock) Of(p *traces.Part, ts int64) int64 {
	if p != c.last {
		c.last, c.ahead = p, c.shift[p]
	}
	return max(ts+c.ahead, 1)
}

// Wall is a time of this clock in nanoseconds since 1970; 0 not known.
func (c *Clock) Wall(ts int64) int64 { return c.base.Wall(ts) }
