package files_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/probes/probetest"
	"github.com/dptrace/dptrace/traces"
)

func TestMain(m *testing.M) { probetest.Main(m) }

// opened is the last row of each file and process, as "proc name count".
func opened(t *testing.T, run *traces.Run, folder string) (got []string) {
	last := map[string]uint64{}
	first := map[uint32]int{} // processes in the order of what they opened first: their numbers may be given later, in any order
	rows := probetest.Rows[traces.Opened](t, run)
	slices.SortStableFunc(rows, func(a, b traces.Opened) int { return cmp.Compare(a.TsNS, b.TsNS) })
	for _, o := range rows {
		if o.Source != "kernel" || o.Path == "" {
			continue
		}
		name, ok := strings.CutPrefix(o.Path, folder+"/")
		if !ok {
			t.Errorf("opened %s", o.Path)
			continue
		}
		if first[o.Proc] == 0 {
			first[o.Proc] = len(first) + 1
		}
		last[fmt.Sprintf("%d %s", first[o.Proc], name)] = o.Count
	}
	for name, n := range last {
		got = append(got, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(got)
	return got
}

func lost(t *testing.T, run *traces.Run, reasons ...string) (n uint64) {
	for _, l := range probetest.Rows[traces.Lost](t, run) {
		if !slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(l.Reason, reason) }) {
			t.Errorf("lost: %+v", l)
			continue
		}
		n += l.Count
	}
	return n
}

// Each file that is read, however it is named and opened; nothing that is not.
func TestOpens(t *testing.T) {
	python := probetest.Python(t)
	folder := t.TempDir()
	for _, name := range []string{"a.jpg", "b.jpg", "c.bin", "d.bin", "e.bin", "module.py", "module.pyc", "lib.so", "lib.so.3", "s"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("some content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "elsewhere"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "elsewhere", "c.bin"), []byte("another one"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := probetest.Script(t, `
import os, sys, time
os.chdir(sys.argv[1])
for _ in range(3):
    open('a.jpg', 'rb').read()  # relative, several times
os.symlink('b.jpg', 'link')
open('link').read()
open('../' + os.path.basename(os.getcwd()) + '/c.bin', 'r+b').read()
os.close(os.open('.', os.O_RDONLY))
os.close(os.open('d.bin', os.O_PATH))
open('d.bin', 'ab').write(b'x')  # not for reading
open('d.bin', 'wb').write(b'x')
open('new', 'w+b').write(b'x')   # nothing in it to read
open('e.bin', 'w+b').write(b'x')
for name in 'missing', 'module.py', 'module.pyc', 'lib.so', 'lib.so.3':
    try:
        open(name, 'rb').read()
    except OSError:
        pass
here = os.getcwd()
open(here + '/s').read()
os.remove('s')
open('t', 'w').write('x')  # may well get the number of s
open(here + '/t').read()
os.path.exists('a.jpg')
if os.fork() == 0:
    open('a.jpg').read()
    open('new').read()
    if os.fork() == 0:
        os.chdir('/')
        for _ in range(1000):
            open(sys.argv[1] + '/b.jpg').read()
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
if os.fork() == 0:
    os.close(os.open('c.bin', os.O_RDONLY))
    os.chdir('elsewhere')  # before anyone can ask
    time.sleep(0.3)
    os._exit(0)
os.wait()
`)
	run, code := probetest.Kernel(t, python, script, folder)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	lost(t, run)
	got := opened(t, run, folder)
	want := []string{"1 a.jpg 3", "1 c.bin 1", "1 link 1", "1 s 1", "1 t 1", "2 a.jpg 1", "2 new 1", "3 b.jpg 1000", "4 c.bin 1"}
	if !slices.Equal(got, want) {
		t.Errorf("opened %q\nwant   %q", got, want)
	}
}

// Processes that do nothing but open files, as fast as they can: each file is in
// the trace or counted as lost.
func TestStorm(t *testing.T) {
	python := probetest.Python(t)
	folder := t.TempDir()
	const files, twice = 50_000, 2
	script := probetest.Script(t, fmt.Sprintf(`
import os, sys
os.chdir(sys.argv[1])
for i in range(%d):
    os.close(os.open(str(i), os.O_WRONLY | os.O_CREAT))
for worker in range(%d):
    if os.fork() == 0:
        for i in range(%d):
            os.close(os.open(str(i), os.O_RDONLY))
        os._exit(0)
for worker in range(%d):
    os.wait()
`, files, twice, files, twice))
	run, code := probetest.Kernel(t, python, script, folder)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	rows := uint64(len(opened(t, run, folder)))
	// Where the recorder is kept from its core; looked at so late that the folder of a relative name is gone.
	full := lost(t, run, "the ring of the files probe was full", "files with a relative name that were not found")
	var more uint64
	for _, o := range probetest.Rows[traces.Opened](t, run) {
		if o.Path == "" {
			more += o.Count
		}
	}
	t.Logf("%d told, %d more counted, %d found no room", rows, more, full)
	if rows+full != 4096*twice || rows+full+more != files*twice {
		t.Errorf("%d told, %d more counted and %d without room, of %d", rows, more, full, files*twice)
	}
	var cost traces.Overhead
	for _, o := range probetest.Rows[traces.Overhead](t, run) {
		if o.Probe == "files" {
			cost = o
		}
	}
	t.Logf("cost: %+v", cost)
	if cost.BpfRuns < files*twice/2 || cost.BpfNS == 0 || cost.CPUNS == 0 {
		t.Errorf("cost %+v: what the programs took is missing", cost)
	}
}

// Calls that want a descriptor and get none; those of inotify have another limit.
func TestRefused(t *testing.T) {
	python := probetest.Python(t)
	script := probetest.Script(t, `
import ctypes, os, resource, socket
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
libc = ctypes.CDLL(None)
if os.fork() == 0:
    while True:
        try:
            os.open('/dev/null', os.O_RDONLY)
        except OSError:
            break
    for call in lambda: os.dup(0), os.pipe, socket.socket, os.pipe:
        try:
            call()
        except OSError as e:
            assert e.errno == 24
    libc.inotify_init1(0)
    os._exit(0)
os.wait()
try:
    os.open('/missing', os.O_RDONLY)
except OSError:
    pass
`)
	run, code := probetest.Kernel(t, python, script)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	var got []int64
	for _, d := range probetest.Rows[traces.Descriptor](t, run) {
		if d.Refused >= 0 {
			got = append(got, d.Refused)
		}
	}
	if !slices.Equal(got, []int64{5}) {
		t.Errorf("refused %d, want 5 of one process", got)
	}
}
