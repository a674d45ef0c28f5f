package cow_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/probes/probetest"
	"github.com/dptrace/dptrace/traces"
)

// objects forks two children: both measure themselves twice, one of them reads
// all elements of a container in between. It writes the pages that became
// private by smaps_rollup, and the pid.
const objects = `
import os, sys
kind, out = sys.argv[1], sys.argv[2]
N = 300000
try:
    import numpy
except ImportError:
    numpy = None
def make():
    if kind == 'list': return [{'id': i, 'path': 'images/%08d.jpg' % i} for i in range(N)]
    if kind == 'dict': return {i: ('images/%08d.jpg' % i, float(i)) for i in range(N)}
    if kind == 'tuple': return tuple(('images/%08d.jpg' % i, float(i)) for i in range(N))
    if kind == 'str': return ['images/%08d.jpg' % i for i in range(N)]
    if kind == 'object': return numpy.array(['images/%08d.jpg' % i for i in range(N)], dtype=object)
    if kind == 'bytes': return b''.join(b'images/%08d.jpg' % i for i in range(N))
    if kind == 'numpy': return numpy.arange(10.0 * N).reshape(N, 10)
if kind in ('object', 'numpy') and numpy is None:
    sys.exit(77)
records = make()
def private():
    for line in open('/proc/self/smaps_rollup', 'rb'):
        if line.startswith(b'Private_Dirty:'):
            return int(line.split()[1]) // 4
def look():
    if kind == 'bytes':
        for i in range(N):
            records[i * 19:i * 19 + 19]
    else:
        for i in range(N):
            record = records[i]
            if kind == 'list':
                record['path']
            elif kind in ('dict', 'tuple'):
                record[0], record[1]
for work in (False, True):
    pid = os.fork()
    if pid == 0:
        import gc
        gc.disable()
        private()
        before = private()
        if work:
            look()
        after = private()
        with open(out, 'a') as f:
            f.write('%d %d\n' % (os.getpid(), after - before))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
`

// What reading Python objects copies is what smaps says, within 1 %; reading
// arrays and bytes copies nothing.
func TestObjects(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skipf("SKIPPED %s: page faults have no tracepoint on %s", t.Name(), runtime.GOARCH)
	}
	python := probetest.Python(t)
	if exec.Command("/usr/bin/python3", "-c", "import numpy").Run() == nil {
		python = "/usr/bin/python3"
	}
	for _, kind := range []string{"list", "dict", "tuple", "str", "object", "numpy", "bytes"} {
		t.Run(kind, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "private")
			run, code := probetest.Kernel(t, python, probetest.Script(t, objects), kind, out)
			if code == 77 {
				t.Skipf("SKIPPED %s: no NumPy", t.Name())
			}
			text, err := os.ReadFile(out)
			if err != nil || code != 0 {
				t.Fatalf("exit code %d, %v", code, err)
			}
			procs := map[int32]uint32{}
			for _, p := range probetest.Rows[traces.Process](t, run) {
				procs[p.Pid] = p.Proc
			}
			pages := map[uint32]float64{}
			for _, c := range probetest.Rows[traces.Cow](t, run) {
				if c.Final {
					pages[c.Proc] += float64(c.User + c.Kernel)
				}
			}
			var smaps, kernel [2]float64
			for i, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
				var pid int32
				if _, err := fmt.Sscan(string(line), &pid, &smaps[i]); err != nil {
					t.Fatal(err)
				}
				kernel[i] = pages[procs[pid]]
			}
			bySmaps, byKernel := smaps[1]-smaps[0], kernel[1]-kernel[0]
			t.Logf("%.0f pages by smaps, %.0f counted (%+.2f %%)", bySmaps, byKernel, 100*(byKernel/bySmaps-1))
			const inAll = 300000 * 70 / 4096 // the smallest container has so many pages, about
			if strings.Contains("numpy bytes", kind) {
				if byKernel > 0.01*inAll {
					t.Errorf("%.0f pages, want next to none", byKernel)
				}
			} else if bySmaps < inAll/2 || math.Abs(byKernel/bySmaps-1) > 0.01 {
				t.Errorf("%.0f pages by smaps, %.0f counted", bySmaps, byKernel)
			}
		})
	}
}
