package duplicate

import "testing"

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
		{short("numpy.random._generator.Generator"), "numpy.Generator"},
		{short("torch._C.Generator"), "torch.Generator"},
		{short("random.Random"), "random.Random"},
		{short("pkg.aug.Coin"), "pkg.aug.Coin"},
		{Tally{Made: 3000, Distinct: 1000}.Variety(), "1,000 distinct of 3,000"},
		{Tally{Made: 3000, Distinct: 1000, AtLeast: true}.Variety(), "≥ 1,000 distinct of ≥ 3,000"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestOldTorch(t *testing.T) {
	for version, want := range map[string]bool{"1.8.1": true, "1.9.0": false, "1.13.0a0": false, "2.15.0+cpu": false, "0.4.1": true, "": false} {
		if OldTorch(version) != want {
			t.Errorf("OldTorch(%q) is %v", version, !want)
		}
	}
}
