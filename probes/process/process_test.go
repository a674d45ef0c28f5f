package process_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dptrace/dptrace/probes/probetest"
	"github.com/dptrace/dptrace/traces"
)

func TestMain(m *testing.M) { probetest.Main(m) }

func lost(t *testing.T, run *traces.Run) (n uint64) {
	for _, l := range probetest.Rows[traces.Lost](t, run) {
		n += l.Count
		t.Logf("lost: %s %s %d %s", l.Source, l.Table, l.Count, l.Reason)
	}
	return n
}

// Thousands of children that live for a millisecond: each is there with its
// exit code, or counted as lost.
func TestForkBomb(t *testing.T) {
	const children = 5000
	const program = "i=0; while [ $i -lt %d ]; do (exit 3) & i=$((i+1)); [ $((i%%100)) = 0 ] && wait; done; wait; exit 7"
	run, code := probetest.Kernel(t, "sh", "-c", fmt.Sprintf(program, children))
	if code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
	seen := 0
	for _, e := range probetest.Rows[traces.Exit](t, run) {
		if e.Source == "kernel" && e.ExitCode == 3 {
			seen++
		}
	}
	if n := lost(t, run); seen != children || n != 0 {
		t.Errorf("%d of %d children seen to end, %d lost", seen, children, n)
	}
	known := map[uint32]bool{}
	for _, p := range probetest.Rows[traces.Process](t, run) {
		known[p.Proc] = true
	}
	if len(known) != children+1 {
		t.Errorf("%d processes, want %d", len(known), children+1)
	}
}

// How a process ended is what wait(2) would say.
func TestExits(t *testing.T) {
	for name, tc := range map[string]struct {
		script       string
		code, signal int32
	}{
		"zero":              {"exit 0", 0, 0},
		"code":              {"exit 77", 77, 0},
		"killed":            {"kill -KILL $$", -1, 9},
		"terminated":        {"kill -TERM $$", -1, 15},
		"aborted, cored":    {"ulimit -c 0; kill -ABRT $$", -1, 6},
		"last is a program": {"exec sleep 0", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run, _ := probetest.Kernel(t, "sh", "-c", "sh -c '"+tc.script+"'; exit 0")
			for _, e := range probetest.Rows[traces.Exit](t, run) {
				if e.Source == "kernel" && e.Proc == 2 {
					if e.ExitCode != tc.code || e.Signal != tc.signal {
						t.Errorf("exit %+v", e)
					}
					return
				}
			}
			t.Error("its exit is missing")
		})
	}
}

// A thread other than the first ends last, and the first one's code counts.
func TestThreads(t *testing.T) {
	python := probetest.Python(t)
	script := probetest.Script(t, `
import ctypes, threading, time, os
def later():
    time.sleep(0.2)
    os._exit(5)
threading.Thread(target=later).start()
ctypes.CDLL(None).pthread_exit(None)
`)
	run, code := probetest.Kernel(t, python, script)
	exits := 0
	for _, e := range probetest.Rows[traces.Exit](t, run) {
		if e.Source == "kernel" {
			exits++
			if e.ExitCode != 5 {
				t.Errorf("exit %+v", e)
			}
		}
	}
	if exits != 1 || code != 5 {
		t.Errorf("%d ends of one process, exit code %d", exits, code)
	}
}

// Who sent a signal: a process that has nothing to do with the run, and one that
// is the parent.
func TestSender(t *testing.T) {
	dir := t.TempDir()
	ready := filepath.Join(dir, "pid")
	go func() {
		var pid string
		if eventually(func() bool {
			text, _ := os.ReadFile(ready) // it is not there yet
			pid = string(text)
			return strings.HasSuffix(pid, "\n")
		}) {
			_ = exec.Command("sh", "-c", "kill -KILL "+strings.TrimSpace(pid)).Run() // seen in the trace or not
		}
	}()
	run, _ := probetest.Kernel(t, "sh", "-c", `sleep 100 & echo $! > `+ready+`; wait $!; sleep 100 & kill -TERM $!; wait; exit 0`)
	var got []string
	for _, s := range probetest.Rows[traces.Signal](t, run) {
		got = append(got, fmt.Sprintf("%d from %s, of the run %v, ancestor %v, pid %v",
			s.Signal, s.SenderComm, s.SenderProc != 0, s.SenderAncestor, s.SenderPid > 0))
	}
	want := []string{"9 from sh, of the run false, ancestor false, pid true", "15 from sh, of the run true, ancestor true, pid true"}
	if !slices.Equal(got, want) {
		t.Errorf("signals %q\nwant %q", got, want)
	}
}

