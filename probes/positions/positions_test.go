package positions_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/dptrace/dptrace/probes/probetest"
	"github.com/dptrace/dptrace/traces"
)

func TestMain(m *testing.M) { probetest.Main(m) }

// moved is the last row of each file and process, in the order of processes.
func moved(t *testing.T, run *traces.Run) (got []string) {
	last := map[[2]uint32]traces.Position{}
	for _, p := range probetest.Rows[traces.Position](t, run) {
		if p.Source == "kernel" {
			last[[2]uint32{p.File, p.Proc}] = p
		}
	}
	for _, p := range last {
		if !p.Final {
			t.Errorf("the last row of a process is not its final one: %+v", p)
		}
		got = append(got, fmt.Sprintf("%s %s: %d seeks, %d reads, %d turns, %d taken, %d places, %d again, %d loose",
			filepath.Base(p.Path), p.Origin, p.Seeks, p.Reads, p.Turns, p.Taken, p.Places, p.Again, p.Loose))
	}
	slices.Sort(got)
	return got
}

// prelude is a file of 100 blocks that is open before two children are forked,
// who take turns: each waits at hand() until the other hands over.
const prelude = `
import fcntl, mmap, os, sys, threading
SIZE = 4096
path = sys.argv[1]
with open(path, 'wb') as f:
    for i in range(100):
        f.write(bytes([i]) * SIZE)
fd = os.open(path, os.O_RDONLY)
pipes = os.pipe(), os.pipe()
who = 0

def hand():
    os.write(pipes[1 - who][1], b'.')

def wait():
    assert os.read(pipes[who][0], 1) == b'.'

def seek(block):
    os.lseek(fd, block * SIZE, os.SEEK_SET)

def read():
    return os.read(fd, SIZE)[0]

def fork(*children):
    global who
    for who, child in enumerate(children):
        if os.fork() == 0:
            child()
            os._exit(0)
    for _ in children:
        assert os.wait()[1] == 0
`

