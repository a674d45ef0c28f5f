package redraw

import "testing"

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
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
