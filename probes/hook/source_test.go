package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAssigningLine(t *testing.T) {
	for name, tc := range map[string]struct {
		source      string
		first, last int
		want        int
	}{
		"attribute":              {"class D:\n  def __init__(self):\n    self.rng = Random()\n", 1, 3, 3},
		"with a type":            {"self.rng: Generator = make()", 0, 0, 1},
		"in a tuple":             {"self.a, self.rng = 1, make()", 0, 0, 1},
		"first of a tuple":       {"self.rng, self.a = make(), 1", 0, 0, 1},
		"global":                 {"import x\nrng = x.make()\n", 0, 0, 2},
		"field of a dataclass":   {"class D:\n    rng: Generator = field(default_factory=make)", 0, 0, 2},
		"chained":                {"self.old = self.rng = make()", 0, 0, 1},
		"element of a dict":      {"self.all['x'].rng = make()", 0, 0, 1},
		"twice":                  {"self.rng = None\nself.rng = make()", 0, 0, 0},
		"the other is elsewhere": {"self.rng = None\nclass B:\n  self.rng = make()", 2, 3, 3},
		"compared":               {"if self.rng == other.rng: pass", 0, 0, 0},
		"used":                   {"x = self.rng.random()", 0, 0, 0},
		"a longer name":          {"self.rngs = []\nself.my_rng = make()", 0, 0, 0},
		"in a comment":           {"# self.rng = make()\nself.rng = make()", 0, 0, 2},
		"statement before key":   {"self.rng = make(rng=1)\ncall(rng=2)", 0, 0, 1},
		"key of a dict":          {"state = {'rng': make()}", 0, 0, 1},
		"set in a dict":          {"state['rng'] = make()", 0, 0, 1},
		"keyword":                {"f = partial(g, rng=make())", 0, 0, 1},
		"setattr":                {"setattr(self, 'rng', make())", 0, 0, 1},
		"keyword twice":          {"f = partial(g, rng=make())\nf = partial(g, rng=make())", 0, 0, 0},
		"nothing":                {"", 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := assignment{attr: "rng", first: tc.first, last: tc.last}
			if got := assigningLine([]byte(tc.source), a); got != tc.want {
				t.Errorf("line %d, want %d of\n%s", got, tc.want, tc.source)
			}
		})
	}
}

// The path of the source is whatever the watched program says.
func TestReadSource(t *testing.T) {
	dir := t.TempDir()
	pipe, large, plain := filepath.Join(dir, "pipe"), filepath.Join(dir, "large"), filepath.Join(dir, "plain")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{large: strings.Repeat("x", maxSource+1), plain: "rng = 1\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{pipe, large, dir, "/dev/zero", "relative", filepath.Join(dir, "missing"), ""} {
		if text := readSource(path); text != nil {
			t.Errorf("%q gave %d bytes", path, len(text))
		}
	}
	if text := readSource(plain); string(text) != "rng = 1\n" {
		t.Errorf("a plain file gave %q", text)
	}
}
