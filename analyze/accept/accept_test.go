package accept

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/analyze/finding"
)

var rules = []string{"order-repeats", "not-shuffled", "swallowed-crash"}

func TestParse(t *testing.T) {
	const curriculum = "# why\n\n[[accept]]\nrule = \"order-repeats\"\nat = \"train.py:88\" # the loader\nreason = \"\"\"\ncurriculum:\nthe order is the point\"\"\"\n"
	want := []Entry{{Rule: "order-repeats", At: "train.py:88", Reason: "curriculum:\nthe order is the point", Place: "f.toml:3"}}
	for _, tc := range []struct {
		name, text string
		want       []Entry
		err        string // all of it, or its beginning
	}{
		{"empty", "", nil, ""},
		{"one", curriculum, want, ""},
		{"two", curriculum + "[[ accept ]]\nrule = 'not-shuffled'\nreason = 'x'\n", append(want, Entry{Rule: "not-shuffled", Reason: "x", Place: "f.toml:9"}), ""},
		{"an array", "\naccept = [{rule = 'not-shuffled', at = 'a.py', reason = 'x'},\n  {rule = 'order-repeats', at = 'b.py', reason = 'y'}]", []Entry{
			{Rule: "not-shuffled", At: "a.py", Reason: "x", Place: "f.toml:2"}, {Rule: "order-repeats", At: "b.py", Reason: "y", Place: "f.toml:2"}}, ""},
		{"no reason", "[[accept]]\nrule = 'not-shuffled'\nat = 'a.py:1'\n", nil, "f.toml:1: why is not-shuffled accepted?"},
		{"a blank reason", "[[accept]]\nrule = 'not-shuffled'\nat = 'a.py:1'\nreason = ' \t'\n", nil, "f.toml:1: why is not-shuffled accepted?"},
		{"no rule", "\n[[accept]]\nreason = 'x'\n", nil, "f.toml:2: which rule?"},
		{"unknown rule", curriculum + "[[accept]]\nrule = 'gradients'\nreason = 'x'\n", nil, "f.toml:9: no rule \"gradients\""},
		{"unknown key of an entry", curriculum + "until = 2027\n", nil, "f.toml:9: unknown key \"accept.until\""},
		{"unknown key", "quiet = true\n" + curriculum, nil, "f.toml:1: unknown key \"quiet\""},
		{"unknown table", "[report]\nformat = 'json'\n", nil, "f.toml:1: unknown key"},
		{"one bracket", "[accept]\nrule = 'not-shuffled'\nreason = 'x'\n", nil, "f.toml:1: [accept] has to be [[accept]]"},
		{"one table", "accept = {rule = 'not-shuffled', reason = 'x'}\n", nil, "f.toml:1: "},
		{"dotted keys", "accept.rule = 'not-shuffled'\naccept.reason = 'x'\n", nil, "f.toml:1: "},
		{"capitals", "[[Accept]]\nrule = 'not-shuffled'\nreason = 'x'\n", nil, "f.toml:1: unknown key \"Accept\""},
		{"comment alone", "# nothing\n", nil, ""},
		{"wrong type", "[[accept]]\nrule = 7\n", nil, "f.toml:2: "},
		{"no TOML", "[[accept]]\nrule = not-shuffled\n", nil, "f.toml:2: "},
		{"a key twice", "[[accept]]\nrule = 'not-shuffled'\nrule = 'order-repeats'\n", nil, "f.toml:3: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parse("f.toml", []byte(tc.text), rules)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("error %v, want %s", err, tc.err)
			}
		})
	}
}

func TestApply(t *testing.T) {
	for _, tc := range []struct {
		at, found, cwd string
		accepted       bool
	}{
		{"train.py:88", "train.py:88", "/home/u", true},
		{"./train.py:88", "train.py:88", "/home/u", true},
		{"train.py", "train.py:88", "/home/u", true},
		{"train.py:88", "train.py:8", "/home/u", false},
		{"train.py:8", "train.py:88", "/home/u", false},
		{"train.py:88", "src/train.py:88", "/home/u", false},
		{"rain.py:88", "train.py:88", "/home/u", false},
		{"/home/u/train.py:88", "train.py:88", "/home/u", true},
		{"/home/u/train.py:88", "train.py:88", "/home/v", false},
		{"../lib/data.py:3", "/home/lib/data.py:3", "/home/u", true},
		{"train.py:88", "train.py:88", "", true},
		{"a:b.py:3", "a:b.py:3", "/home/u", true},
		{"", "train.py:88", "/home/u", false},
		{"train.py", "", "/home/u", false},
		{"", "", "/home/u", true},
	} {
		findings := []finding.Finding{{Rule: "order-repeats", Loader: finding.Loader{At: tc.found}}, {Rule: "not-shuffled", Loader: finding.Loader{At: tc.found}}}
		unused := Apply([]Entry{{Rule: "order-repeats", At: tc.at, Reason: "why"}}, findings, tc.cwd)
		if got := findings[0].Accepted == "why"; got != tc.accepted || got != (len(unused) == 0) {
			t.Errorf("at %q, found at %q in %q: accepted %v, unused %v, want %v", tc.at, tc.found, tc.cwd, got, unused, tc.accepted)
		}
		if findings[1].Accepted != "" {
			t.Errorf("at %q: another rule was accepted too", tc.at)
		}
	}
}

// Of two entries for one finding the first says why; none of them is unused.
func TestTwice(t *testing.T) {
	findings := []finding.Finding{{Rule: "order-repeats", Loader: finding.Loader{At: "train.py:88"}}, {Rule: "order-repeats", Loader: finding.Loader{At: "train.py:90"}}}
	unused := Apply([]Entry{{Rule: "order-repeats", At: "train.py:88", Reason: "first"}, {Rule: "order-repeats", At: "train.py", Reason: "second"}}, findings, "")
	if findings[0].Accepted != "first" || findings[1].Accepted != "second" || unused != nil {
		t.Errorf("%q, %q, unused %v", findings[0].Accepted, findings[1].Accepted, unused)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"[[accept]]\nrule='not-shuffled'\nreason='x'\n", "accept=[{rule='not-shuffled',reason='x'}]\n[accept.x]\n", "accept.rule='x'\n\"accept\".reason='y'", "[[\"accept\"]]\nrule=1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		entries, err := parse("f.toml", text, rules)
		for _, e := range entries {
			if err != nil || e.Reason == "" || e.Rule == "" {
				t.Errorf("%+v, %v", e, err)
			}
		}
	})
}