// Two processes take turns as they are told: what is counted is what they did.
func TestTurns(t *testing.T) {
	python := probetest.Python(t)
	for _, c := range []struct {
		name, program string
		want          []string
	}{
		{"a read between a seek and its read", `
def first():
    for i in range(10):
        seek(i)
        hand(); wait()
        assert read() == 51 + i
def second():
    for i in range(10):
        wait()
        seek(50 + i)
        assert read() == 50 + i
        hand()
fork(first, second)`, []string{ // the last one may be done again as far as anybody knows
			"data inherited: 10 seeks, 10 reads, 10 turns, 9 taken, 9 places, 0 again, 0 loose",
			"data inherited: 10 seeks, 10 reads, 10 turns, 0 taken, 0 places, 0 again, 0 loose"}},
		{"a lock around both", `
def worker():
    for i in range(50):
        with open(path + '.lock', 'wb') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            seek(i)
            assert read() == i
open(path + '.lock', 'wb').close()
def first():
    worker(); hand()
def second():
    wait(); worker()
fork(first, second)`, []string{
			"data inherited: 50 seeks, 50 reads, 0 turns, 0 taken, 0 places, 0 again, 0 loose",
			"data inherited: 50 seeks, 50 reads, 1 turns, 0 taken, 0 places, 0 again, 0 loose"}},
		{"a queue of blocks", `
def first():
    for i in range(10):
        assert read() == 2 * i
        hand(); wait()
def second():
    for i in range(10):
        wait()
        assert read() == 2 * i + 1
        hand()
fork(first, second)`, []string{
			"data inherited: 0 seeks, 10 reads, 9 turns, 0 taken, 0 places, 0 again, 9 loose",
			"data inherited: 0 seeks, 10 reads, 10 turns, 0 taken, 0 places, 0 again, 10 loose"}},
		{"a queue that both rewind", `
def first():
    for i in range(5):
        seek(0)
        hand(); wait()
        assert read() == 1
        hand(); wait()
def second():
    for i in range(5):
        wait()
        seek(0)
        assert read() == 0
        hand(); wait(); hand()
fork(first, second)`, []string{
			"data inherited: 5 seeks, 5 reads, 5 turns, 0 taken, 0 places, 0 again, 0 loose",
			"data inherited: 5 seeks, 5 reads, 5 turns, 0 taken, 0 places, 4 again, 0 loose"}},
		{"done again until it is right", `
def first():
    for i in range(10):
        seek(i)
        hand(); wait()
        while read() != i:
            seek(i)
def second():
    for i in range(10):
        wait()
        seek(50)
        read()
        hand()
fork(first, second)`, []string{
			"data inherited: 10 seeks, 10 reads, 10 turns, 0 taken, 0 places, 0 again, 0 loose",
			"data inherited: 20 seeks, 20 reads, 10 turns, 0 taken, 0 places, 10 again, 0 loose"}},
		{"another descriptor of the same open file", `
def first():
    global fd
    fd = os.dup(fd)
    for i in range(4):
        seek(i)
        hand(); wait()
        read()
def second():
    for i in range(4):
        wait()
        seek(50 + i)
        hand()
fork(first, second)`, []string{
			"data inherited: 4 seeks, 4 reads, 4 turns, 3 taken, 3 places, 0 again, 0 loose",
			"data inherited: 4 seeks, 0 reads, 4 turns, 0 taken, 0 places, 0 again, 0 loose"}},
		{"the parent moves it", `
def first():
    for i in range(4):
        seek(i)
        hand(); wait()
        read()
if os.fork() == 0:
    first()
    os._exit(0)
who = 1
for i in range(4):
    wait()
    seek(50)
    hand()
os.wait()`, []string{
			"data : 4 seeks, 0 reads, 4 turns, 0 taken, 0 places, 0 again, 0 loose",
			"data inherited: 4 seeks, 4 reads, 4 turns, 3 taken, 3 places, 0 again, 0 loose"}},
		{"asked for between a seek and its read, as np.fromfile does", `
def first():
    for i in range(10):
        seek(i)
        hand(); wait()
        os.lseek(fd, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
        read()
def second():
    for i in range(10):
        wait()
        assert os.lseek(fd, 0, os.SEEK_CUR) == i * SIZE
        seek(50 + i)
        assert os.lseek(fd, 0, os.SEEK_CUR) == (50 + i) * SIZE
        assert read() == 50 + i
        hand()
fork(first, second)`, []string{
			"data inherited: 10 seeks, 10 reads, 10 turns, 0 taken, 0 places, 0 again, 0 loose",
			"data inherited: 20 seeks, 10 reads, 10 turns, 10 taken, 10 places, 0 again, 0 loose"}},
		{"closed by the parent when it has forked", `
def first():
    wait()
    for i in range(10):
        seek(i)
        hand(); wait()
        assert read() == 51 + i
    hand()
def second():
    wait()
    for i in range(10):
        wait()
        seek(50 + i)
        assert read() == 50 + i
        hand()
    wait()
for who, child in enumerate((first, second)):
    if os.fork() == 0:
        child()
        os._exit(0)
os.close(fd)
for _, begin in pipes:
    os.write(begin, b'.')
for _ in pipes:
    assert os.wait()[1] == 0`, []string{ // the first seek is not seen: nobody knew yet that two have it
			"data shared: 9 seeks, 10 reads, 10 turns, 8 taken, 8 places, 0 again, 0 loose",
			"data shared: 10 seeks, 10 reads, 10 turns, 0 taken, 0 places, 0 again, 0 loose"}},
		{"pread, mmap, one's own open, a pipe and random bytes", `
memory = mmap.mmap(fd, 0, prot=mmap.PROT_READ)
def worker():
    own = os.open(path, os.O_RDONLY)
    random = os.open('/dev/urandom', os.O_RDONLY)
    for i in range(100):
        assert os.pread(fd, 1, i * SIZE)[0] == i
        assert memory[i * SIZE] == i
        os.lseek(own, i * SIZE, os.SEEK_SET)
        assert os.read(own, 1)[0] == i
        assert len(os.read(random, 4)) == 4
        hand(); wait()
fork(worker, worker)`, nil},
		{"one process alone", `
def first():
    for i in range(100):
        seek(i)
        assert read() == i
def second():
    os.stat(path)
fork(first, second)`, nil},
		{"opened and closed over and over", `
os.close(fd)
def worker():
    for i in range(300):
        own = os.open(path, os.O_RDONLY)
        double = os.dup(own)
        os.lseek(own, i % 100 * SIZE, os.SEEK_SET)
        assert os.read(double, 1)[0] == i % 100
        os.close(own); os.close(double)
fork(worker, worker)`, nil},
		{"threads of one process", `
def worker():
    own = os.open(path, os.O_RDONLY)
    double = os.dup(own)
    def thread(n):
        for i in range(200):
            os.lseek(own, i % 100 * SIZE, os.SEEK_SET)
            os.read(double, 1)
    all = [threading.Thread(target=thread, args=(n,)) for n in range(4)]
    for t in all: t.start()
    for t in all: t.join()
os.close(fd)
fork(worker, worker)`, nil},
		{"a log that all append to", `
log = os.open(path + '.log', os.O_RDWR | os.O_CREAT | os.O_APPEND)
def worker():
    for i in range(100):
        os.write(log, b'line')
        hand(); wait()
fork(worker, worker)`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			script := probetest.Script(t, prelude+c.program)
			run, code := probetest.Kernel(t, python, script, filepath.Join(t.TempDir(), "data"))
			if code != 0 {
				t.Fatalf("exit code %d", code)
			}
			for _, l := range probetest.Rows[traces.Lost](t, run) {
				t.Errorf("lost: %+v", l)
			}
			slices.Sort(c.want)
			if got := moved(t, run); !slices.Equal(got, c.want) {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}

// The kernel side counts each read and seek of processes that are as fast as they
// can be.
func TestStorm(t *testing.T) {
	python := probetest.Python(t)
	const workers, times = 4, 50_000
	script := probetest.Script(t, fmt.Sprintf(`
import os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
for worker in range(%d):
    if os.fork() == 0:
        for i in range(%d):
            os.lseek(fd, (i * 7919) %% 1000000, os.SEEK_SET)
            os.read(fd, 16)
        os._exit(0)
for worker in range(%d):
    os.wait()
`, workers, times, workers))
	data := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(data, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	run, code := probetest.Kernel(t, python, script, data)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	var sum traces.Position
	for _, p := range probetest.Rows[traces.Position](t, run) {
		if p.Final {
			sum.Seeks += p.Seeks
			sum.Reads += p.Reads
			sum.Taken += p.Taken
		}
	}
	if sum.Seeks != workers*times || sum.Reads != workers*times {
		t.Errorf("%d seeks and %d reads counted, want %d of each", sum.Seeks, sum.Reads, workers*times)
	}
	for _, o := range probetest.Rows[traces.Overhead](t, run) {
		if o.Probe == "positions" {
			t.Logf("%d went astray; cost: %+v, %.0f ns a run", sum.Taken, o, float64(o.BpfNS)/float64(max(o.BpfRuns, 1)))
		}
	}
}
