package process

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/dptrace/dptrace/probes/procfs"
)

const (
	foundFile  = 1          // see struct mapping in events.h
	pageShift  = 12         // PAGE_SHIFT of bpf/core.h
	foundNone  = 2          // see struct mapping in events.h
	vmGrows    = 0x100      // VM_GROWSDOWN of include/linux/mm.h
	tmpfsMagic = 0x01021994 // include/uapi/linux/magic.h
)

// mappingOf says what is mapped at the address of a fault, in the words of
// traces.Signal.
func mappingOf(m *processMapping) (kind, path string) {
	switch {
	case m.Found == foundNone:
		return "none", ""
	case m.Found == 0:
		return "", ""
	case m.Magic == tmpfsMagic:
		return "shm", filePath(m)
	case m.Magic != 0:
		return "file", filePath(m)
	case m.Heap != 0:
		return "heap", ""
	case m.Flags&vmGrows != 0:
		return "stack", ""
	}
	return "anon", ""
}

// filePath is the path of a mapped file. The kernel side gives the names up to
// the root of its file system, if they are not too many: where that is mounted
// is found by looking for the file, or, if it is gone, for its folder.
func filePath(m *processMapping) string {
	var names []string
	for i := range m.Names {
		if n := text(m.Names[i][:]); n != "" {
			names = append(names, n)
		}
	}
	slices.Reverse(names)
	inside := filepath.Join(names...)
	if len(names) == len(m.Names) {
		return "…/" + inside // some may be missing
	}
	points := mountPoints()
	for _, there := range []string{inside, filepath.Dir(inside)} {
		for _, point := range points {
			if there == "." && m.Magic == tmpfsMagic && (point != "/dev/shm" || m.AtShm == 0) {
				continue // the root of a file system tells none of them
			}
			if _, err := os.Stat(filepath.Join(point, there)); err == nil {
				return filepath.Join(point, inside)
			}
		}
	}
	return "…/" + inside
}

// mountPoints lists where file systems are mounted; /dev/shm and the root come
// first, as torch and most data are there.
func mountPoints() []string {
	points := []string{"/dev/shm", "/"}
	for _, m := range procfs.Mounts() {
		if !slices.Contains(points, m.Point) {
			points = append(points, m.Point)
		}
	}
	return points
}
