package words

import (
	"math"
	"testing"
)

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Number(7), "7"},
		{Number(1184), "1,184"},
		{Number(-1234567), "-1,234,567"},
		{Number(-123), "-123"},
		{Number(100000), "100,000"},
		{List(nil), ""},
		{List([]string{"a"}), "a"},
		{List([]string{"a", "b"}), "a and b"},
		{List([]string{"a", "b", "c"}), "a, b and c"},
		{List([]string{"a", "b", "c", "d"}), "a, b, c and d"},
		{List([]string{"a", "b", "c", "d", "e"}), "a, b, c and 2 more"},
		{Ints("worker", []int{3}), "worker 3"},
		{Ints("pass", []int{2, 1, 2}), "passes 1 and 2"},
		{Of(1, 1, "pass"), "the one pass"},
		{Of(2, 2, "worker"), "both workers"},
		{Of(3, 3, "pass"), "all 3 passes"},
		{Of(2, 3, "pass"), "2 of 3 passes"},
		{Upper("both"), "Both"},
		{Upper(""), ""},
		{Bytes(math.MinInt64), "-9223372036.85 GB"},
		{Bytes(-89_200_000), "-89.2 MB"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
