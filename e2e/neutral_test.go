package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNeutral runs one program plain and recorded: losses, sample order,
// generator states and lifetimes must be the same, line by line.
func TestNeutral(t *testing.T) {
	p := python(t)
	t.Parallel()
	command := []string{p.Path, "loaders.py"}
	plain := run(t, "neutral", command...)
	if plain.code != 0 {
		t.Fatalf("exits %d:\n%s", plain.code, plain.tail())
	}
	if n := strings.Count(plain.stdout, `"main"`); n < 10 {
		t.Fatalf("only %d passes were made", n)
	}
	recorded, _ := record(t, "neutral", command...)
	if recorded.code != 0 {
		t.Fatalf("exits %d when recorded:\n%s", recorded.code, recorded.tail())
	}
	for _, line := range differences(recorded.stdout, plain.stdout) {
		t.Errorf("recording changed %s", line)
	}
	if t.Failed() {
		if again := differences(run(t, "neutral", command...).stdout, plain.stdout); again != nil {
			t.Logf("but the program itself is not the same twice: %v", again)
		}
	}
}

// TestNeutralCanFail records with a hook that draws one number in each process:
// that must show in what TestNeutral compares.
func TestNeutralCanFail(t *testing.T) {
	if testing.Short() {
		t.Skip("it is run by `make test-all`")
	}
	p := python(t)
	t.Parallel()
	drawing := buildDrawing(t)
	for _, kind := range []string{"map", "main process"} {
		command := []string{p.Path, "loaders.py", kind}
		plain := run(t, "neutral", command...)
		trace := filepath.Join(t.TempDir(), "run.dptrace")
		drawn := runRecorded(t, drawing, "neutral", trace, command)
		if plain.code != 0 || drawn.code != 0 {
			t.Fatalf("exits %d, and %d with a hook that draws:\n%s", plain.code, drawn.code, drawn.tail())
		}
		if differences(drawn.stdout, plain.stdout) == nil {
			t.Errorf("%s: a hook that draws one number in each process changed nothing that is compared", kind)
		}
	}
}

// differences names the lines that differ, each by its head.
func differences(got, want string) []string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	var found []string
	for i := range max(len(g), len(w)) {
		line := func(all []string) string {
			if i < len(all) {
				return all[i]
			}
			return ""
		}
		if a, b := line(g), line(w); a != b {
			at := 0
			for at < min(len(a), len(b)) && a[at] == b[at] {
				at++
			}
			found = append(found, "line "+short(b, 0)+" at "+short(b, at)+", now "+short(a, at))
		}
	}
	return found
}

func short(s string, at int) string {
	end := min(at+60, len(s))
	return s[min(at, end):end]
}

// buildDrawing builds dptrace with a hook that draws one number of Python's
// `random` in each process whose generators it reads.
func buildDrawing(t *testing.T) string {
	t.Helper()
	original, err := filepath.Abs("../shim/python/dptrace_hook/read/rng.py")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	changed, overlay, binary := filepath.Join(folder, "rng.py"), filepath.Join(folder, "overlay.json"), filepath.Join(folder, "dptrace")
	source = append(source, `

_DRAWN = set()


def reader(obj, kind=None, honest=reader):
    import os
    if os.getpid() not in _DRAWN:
        _DRAWN.add(os.getpid())
        random.random()
    return honest(obj, kind)
`...)
	if err := os.WriteFile(changed, source, 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", overlay, "-o", binary, "../cmd/dptrace")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building dptrace with a hook that draws: %v\n%s", err, out)
	}
	return binary
}
