package poll

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/traces"
)

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
