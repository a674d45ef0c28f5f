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
		{Of(3, 3, "batch"), "all 3 batches"},
		{Upper("both"), "Both"},
		{Upper(""), ""},
		{Bytes(math.MinInt64), "-9223372036.85 GB"},
		{Bytes(-89_200_000), "-89.2 MB"},
		{Seconds(0.34), "0.3 s"},
		{Seconds(45), "45 s"},
		{Seconds(720), "12 min"},
		{Seconds(3.5 * 3600), "3.5 h"},
		{Percent(0.0001), "less than 0.1 %"},
		{Percent(0.076), "7.6 %"},
		{Percent(0.76), "76 %"},
		{Memory(2<<30, "/job"), "the 2.15 GB that the control group /job may use"},
		{Memory(2<<30, ""), "the 2.15 GB of this machine"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
