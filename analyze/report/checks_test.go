package report

import "testing"

func TestReasons(t *testing.T) {
	const known = "hardly any random number was drawn for a sample, yet of many that came again"
	for _, c := range []struct {
		name  string
		count []string
		want  string
	}{
		{"the most frequent first", []string{"one rank", "an evaluation", "one rank"}, "one rank (2); an evaluation (1)"},
		{"more than three", []string{"a", "b", "c", "d", "e"}, "a (1); b (1); c (1); other reasons (2, see -v)"},
		{
			"that begin alike and are long",
			[]string{known + " 25 had their earlier content", known + " 45 had their earlier content"},
			"hardly any random number was drawn for a sample (2)",
		},
		{
			"a comma in a number",
			[]string{"1 of 3,000 samples are known to have the same content in each of several passes"},
			"1 of 3,000 samples are known to have the same content in ea… (1)",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			count := map[string]int{}
			for _, reason := range c.count {
				count[brief(reason)]++
			}
			if got := reasons(count); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}
