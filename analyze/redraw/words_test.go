package redraw

import "testing"

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{short("numpy.random._generator.Generator"), "numpy.Generator"},
		{short("torch._C.Generator"), "torch.Generator"},
		{short("random.Random"), "random.Random"},
		{short("pkg.aug.Coin"), "pkg.aug.Coin"},
		{Tally{Drawn: 3000, Distinct: 1000}.Variety(), "1,000 distinct of 3,000"},
		{Tally{Drawn: 3000, Distinct: 1000, AtLeast: true}.Variety(), "≥ 1,000 distinct of ≥ 3,000"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
