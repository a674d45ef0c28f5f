package cuda

import (
	"testing"

	"github.com/cilium/ebpf"
)

// OneByOne makes the probe work as on kernels before 6.6.
func OneByOne(t *testing.T) {
	was := haveMulti
	haveMulti = func() error { return ebpf.ErrNotSupported }
	t.Cleanup(func() { haveMulti = was })
}

// Limit makes the probe tell of so few copies in 100 ms.
func Limit(t *testing.T, copies uint64) {
	was := mostCopies
	mostCopies = copies
	t.Cleanup(func() { mostCopies = was })
}

// Sites is what would be watched of a file: by function, whether behind its first
// instruction; and the functions that it lacks.
func Sites(path string) (found map[string]bool, missing []string, err error) {
	l, ok := identify(kindOf(path), path, path)
	if !ok || l.kind == "" {
		return nil, nil, nil
	}
	all, missing, err := sites(l)
	found = map[string]bool{}
	for _, s := range all {
		found[functions[s.number].name] = s.shifted
	}
	return found, missing, err
}

// Cached is what the loader's cache says.
var Cached = cached

type PyProcess = cudaPyProcess
