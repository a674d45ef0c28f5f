package timeline

import "slices"

// counts of the deliveries of a pass: runs of equal ones; where they change often,
// a byte for each that says which of few values it is.
type counts struct {
	runs   []run
	values []int32 // of which codes are the places
	codes  []uint8 // nil: runs
	n      int
}

type run struct {
	from  int
	value int32
}

const (
	// mostRuns are kept of a pass with more than mostValues different ones: of what follows nothing is known.
	mostRuns   = 1 << 16
	mostValues = 1 << 8
	// fewRuns are kept however long they are.
	fewRuns = 1 << 8
	runSize = 16 // bytes
)

func (c *counts) add(value int32) {
	if c.codes != nil && c.code(value) {
		return
	}
	c.n++
	last := len(c.runs) - 1
	switch {
	case last >= 0 && c.runs[last].value == value:
	case len(c.runs) < mostRuns:
		c.runs = append(c.runs, run{c.n - 1, value})
		if n := len(c.runs); n >= fewRuns && n&(n-1) == 0 && n*runSize > c.n {
			c.encode()
		}
	case c.runs[last].value != -1:
		c.runs = append(c.runs, run{c.n - 1, -1})
	}
}

// code adds a value as a code. Where there are too many different ones all become runs again.
func (c *counts) code(value int32) bool {
	at := slices.Index(c.values, value)
	if at < 0 {
		if len(c.values) == mostValues {
			c.decode()
			return false
		}
		at = len(c.values)
		c.values = append(c.values, value)
	}
	c.codes = append(c.codes, uint8(at))
	c.n++
	return true
}

// encode runs as codes, if their values are few.
func (c *counts) encode() {
	var values []int32
	for _, r := range c.runs {
		if slices.Contains(values, r.value) {
			continue
		}
		if len(values) == mostValues {
			return
		}
		values = append(values, r.value)
	}
	codes := make([]uint8, c.n)
	for i, r := range c.runs {
		end := c.n
		if i+1 < len(c.runs) {
			end = c.runs[i+1].from
		}
		at := uint8(slices.Index(values, r.value))
		for k := r.from; k < end; k++ {
			codes[k] = at
		}
	}
	c.values, c.codes, c.runs = values, codes, nil
}

func (c *counts) decode() {
	codes, values := c.codes, c.values
	*c = counts{}
	for _, code := range codes {
		value := values[code]
		if last := len(c.runs) - 1; last < 0 || c.runs[last].value != value {
			if len(c.runs) == mostRuns {
				value = -1
			}
			if last < 0 || c.runs[last].value != value {
				c.runs = append(c.runs, run{c.n, value})
			}
		}
		c.n++
	}
}

// get is -1 where it is not known.
func (c *counts) get(i int) int {
	if i < 0 || i >= c.n {
		return -1
	}
	if c.codes != nil {
		return int(c.values[c.codes[i]])
	}
	low, high := 0, len(c.runs)
	for low+1 < high {
		if mid := (low + high) / 2; c.runs[mid].from <= i {
			low = mid
		} else {
			high = mid
		}
	}
	return int(c.runs[low].value)
}
