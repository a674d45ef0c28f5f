package process

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/probe"
)

// The kernel side's counters reach the rows that are written of them: each kind
// of event has its own, in one array.
func TestDrops(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil || os.Geteuid() != 0 {
		t.Skipf("SKIPPED %s: it needs root, and a kernel with BTF", t.Name())
	}
	spec, err := loadProcess()
	if err != nil {
		t.Fatal(err)
	}
	if err := configure(spec, &probe.Recording{Target: 1, KernelTypes: &probe.KernelBTF{}}); err != nil {
		t.Fatal(err)
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lost := [processKindKINDS]uint64{processKindKIND_FORK: 2, processKindKIND_EXEC: 3, processKindKIND_EXIT: 5,
		processKindKIND_SIGNAL: 7, processKindKIND_OOM: 11}
	if err := c.Variables[processVarLost].Set(lost); err != nil {
		t.Fatal(err)
	}
	if err := c.Variables[processVarLostProcs].Set(uint64(13)); err != nil {
		t.Fatal(err)
	}
	p := &probe.Programs{Collection: c}
	seen := map[uint64]bool{}
	for _, d := range kernelSide.Drops {
		want := uint64(13)
		if d.Variable == processVarLost {
			want = lost[d.Index]
		}
		if n := p.Counter(d.Variable, d.Index); n != want || seen[n] {
			t.Errorf("%s: %d, want %d", d.Reason, n, want)
		}
		seen[want] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d counters, want 6", len(seen))
	}
	if n := p.Counter("no such", 0) + p.Counter(processVarLostProcs, 1); n != 0 {
		t.Errorf("%d of counters that are not there", n)
	}
}
