package procfs

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/traces"
)

func TestIsolating(t *testing.T) {
	for args, want := range map[string]string{
		"python train.py -I":             "",
		"python -I train.py":             "-I",
		"python -u -sE train.py":         "-E",
		"python -BS -c pass":             "-S",
		"python -W ignore -I -m x":       "-I",
		"python -Wignore -I -m x":        "-I",
		"python -X dev train.py -E":      "",
		"python -Xdev -E train.py":       "-E",
		"python -c -I":                   "",
		"python -m torch.run -I":         "",
		"python --version":               "",
		"python -uc print(1) -I":         "",
		"python - -I":                    "",
		"python":                         "",
		"python -WI train.py":            "",
		"python -XI -q -S -c from x y z": "-S",
	} {
		if got := isolating(strings.Fields(args)); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

func TestPythonName(t *testing.T) {
	for name, want := range map[string]bool{
		"python": true, "python3": true, "python3.11": true, "python3.13t": true, "python3.12-dbg": true, "pypy3": true,
		"pythonize": false, "bash": false, "ipython-wrapper.sh": false, "torchrun": false,
	} {
		if got := pythonName.MatchString(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestRollup(t *testing.T) {
	const text = `55d0c0a00000-7ffd3f5fe000 ---p 00000000 00:00 0                          [rollup]
Rss:                9876 kB
Pss:                5000 kB
Pss_Dirty:          4000 kB
Shared_Clean:        100 kB
Shared_Dirty:        200 kB
Private_Clean:       300 kB
Private_Dirty:       400 kB
Referenced:         9000 kB
Anonymous:           500 kB
LazyFree:              0 kB
Swap:                600 kB
SwapPss:               0 kB
`
	var got traces.Memory
	if !rollup([]byte(text), &got) {
		t.Fatal("not read")
	}
	want := traces.Memory{Rss: 9876 << 10, Pss: 5000 << 10, SharedClean: 100 << 10, SharedDirty: 200 << 10,
		PrivateClean: 300 << 10, PrivateDirty: 400 << 10, Anonymous: 500 << 10, Swap: 600 << 10}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if rollup([]byte(text[:100]), &got) {
		t.Error("half of it was accepted")
	}
}

// This kernel's file, too.
func TestRollupHere(t *testing.T) {
	text, err := os.ReadFile("/proc/self/smaps_rollup")
	if os.IsNotExist(err) {
		t.Skip("this kernel has no smaps_rollup (Linux 4.14, CONFIG_PROC_PAGE_MONITOR)")
	}
	var row traces.Memory
	if err != nil || !rollup(text, &row) || row.Rss < 1<<20 {
		t.Errorf("read %+v, %v, of\n%s", row, err, text)
	}
}
