package probe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"os"
	"slices"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// KernelBTF is the running kernel's description of its types. It has some 150,000, and our
// programs read some fifty: to decode all of them took 25 ms and 10 MB, and each kernel
// module has more. So what a probe's programs read is picked out of it. The zero value is the
// kernel's, and opened when it is asked first.
type KernelBTF struct {
	raw     []byte // the kernel's own file, mapped; nil: it is not
	types   []byte
	strings []byte
	starts  []uint32 // in types, by ID; 0 is void
	named   []uint32 // IDs of what programs can ask for by name
	seed    maphash.Seed
	first   []uint32 // by the hash of the name: 1 + where in named the last one of these is; 0: there is none
	before  []uint32 // beside named: 1 + where the one before of the same hash is
}

// The format is that of Documentation/bpf/btf.rst and include/uapi/linux/btf.h.
const (
	btfMagic      = 0xeb9f
	btfHeaderSize = 24
	btfTypeSize   = 12 // struct btf_type: name_off, info, size or type
	btfKinds      = 20
)

const (
	kindPtr       = 2
	kindArray     = 3
	kindStruct    = 4
	kindUnion     = 5
	kindEnum      = 6
	kindTypedef   = 8
	kindVolatile  = 9
	kindConst     = 10
	kindRestrict  = 11
	kindFuncProto = 13
	kindTypeTag   = 18
	kindEnum64    = 19
)

// What follows a type of each kind: so many bytes, and so many for each of vlen.
var btfTrailing = [btfKinds]struct{ once, each uint32 }{
	1: {once: 4}, kindArray: {once: 12}, kindStruct: {each: 12}, kindUnion: {each: 12}, kindEnum: {each: 8},
	kindFuncProto: {each: 8}, 14: {once: 4}, 15: {each: 12}, 17: {once: 4}, kindEnum64: {each: 12},
}

// open maps the kernel's BTF and finds its types.
func (k *KernelBTF) open() error {
	if k.types != nil {
		return nil
	}
	f, err := os.Open(btfFile)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it is mapped, or read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	raw, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE) // since Linux 6.16
	if err == nil {
		k.raw = raw
	} else if raw, err = os.ReadFile(btfFile); err != nil {
		return err
	}
	if err := k.parse(raw); err != nil {
		k.Close()
		return fmt.Errorf("%s: %w", btfFile, err)
	}
	return nil
}

// Close gives back what it holds. What was picked stays.
func (k *KernelBTF) Close() {
	if k.raw != nil {
		_ = unix.Munmap(k.raw)
	}
	*k = KernelBTF{}
}

var (
	errNoBTF = errors.New("the kernel's BTF cannot be read")
	errBTF   = errors.New("not the BTF of this kind of machine")
)

// parse finds where each type begins.
func (k *KernelBTF) parse(raw []byte) error {
	order := binary.NativeEndian
	if len(raw) < btfHeaderSize || order.Uint16(raw) != btfMagic {
		return errBTF
	}
	header := uint64(order.Uint32(raw[4:]))
	section := func(at int) ([]byte, bool) {
		from, length := header+uint64(order.Uint32(raw[at:])), uint64(order.Uint32(raw[at+4:]))
		if from+length > uint64(len(raw)) {
			return nil, false
		}
		return raw[from : from+length], true
	}
	var ok1, ok2 bool
	k.types, ok1 = section(8)
	k.strings, ok2 = section(16)
	if !ok1 || !ok2 {
		return errBTF
	}
	k.starts = make([]uint32, 1, len(k.types)/20)
	k.seed, k.first = maphash.MakeSeed(), make([]uint32, nameHashes)
	for at := uint32(0); int(at) < len(k.types); {
		size, ok := k.sizeAt(at)
		if !ok {
			return fmt.Errorf("%w: type %d", errBTF, len(k.starts))
		}
		if name := order.Uint32(k.types[at:]); name != 0 {
			switch kindOf(k.types[at:]) {
			case kindStruct, kindUnion, kindEnum, kindEnum64, kindTypedef:
				hash := maphash.Bytes(k.seed, k.nameAt(name)) % nameHashes
				k.named = append(k.named, uint32(len(k.starts)))
				k.before = append(k.before, k.first[hash])
				k.first[hash] = uint32(len(k.named))
			}
		}
		k.starts = append(k.starts, at)
		at += size
	}
	return nil
}

func kindOf(t []byte) uint32 { return binary.NativeEndian.Uint32(t[4:]) >> 24 & 0x1f }
func vlenOf(t []byte) uint32 { return binary.NativeEndian.Uint32(t[4:]) & 0xffff }

// sizeAt is how long a type is with what follows it.
func (k *KernelBTF) sizeAt(at uint32) (size uint32, ok bool) {
	if len(k.types)-int(at) < btfTypeSize {
		return 0, false
	}
	t := k.types[at:]
	kind := kindOf(t)
	if kind == 0 || kind >= btfKinds {
		return 0, false
	}
	size = btfTypeSize + btfTrailing[kind].once + btfTrailing[kind].each*vlenOf(t)
	return size, uint64(at)+uint64(size) <= uint64(len(k.types))
}

// nameAt is a string of the kernel's, without the NUL.
func (k *KernelBTF) nameAt(offset uint32) []byte {
	if uint64(offset) >= uint64(len(k.strings)) {
		return nil
	}
	name, _, _ := bytes.Cut(k.strings[offset:], []byte{0})
	return name
}

