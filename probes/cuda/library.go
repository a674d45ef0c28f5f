package cuda

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// library is a file whose functions are watched.
type library struct {
	kind  string // driver, runtime
	path  string // that it is opened by
	named string // as reports show it
	inode inode
}

// inode tells files apart: a library that was replaced on disk has another one.
type inode struct{ device, number uint64 }

// identify opens a library by its path. It reports whether it is there.
func identify(kind, path, named string) (library, bool) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return library{}, false
	}
	return library{kind, path, named, inode{st.Dev, st.Ino}}, true
}

// kindOf is which library a file is by its name; "" none of them.
func kindOf(path string) string {
	switch base := filepath.Base(strings.TrimSuffix(path, " (deleted)")); {
	case strings.HasPrefix(base, "libcuda.so"):
		return ofDriver
	case strings.HasPrefix(base, "libcudart.so"), strings.HasPrefix(base, "libcudart-"): // the second is that of old wheels
		return ofRuntime
	}
	return ""
}

// site is where a function is watched.
type site struct {
	number  int // of the function
	offset  uint64
	shifted bool
}

// sites finds the functions in the table of dynamic symbols: what has no symbol
// there nobody can call by name.
func sites(l library) (found []site, missing []string, err error) {
	f, err := os.Open(l.path)
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", l.named, err)
	}
	defer func() { _ = f.Close() }() // it was read
	e, err := elf.NewFile(f)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", l.named, err)
	}
	symbols, err := e.DynamicSymbols()
	if err != nil {
		return nil, nil, fmt.Errorf("symbols of %s: %w", l.named, err)
	}
	addresses := make(map[string]uint64, len(symbols))
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			addresses[s.Name] = s.Value
		}
	}
	has := map[string]bool{}
	for number, fn := range functions {
		for _, ending := range variants {
			address, ok := addresses[fn.name+ending]
			if fn.library != l.kind || !ok {
				continue
			}
			offset, ok := inFile(e, address)
			if !ok {
				continue
			}
			has[fn.name] = true
			s := site{number: number, offset: offset}
			if skip := behindStub(f, offset, e.Machine); skip > 0 {
				s.offset, s.shifted = offset+skip, true
			}
			found = append(found, s)
		}
	}
	return distinct(found), lacking(l.kind, has), nil
}

// distinct leaves one of those that are the same place: names of one function.
func distinct(all []site) []site {
	seen := map[uint64]bool{}
	kept := all[:0]
	for _, s := range all {
		if !seen[s.offset] {
			seen[s.offset] = true
			kept = append(kept, s)
		}
	}
	return kept
}

// inFile is where an address lies in the file.
func inFile(e *elf.File, address uint64) (offset uint64, ok bool) {
	for _, p := range e.Progs {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address < p.Vaddr+p.Filesz {
			return address - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}

// behindStub is by how much to go on from the beginning of a function that is a
// stub of libcuda (x86-64; 605 of 636 in driver 550):
//
//	cmpl $0x321cba00, flag(%rip)
//	je   ...
//	jmp  *table(%rip)
//
// 0: it is none. A probe at the cmpl costs 10 us, as the kernel steps over it by
// running it elsewhere; one at the je 0.8 us, as that is emulated. Registers and
// the return address are the same at both.
func behindStub(f *os.File, offset uint64, machine elf.Machine) uint64 {
	if machine != elf.EM_X86_64 {
		return 0
	}
	const (
		endbr64 = 4 // bytes
		compare = 10
		je      = 0x74
	)
	code := make([]byte, endbr64+compare+1)
	if n, err := f.ReadAt(code, int64(offset)); err != nil && n < len(code) {
		return 0
	}
	skip := 0
	if binary.BigEndian.Uint32(code) == 0xf30f1efa {
		skip = endbr64
	}
	at := code[skip:]
	if at[0] == 0x81 && at[1] == 0x3d && binary.LittleEndian.Uint32(at[6:]) == 0x321cba00 && at[compare] == je {
		return uint64(skip + compare)
	}
	return 0
}
