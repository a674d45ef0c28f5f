package copies

import (
	"fmt"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

func TestMatch(t *testing.T) {
	const mib = 1 << 20
	told := func(n int32, dtypes string) []tensors { return byDtype(&traces.BatchBytes{Tensors: n, Dtypes: dtypes}) }
	for _, c := range []struct {
		name  string
		known []tensors
		sizes []int64
		want  string
	}{
		{"as it is", told(1, "float32=16777216"), []int64{16 * mib}, "[float32 4>4]"},
		{"pages that are not full", told(1, "float32=1003520"), []int64{1_000_000}, "[float32 4>4]"},
		{"not by a page", told(1, "float32=1003520"), []int64{990_000}, "[-]"},
		{"a half", told(1, "float32=16777216"), []int64{8 * mib}, "[float32 4>2]"},
		{"nearly a half", told(1, "float32=16777216"), []int64{8*mib - 8192}, "[-]"},
		{"nearly a half, of several tensors", told(3, "float32=16777216"), []int64{8*mib - 40_000}, "[-]"},
		{"four times", told(1, "uint8=16777216"), []int64{64 * mib}, "[uint8 1>4]"},
		{"three times", told(1, "uint8=16777216"), []int64{48 * mib}, "[-]"},
		{"two of one type", told(2, "float32=18874368"), []int64{16 * mib, 2 * mib}, "[float32 4>4 float32 4>4]"},
		{"parts for several devices", told(1, "float32=16777216"), []int64{4 * mib, 4 * mib, 4 * mib, 4 * mib}, "[float32 4>4 float32 4>4 float32 4>4 float32 4>4]"},
		{"one beside another", told(2, "float32=16777216,int64=1048576"), []int64{7 * mib, 16 * mib, mib}, "[- float32 4>4 int64 8>8]"},
		{"a half beside the whole is something else", told(1, "float32=16777216"), []int64{16 * mib, 8 * mib}, "[float32 4>4 -]"},
		{"very many", told(1, "float32=16777216"), []int64{mib, mib, mib, mib, mib, mib, mib, mib, 16 * mib}, "[- - - - - - - - float32 4>4]"},
		{"pinned, exactly", some("pinned", 16*mib, 1), []int64{16 * mib}, "[pinned 1>1]"},
		{"pinned, not exactly", some("pinned", 16*mib, 1), []int64{16*mib - 4}, "[-]"},
		{"pinned with a label", some("pinned", 16*mib+64, 2), []int64{16 * mib}, "[pinned 1>1]"},
		{"pinned, twice", some("pinned", 16*mib, 1), []int64{32 * mib}, "[pinned 1>2]"},
		{"small", told(1, "float32=65536"), []int64{66000}, "[-]"},
		{"nothing known", nil, []int64{mib}, "[-]"},
		{"no number", told(1, "float32=many"), []int64{mib}, "[-]"},
	} {
		var all []string
		for _, m := range match(c.sizes, c.known) {
			if m.Tensor == "" {
				all = append(all, "-")
			} else {
				all = append(all, fmt.Sprintf("%s %d>%d", m.Tensor, m.From, m.To))
			}
		}
		if got := fmt.Sprint(all); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
