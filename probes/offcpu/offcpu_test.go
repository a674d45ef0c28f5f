package offcpu_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/dptrace/dptrace/probes/probetest"
	"github.com/dptrace/dptrace/traces"
)

func TestMain(m *testing.M) { probetest.Main(m) }

// prelude measures what its first thread waits for: by the clock, less what it has
// run and what the scheduler let it wait for a processor.
const prelude = `
import json, mmap, os, select, subprocess, sys, threading, time
folder = sys.argv[1]
spent = {}

def awake():
    with open('/proc/thread-self/schedstat', 'rb', buffering=0) as f:
        return sum(map(int, f.read().split()[:2]))

class of:
    def __init__(self, kind):
        self.kind = kind
    def __enter__(self):
        self.awake, self.t = awake(), time.monotonic_ns()
    def __exit__(self, *error):
        took = time.monotonic_ns() - self.t
        spent[self.kind] = spent.get(self.kind, 0) + took - (awake() - self.awake)

def later(what):
    threading.Timer(0.2, what).start()
`

const waits = prelude + `
with of('sleep'):
    time.sleep(0.3)
with of('sleep'):
    select.select([], [], [], 0.2)
lock = threading.Lock()
lock.acquire()
later(lock.release)
with of('lock'):
    lock.acquire()
r, w = os.pipe()
later(lambda: os.write(w, b'x'))
with of('channel'):
    os.read(r, 1)
with of('channel'):
    select.select([r], [], [], 0.2)
with of('channel'):
    poll = select.poll()
    poll.register(r)
    poll.poll(200)
pid = os.fork()
if not pid:
    time.sleep(0.3)
    os._exit(0)
with of('child'):
    os.waitpid(pid, 0)
end = time.monotonic() + 0.3
while time.monotonic() < end:  # on the processor: nothing is waited for
    pass
print(json.dumps(spent), file=open(folder + '/spent', 'w'))
`

const reads = prelude + `
path = folder + '/data'
with open(path, 'wb') as f:
    f.write(os.urandom(4 << 20))
    f.flush()
    os.fsync(f.fileno())
with open(sys.argv[2] + '/cgroup.procs', 'w') as f:
    f.write('0')
fd = os.open(path, os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
with of('read'):
    for at in range(0, 4 << 20, 128 << 10):
        os.pread(fd, 128 << 10, at)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
pages = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
with of('page'):
    for at in range(0, 4 << 20, 4096):
        pages[at]
print(json.dumps(spent), file=open(folder + '/spent', 'w'))
`

// What is counted for each kind is what the program has measured itself.
func TestKinds(t *testing.T) {
	python := probetest.Python(t)
	t.Run("waits", func(t *testing.T) {
		compare(t, t.TempDir(), []string{"sleep", "lock", "channel", "child"}, python, "-c", waits)
	})
	t.Run("reads of a slow disk", func(t *testing.T) {
		folder := t.TempDir()
		compare(t, folder, []string{"read", "page"}, python, "-c", reads, folder, probetest.SlowDisk(t, folder, 8<<20))
	})
}

const lingers = `
import os, threading, time
children = []
for n in range(6):
    children.append(os.fork())
    if not children[-1]:
        for _ in range(20):  # which end after the first one
            threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
        time.sleep(0.2)
        os._exit(0)
    time.sleep(0.45)
time.sleep(1)
for pid in children:
    os.waitpid(pid, 0)
`

// A process that has ended waits for nothing, however late the recorder looks at it.
func TestEnded(t *testing.T) {
	run, code := probetest.Kernel(t, probetest.Python(t), "-c", lingers)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	found := false
	for _, row := range probetest.Rows[traces.OffCpu](t, run) {
		if !row.Inherits {
			continue
		}
		found = found || row.SleepNS > 150e6
		if row.OtherNS > 100e6 {
			t.Errorf("%+v", row)
		}
	}
	if !found {
		t.Error("its sleep is not told")
	}
}

// compare records a program that has written what it waited for into folder.
func compare(t *testing.T, folder string, kinds []string, command ...string) {
	t.Helper()
	if len(command) == 3 {
		command = append(command, folder)
	}
	run, code := probetest.Kernel(t, command...)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	var spent map[string]int64
	text, err := os.ReadFile(filepath.Join(folder, "spent"))
	if err == nil {
		err = json.Unmarshal(text, &spent)
	}
	if err != nil {
		t.Fatal(err)
	}
	var last traces.OffCpu
	for _, row := range probetest.Rows[traces.OffCpu](t, run) {
		if row.Final && !row.Inherits {
			last = row
		}
	}
	got := map[string]int64{"read": last.ReadNS, "page": last.PageNS, "name": last.NameNS, "channel": last.ChannelNS, "lock": last.LockNS,
		"sleep": last.SleepNS, "child": last.ChildNS, "write": last.WriteNS, "other": last.OtherNS}
	for _, kind := range kinds {
		const least = 150e6
		if spent[kind] < least {
			t.Errorf("%s: the program has waited for %d ns only", kind, spent[kind])
		}
		if off := float64(got[kind]-spent[kind]) / float64(spent[kind]); off < -0.05 || off > 0.05 {
			t.Errorf("%s: %d ns were counted, the program has measured %d (%+.1f %%)", kind, got[kind], spent[kind], 100*off)
		}
	}
	t.Logf("counted %v, measured %v", got, spent)
}
