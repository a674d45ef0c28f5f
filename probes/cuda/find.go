package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/probes/procfs"
)

const driverName = "libcuda.so.1"

// Where the driver's library lies: as the loader looks for it, and where containers
// get it from outside (NVIDIA's container toolkit, WSL, Google's and Kubernetes'
// device plugins).
var places = []string{"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/lib/wsl/lib",
	"/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/local/cuda/compat", "/run/opengl-driver/lib"}

// installed is the driver's libraries that a process would find that is started
// with this environment, and the runtime's where there is a driver's: they can be
// watched before any process maps them.
func installed(environ []string) (found []library) {
	var given []string
	for _, variable := range environ {
		if list, ok := strings.CutPrefix(variable, "LD_LIBRARY_PATH="); ok {
			given = strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == ';' })
		}
	}
	paths := cached("/etc/ld.so.cache")
	for _, folder := range slices.Concat(given, places) {
		paths = append(paths, filepath.Join(folder, driverName))
	}
	found = present(found, ofDriver, paths)
	if len(found) == 0 {
		return nil
	}
	for _, folder := range given {
		paths, _ := filepath.Glob(filepath.Join(folder, "libcudart.so*")) // a pattern without mistakes
		found = present(found, ofRuntime, paths)
	}
	return found
}

// present adds the libraries that are there, each once.
func present(found []library, kind string, paths []string) []library {
	for _, path := range paths {
		l, ok := identify(kind, path, path)
		if ok && !slices.ContainsFunc(found, func(other library) bool { return other.inode == l.inode }) {
			found = append(found, l)
		}
	}
	return found
}

// cached is where the loader's cache says that the driver's library lies. The
// format is glibc's, sysdeps/generic/dl-cache.h: struct cache_file_new.
func cached(path string) (paths []string) {
	const (
		magic    = "glibc-ld.so.cache1.1"
		header   = 48
		entry    = 24
		keyAt    = 4
		valueAt  = 8
		countAt  = len(magic)
		mostRead = 16 << 20
	)
	b, err := os.ReadFile(path)
	if err != nil || len(b) > mostRead {
		return nil
	}
	at := bytes.Index(b, []byte(magic)) // the older format may come before it
	if at < 0 || len(b)-at < header {
		return nil
	}
	b = b[at:]
	text := func(offset uint32) string {
		if uint64(offset) >= uint64(len(b)) {
			return ""
		}
		s, _, _ := bytes.Cut(b[offset:], []byte{0})
		return string(s)
	}
	n := binary.NativeEndian.Uint32(b[countAt:])
	for i := range min(uint64(n), uint64(len(b)-header)/entry) {
		e := b[header+i*entry:]
		if text(binary.NativeEndian.Uint32(e[keyAt:])) == driverName {
			paths = append(paths, text(binary.NativeEndian.Uint32(e[valueAt:])))
		}
	}
	return paths
}

// mapped is the libraries that a process has in its memory, whatever their folder
// and mount namespace. A file that was replaced or removed since is opened by what
// is mapped.
func mapped(pid int32) (found []library, err error) {
	all, err := procfs.MapsNamed(pid, "libcuda")
	if err != nil {
		return nil, fmt.Errorf("mappings of process %d: %w", pid, err)
	}
	for _, m := range all {
		kind := kindOf(m.Name)
		if kind == "" || !m.File || slices.ContainsFunc(found, func(l library) bool { return l.named == m.Name }) {
			continue
		}
		l, ok := identify(kind, fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, m.Start, m.End), m.Name)
		if !ok { // it needs CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE
			l, ok = identify(kind, fmt.Sprintf("/proc/%d/root%s", pid, m.Name), m.Name)
			ok = ok && l.inode.number == m.Inode
		}
		if ok {
			found = append(found, l)
		}
	}
	return found, nil
}

// supported reports whether the kernel side knows this machine's registers.
func supported() bool { return runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64" }
