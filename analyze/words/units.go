package words

import (
	"fmt"
	"math"
	"time"
)

// Bytes for people, in units of 1000: 850 KB, 89.2 MB, 712 MB, 8.00 GB.
func Bytes(n int64) string {
	switch v := float64(n); {
	case n == math.MinInt64:
		return "-" + Bytes(math.MaxInt64) // it has no positive twin
	case n < 0:
		return "-" + Bytes(-n)
	case v < 999.5e3:
		return fmt.Sprintf("%.0f KB", v/1e3)
	case v < 99.95e6:
		return fmt.Sprintf("%.1f MB", v/1e6)
	case v < 999.5e6:
		return fmt.Sprintf("%.0f MB", v/1e6)
	}
	return fmt.Sprintf("%.2f GB", float64(n)/1e9)
}

// Count is "1 rank", "2 ranks", "2 passes", "3 batches".
func Count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, plural(one))
}

// Seconds for people: 0.3 s, 45 s, 12 min, 3.5 h.
func Seconds(s float64) string {
	switch {
	case s < 9.95:
		return fmt.Sprintf("%.1f s", s)
	case s < 600:
		return fmt.Sprintf("%.0f s", s)
	case s < 2*3600:
		return fmt.Sprintf("%.0f min", s/60)
	}
	return fmt.Sprintf("%.1f h", s/3600)
}

// Millis is a time for people: 0.3 ms, 5.8 ms, 120 ms, 3.5 s.
func Millis(d time.Duration) string {
	switch ms := float64(d) / 1e6; {
	case ms < 0.0995:
		return fmt.Sprintf("%.0f us", 1e3*ms)
	case ms < 9.95:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return Seconds(d.Seconds())
}

// Percent of a share of 1.
func Percent(share float64) string {
	switch p := 100 * share; {
	case p < 0.05:
		return "less than 0.1 %"
	case p < 9.95:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// Memory is a limit of it: of a control group, or of the machine ("").
func Memory(bytes int64, group string) string {
	if group != "" {
		return "the " + Bytes(bytes) + " that the control group " + group + " may use"
	}
	return "the " + Bytes(bytes) + " of this machine"
}
