package probe

import (
	"bytes"
	"errors"
	"math/rand"
	"os"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"
)

// place is where a field lies: what a program's field is replaced by.
type place struct {
	Name    string
	At      btf.Bits
	Size    int
	Bits    btf.Bits
	Pointer bool
}

// places of all fields of a type, those of structs inside of it too.
func places(t *testing.T, typ btf.Type, at btf.Bits, prefix string) (all []place) {
	t.Helper()
	var members []btf.Member
	switch c := btf.UnderlyingType(typ).(type) {
	case *btf.Struct:
		members = c.Members
	case *btf.Union:
		members = c.Members
	}
	for _, m := range members {
		under := btf.UnderlyingType(m.Type)
		size, err := btf.Sizeof(m.Type)
		if err != nil {
			t.Fatal(err)
		}
		_, pointer := under.(*btf.Pointer)
		all = append(all, place{prefix + m.Name, at + m.Offset, size, m.BitfieldSize, pointer})
		all = append(all, places(t, m.Type, at+m.Offset, prefix+m.Name+".")...)
	}
	return all
}

// What is picked of the kernel's BTF says of fields what a decoder of all of it says.
func TestPicked(t *testing.T) {
	whole, err := btf.LoadKernelSpec()
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("this kernel has no BTF")
	}
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"task_struct", "signal_struct", "file", "inode", "dentry", "vm_area_struct", "pid", "upid", "pt_regs", "kernel_siginfo"}
	var kernel KernelBTF
	defer kernel.Close()
	picked, err := kernel.Pick(append(names, "btf_trace_sys_exit", "no_such_type")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var want, got *btf.Struct
		if err := whole.TypeByName(name, &want); err != nil {
			t.Fatal(err)
		}
		if err := picked.TypeByName(name, &got); err != nil {
			t.Fatal(err)
		}
		if want.Size != got.Size {
			t.Errorf("%s has %d bytes, picked %d", name, want.Size, got.Size)
		}
		if d := cmp.Diff(places(t, want, 0, ""), places(t, got, 0, "")); d != "" {
			t.Errorf("%s, -whole +picked:\n%s", name, d)
		}
	}
	var tracepoint *btf.Typedef
	if err := picked.TypeByName("btf_trace_sys_exit", &tracepoint); err != nil {
		t.Fatal(err)
	}
	pointer, _ := tracepoint.Type.(*btf.Pointer)
	if pointer == nil {
		t.Fatalf("%v is no pointer", tracepoint.Type)
	}
	if f, _ := pointer.Target.(*btf.FuncProto); f == nil || len(f.Params) != 3 { // its own, the registers, the result
		t.Errorf("btf_trace_sys_exit: %v", pointer.Target)
	}
	if _, err := picked.AnyTypeByName("no_such_type"); !errors.Is(err, btf.ErrNotFound) {
		t.Errorf("a type that the kernel has not: %v", err)
	}
}

// Damaged BTF is refused, or gives types: it does not crash.
func TestPickedDamaged(t *testing.T) {
	builder, err := btf.NewBuilder([]btf.Type{
		&btf.Struct{Name: "file", Size: 16, Members: []btf.Member{
			{Name: "mode", Type: &btf.Int{Name: "int", Size: 4}}, {Name: "next", Type: &btf.Pointer{Target: (*btf.Void)(nil)}, Offset: 64}}},
		&btf.Typedef{Name: "call", Type: &btf.Pointer{Target: &btf.FuncProto{Params: []btf.FuncParam{{Name: "a", Type: &btf.Int{Name: "long", Size: 8}}},
			Return: (*btf.Void)(nil)}}},
		&btf.Struct{Name: "list", Size: 4, Members: []btf.Member{
			{Name: "all", Type: &btf.Array{Type: &btf.Int{Name: "char", Size: 1}, Index: &btf.Int{Name: "int", Size: 4}, Nelems: 4}}}},
		&btf.Enum{Name: "kind", Size: 4, Values: []btf.EnumValue{{Name: "FIRST", Value: 1}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	sound, err := builder.Marshal(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{"file": true, "call": true, "list": true, "kind": true}
	pick := func(raw []byte) (*btf.Spec, error) {
		var k KernelBTF
		if err := k.parse(raw); err != nil {
			return nil, err
		}
		return k.pick(names)
	}
	spec, err := pick(sound)
	if err != nil {
		t.Fatal(err)
	}
	for name := range names {
		if _, err := spec.AnyTypeByName(name); err != nil {
			t.Error(err)
		}
	}
	random := rand.New(rand.NewSource(1))
	for i := range len(sound) {
		_, _ = pick(sound[:i])
		for range 8 {
			damaged := bytes.Clone(sound)
			damaged[i] ^= 1 << random.Intn(8)
			_, _ = pick(damaged)
		}
	}
}