// What was mapped where a process met SIGBUS and SIGSEGV.
func TestFaults(t *testing.T) {
	python := probetest.Python(t)
	shm := "/dev/shm/dptrace-test-" + fmt.Sprint(os.Getpid())
	t.Cleanup(func() { os.Remove(shm) })
	for name, tc := range map[string]struct {
		program       string
		signal        syscall.Signal
		mapping, path string
	}{
		"file cut short": {"f = open('data.bin', 'w+b'); f.truncate(8192); m = mmap.mmap(f.fileno(), 8192); f.truncate(0); m[4096]",
			syscall.SIGBUS, "file", "/data.bin"},
		"shared memory": {"f = open('" + shm + "', 'w+b'); f.truncate(8192); m = mmap.mmap(f.fileno(), 8192); f.truncate(0); m[4096]",
			syscall.SIGBUS, "shm", shm},
		"null": {"ctypes.string_at(16)", syscall.SIGSEGV, "none", ""},
		"read-only": {"m = mmap.mmap(-1, 8192, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS); " +
			"line = next(l for l in open('/proc/self/maps') if l.split()[1] == 'r--p' and l.split()[4] == '0' and '[' not in l); " +
			"ctypes.memset(ctypes.addressof(ctypes.c_char.from_address(int(line.split('-')[0], 16))), 1, 1)",
			syscall.SIGSEGV, "anon", ""},
	} {
		t.Run(name, func(t *testing.T) {
			script := probetest.Script(t, "import ctypes, mmap, os\nos.chdir('"+t.TempDir()+"')\n"+tc.program+"\n")
			run, code := probetest.Kernel(t, python, script)
			if want := 128 + int(tc.signal); code != want {
				t.Fatalf("exit code %d, want %d", code, want)
			}
			signals := probetest.Rows[traces.Signal](t, run)
			if len(signals) != 1 {
				t.Fatalf("%d signals, want 1: %+v", len(signals), signals)
			}
			s := signals[0]
			if s.Signal != int32(tc.signal) || s.Mapping != tc.mapping || !strings.HasSuffix(s.MappingPath, tc.path) ||
				(tc.path == "") != (s.MappingPath == "") || strings.HasPrefix(s.MappingPath, "…") || s.SiCode <= 0 || s.SenderPid != 0 {
				t.Errorf("signal %+v", s)
			}
		})
	}
}

// What each process runs, also one that is gone at once, and that the hook
// cannot be in an isolated Python.
func TestPrograms(t *testing.T) {
	python := probetest.Python(t)
	run, _ := probetest.Kernel(t, "sh", "-c", python+" -I -c pass; "+python+" -c pass; true 'two words'; /bin/echo 'two words' >/dev/null")
	var got []string
	for _, p := range probetest.Rows[traces.Process](t, run) {
		if p.Proc > 1 && p.Cmdline != "" && p.Hook != "" {
			got = append(got, fmt.Sprint(strings.ReplaceAll(p.Cmdline, python, "python"), "|", p.Kind, "|", p.Hook))
		}
	}
	for _, want := range []string{"python -I -c pass|python|off", "python -c pass|python|idle", "/bin/echo two words|other|none"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}

// cilium/ebpf closes a link that nobody holds when the garbage collector finds
// it; then nothing more would be seen.
func TestLinksOutliveCollections(t *testing.T) {
	probetest.NeedKernel(t)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
				runtime.GC()
			}
		}
	}()
	run, _ := probetest.Kernel(t, "sh", "-c", "sleep 1.5; (exit 9); exit 0")
	close(stop)
	<-done
	if !slices.ContainsFunc(probetest.Rows[traces.Exit](t, run), func(e traces.Exit) bool { return e.ExitCode == 9 && e.Source == "kernel" }) {
		t.Error("what happened after many collections is missing")
	}
}
