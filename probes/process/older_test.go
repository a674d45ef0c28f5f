package process

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/dptrace/dptrace/probes/probe"
)

// Before Linux 5.17 there is no bpf_find_vma: where the recorder finds none, the program that
// would call it loads all the same. Here that helper is one that no kernel has.
func TestWithoutFindVma(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil || os.Geteuid() != 0 {
		t.Skipf("SKIPPED %s: it needs root, and a kernel with BTF", t.Name())
	}
	for _, found := range []uint8{0, 1} {
		spec, err := loadProcess()
		if err != nil {
			t.Fatal(err)
		}
		if err := configure(spec, &probe.Recording{Target: 1, KernelTypes: &probe.KernelBTF{}}); err != nil {
			t.Fatal(err)
		}
		if err := spec.Variables[processVarFindsMappings].Set(found); err != nil {
			t.Fatal(err)
		}
		calls := 0
		for i := range spec.Programs[processProgProcessSignal].Instructions {
			if ins := &spec.Programs[processProgProcessSignal].Instructions[i]; ins.IsBuiltinCall() && ins.Constant == int64(asm.FnFindVma) {
				ins.Constant = 9999
				calls++
			}
		}
		if calls != 1 {
			t.Fatalf("%d calls of bpf_find_vma", calls)
		}
		c, err := ebpf.NewCollection(spec)
		if (err == nil) != (found == 0) {
			t.Errorf("with finds_mappings %d: %v", found, err)
		}
		if err == nil {
			c.Close()
		}
	}
}

// Before Linux 6.1 maps take their memory as they are made, as other tracepoints' programs must have it.
func TestPreallocated(t *testing.T) {
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
	before := spec.Maps[processMapProcs].MaxEntries
	probe.Preallocate(spec)
	procs := spec.Maps[processMapProcs]
	if procs.Flags != 0 || procs.MaxEntries == 0 || procs.MaxEntries > before {
		t.Errorf("procs has flags %#x and room for %d", procs.Flags, procs.MaxEntries)
	}
	c, err := ebpf.NewCollection(spec)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
