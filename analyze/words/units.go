package words

import (
	"fmt"
	"math"
	"strings"
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
	switch {
	case n == 1:
		return "1 " + one
	case strings.HasSuffix(one, "s"), strings.HasSuffix(one, "ch"):
		return fmt.Sprintf("%d %ses", n, one)
	}
	return fmt.Sprintf("%d %ss", n, one)
}