// Each of the recorder's eight probes asks for a hundred of 14,000 names.
const nameHashes = 1 << 14

// idsOf are those of a name: kernels have several types of some.
func (k *KernelBTF) idsOf(name string) (ids []uint32) {
	for at := k.first[maphash.String(k.seed, name)%nameHashes]; at != 0; at = k.before[at-1] {
		id := k.named[at-1]
		if string(k.nameAt(binary.NativeEndian.Uint32(k.types[k.starts[id]:]))) == name {
			ids = append(ids, id)
		}
	}
	return ids
}

// Of picks the types that programs name: those of their own BTF.
func (k *KernelBTF) Of(programs *btf.Spec) (*btf.Spec, error) {
	names := map[string]bool{}
	for t, err := range programs.All() {
		if err != nil {
			return nil, fmt.Errorf("BTF of the programs: %w", err)
		}
		if name := t.TypeName(); name != "" {
			name, _, _ := bytes.Cut([]byte(name), []byte("___")) // a flavour of it
			names[string(name)] = true
		}
	}
	return k.pick(names)
}

// Pick picks the types of these names. One that the kernel has not is left out.
func (k *KernelBTF) Pick(names ...string) (*btf.Spec, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	return k.pick(wanted)
}

// pick makes BTF of these types and of what lies inside of them. A pointer leads nowhere: which
// fields lie where does not depend on it; but to a function, of which it may be asked what
// it takes.
func (k *KernelBTF) pick(names map[string]bool) (*btf.Spec, error) {
	if err := k.open(); err != nil {
		return nil, fmt.Errorf("%w: %s", errNoBTF, err.Error()) // its errno is none of bpf(2)'s
	}
	p := picked{kernel: k, ids: map[uint32]uint32{}, strings: []byte{0}}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, id := range k.idsOf(name) {
			p.take(id)
		}
	}
	if p.broken {
		return nil, errBTF
	}
	order, blob := binary.NativeEndian, make([]byte, 0, btfHeaderSize+len(p.types)+len(p.strings))
	blob = order.AppendUint16(blob, btfMagic)
	blob = append(blob, 1, 0) // version, flags
	for _, n := range []int{btfHeaderSize, 0, len(p.types), len(p.types), len(p.strings)} {
		blob = order.AppendUint32(blob, uint32(n))
	}
	blob = append(append(blob, p.types...), p.strings...)
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(blob))
	if err != nil {
		return nil, fmt.Errorf("types of the kernel that were picked: %w", err)
	}
	return spec, nil
}

// picked is BTF that is being made.
type picked struct {
	kernel  *KernelBTF
	ids     map[uint32]uint32 // here, by the kernel's
	types   []byte
	strings []byte
	broken  bool
}

// take copies a type, and gives its ID here.
func (p *picked) take(id uint32) uint32 {
	if id == 0 {
		return 0
	}
	if known, ok := p.ids[id]; ok {
		return known
	}
	if int(id) >= len(p.kernel.starts) {
		p.broken = true
		return 0
	}
	fresh := uint32(len(p.ids) + 1)
	p.ids[id] = fresh
	start := p.kernel.starts[id]
	size, _ := p.kernel.sizeAt(start) // it was asked before
	at := len(p.types)
	p.types = append(p.types, p.kernel.types[start:start+size]...)
	p.rename(at)
	kind, n := kindOf(p.types[at:]), int(vlenOf(p.types[at:]))
	behind := at + btfTypeSize
	switch kind {
	case kindPtr:
		if !p.kernel.is(p.ref(at+8), kindFuncProto) {
			binary.NativeEndian.PutUint32(p.types[at+8:], 0)
			break
		}
		p.follow(at + 8)
	case kindTypedef, kindVolatile, kindConst, kindRestrict, kindTypeTag:
		p.follow(at + 8)
	case kindArray:
		p.follow(behind)
		p.follow(behind + 4)
	case kindStruct, kindUnion:
		for member := behind; member < behind+12*n; member += 12 {
			p.rename(member)
			p.follow(member + 4)
		}
	case kindFuncProto:
		p.follow(at + 8)
		for param := behind; param < behind+8*n; param += 8 {
			p.rename(param)
			p.follow(param + 4)
		}
	case kindEnum:
		for value := behind; value < behind+8*n; value += 8 {
			p.rename(value)
		}
	case kindEnum64:
		for value := behind; value < behind+12*n; value += 12 {
			p.rename(value)
		}
	}
	return fresh
}

func (k *KernelBTF) is(id, kind uint32) bool {
	return id != 0 && int(id) < len(k.starts) && kindOf(k.types[k.starts[id]:]) == kind
}

func (p *picked) ref(at int) uint32 { return binary.NativeEndian.Uint32(p.types[at:]) }

// follow takes the type that is named at a place, and names it anew.
func (p *picked) follow(at int) {
	id := p.take(p.ref(at)) // which may move the types
	binary.NativeEndian.PutUint32(p.types[at:], id)
}

// rename takes the name at a place over.
func (p *picked) rename(at int) {
	name := p.kernel.nameAt(p.ref(at))
	offset := uint32(0)
	if len(name) > 0 {
		offset = uint32(len(p.strings))
		p.strings = append(append(p.strings, name...), 0)
	}
	binary.NativeEndian.PutUint32(p.types[at:], offset)
}
