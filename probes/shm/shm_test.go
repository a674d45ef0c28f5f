package shm_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probetest"
	"github.com/dptrace/dptrace/traces"
)

func TestMain(m *testing.M) { probetest.Main(m) }

// inOwnShm is a command that runs a script where /dev/shm is a file system of its
// own, of so many MB. The test is skipped where nobody may mount one.
func inOwnShm(t *testing.T, mb int, script string) []string {
	t.Helper()
	probetest.NeedKernel(t)
	mount := fmt.Sprintf("mount -t tmpfs -o size=%dm none /dev/shm && ", mb)
	if out, err := exec.Command("unshare", "-m", "sh", "-c", mount+"true").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED %s: no mount namespace: %v: %s", t.Name(), err, out)
	}
	return []string{"unshare", "-m", "sh", "-c", mount + "exec " + probetest.Python(t) + " " + script}
}

// uses is the last row of each process that has put something into /dev/shm.
func uses(t *testing.T, run *traces.Run) map[uint32]traces.ShmUse {
	last := map[uint32]traces.ShmUse{}
	for _, u := range probetest.Rows[traces.ShmUse](t, run) {
		last[u.Proc] = u
	}
	return last
}

func noLosses(t *testing.T, run *traces.Run) {
	t.Helper()
	for _, l := range probetest.Rows[traces.Lost](t, run) {
		t.Errorf("lost: %+v", l)
	}
}

// What processes make, make longer and remove in /dev/shm is counted to the byte;
// other file systems of its kind are not.
func TestBytes(t *testing.T) {
	script := probetest.Script(t, `
import os, tempfile
def put(name, size, how):
    fd = os.open("/dev/shm/" + name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    if how == 0:
        os.ftruncate(fd, size)
        os.write(fd, b"x")  # within it: no longer
    elif how == 1:
        os.posix_fallocate(fd, 0, size)
    else:
        os.write(fd, b"x" * size)
    os.unlink("/dev/shm/" + name)
    os.close(fd)
for i in range(99):
    put("torch_%d" % i, 10000, i % 3)
if os.fork() == 0:
    for i in range(50):
        put("child_%d" % i, 5000, 0)
    fd = os.open("/dev/shm/longer", os.O_RDWR | os.O_CREAT)
    for size in 1000, 3000, 2000, 4000:  # 1000 + 2000 + 2000
        os.ftruncate(fd, size)
    again = os.open("/dev/shm/longer", os.O_WRONLY | os.O_APPEND)
    os.write(again, b"x" * 500)
    for fd in os.memfd_create("other"), os.open("/tmp", os.O_TMPFILE | os.O_RDWR):
        os.ftruncate(fd, 1 << 20)
    os._exit(0)
os.wait()
`)
	run, code := probetest.Kernel(t, inOwnShm(t, 16, script)...)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	noLosses(t, run)
	got := map[string]bool{}
	for _, u := range uses(t, run) {
		got[fmt.Sprint(u.Made, u.Removed, u.Bytes, u.Failed, u.Final)] = true
	}
	if len(got) != 2 || !got["99 99 990000 0 true"] || !got["51 50 255500 0 true"] {
		t.Errorf("made, removed, bytes, failed: %v", got)
	}
}

// Calls that find no room are told with what was asked for, and what there was;
// those elsewhere, and those that fail for another reason, are not.
func TestFull(t *testing.T) {
	script := probetest.Script(t, `
import errno, os
fd = os.open("/dev/shm/most", os.O_RDWR | os.O_CREAT)
os.posix_fallocate(fd, 0, 3 << 20)
def fails(call, *args):
    try:
        call(*args)
    except OSError as e:
        assert e.errno == errno.ENOSPC, e
    else:
        raise AssertionError(call)
for i in range(100):
    other = os.open("/dev/shm/torch_%d_1" % os.getpid(), os.O_RDWR | os.O_CREAT)
    fails(os.posix_fallocate, other, 0, 2 << 20)
    os.close(other)
os.posix_fallocate(fd, 0, 4 << 20)
fails(os.write, other := os.open("/dev/shm/w", os.O_RDWR | os.O_CREAT), b"x" * 5000)
try:
    os.ftruncate(os.open("/dev/shm/most", os.O_RDONLY), 5)
except OSError:
    pass
`)
	run, code := probetest.Kernel(t, inOwnShm(t, 4, script)...)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	noLosses(t, run)
	calls := map[string]int{}
	for _, f := range probetest.Rows[traces.ShmFull](t, run) {
		name, _, _ := strings.Cut(f.Name, "_")
		calls[fmt.Sprint(f.Call, " ", name, " ", f.Bytes, " ", f.Capacity>>20)]++
	}
	if len(calls) != 1 || calls["fallocate torch 2097152 4"] != 64 {
		t.Errorf("calls that are told: %v", calls)
	}
	for _, u := range uses(t, run) {
		if u.Failed != 101 {
			t.Errorf("failed %d times, 101 were", u.Failed)
		}
	}
}

// Two processes that do nothing but share batches, far faster than loaders do.
func TestStorm(t *testing.T) {
	const files, size, processes = 8000, 9000, 2
	script := probetest.Script(t, fmt.Sprintf(`
import os
for worker in range(%d):
    if os.fork() == 0:
        for i in range(%d):
            name = "/dev/shm/torch_%%d_%%d" %% (os.getpid(), i)
            fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
            os.ftruncate(fd, %d)
            os.unlink(name)
            os.close(fd)
        os._exit(0)
for worker in range(%d):
    os.wait()
`, processes, files, size, processes))
	run, code := probetest.Kernel(t, inOwnShm(t, 16, script)...)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	noLosses(t, run)
	n := 0
	for _, u := range uses(t, run) {
		n++
		if u.Made != files || u.Removed != files || u.Sized != files || u.Bytes != files*size || !u.Final {
			t.Errorf("counted %+v, not %d files of %d bytes", u, files, size)
		}
	}
	if n != processes {
		t.Errorf("%d processes", n)
	}
	for _, o := range probetest.Rows[traces.Overhead](t, run) {
		if o.Probe == "shm" {
			t.Logf("cost: %+v", o)
		}
	}
}

// The device that rows have is the one that stat shows.
func TestDevice(t *testing.T) {
	script := probetest.Script(t, `
import os
fd = os.open("/dev/shm/dptrace-test-%d" % os.getpid(), os.O_RDWR | os.O_CREAT)
os.unlink("/dev/shm/dptrace-test-%d" % os.getpid())
os.ftruncate(fd, 12345)
`)
	run, code := probetest.Kernel(t, probetest.Python(t), script)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	var st unix.Stat_t
	if err := unix.Stat("/dev/shm", &st); err != nil {
		t.Fatal(err)
	}
	for _, u := range uses(t, run) {
		if u.Device != int64(st.Dev) || u.Bytes != 12345 {
			t.Errorf("%+v, device %d", u, st.Dev)
		}
	}
	if len(uses(t, run)) != 1 {
		t.Errorf("rows %v", uses(t, run))
	}
}
