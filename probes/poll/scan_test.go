package poll

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
)

// A new process is found among the numbers that were given since the last scan,
// and by the list of all; threads are not taken for processes.
func TestScan(t *testing.T) {
	var rows collected
	w := newWatcher(&probe.Recording{Rows: &rows, Procs: probe.NewProcs(), Hook: "/no/such/hook"})
	own := int32(os.Getpid())
	if w.adopt(own) == nil {
		t.Fatal("we are not there")
	}
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()
	pid := int32(child.Process.Pid)
	w.strangers[pid] = 1 // which had this number before
	if fresh := w.given(pid-1, pid); len(fresh) != 1 || fresh[pid].Ppid != own {
		t.Errorf("by its number: %+v", fresh)
	}
	if fresh := w.listed(); fresh[pid].Ppid != own {
		t.Error("it is not in the list")
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil || len(threads) < 2 {
		t.Fatalf("%d threads, %v", len(threads), err)
	}
	for _, thread := range threads {
		if id, _ := strconv.Atoi(thread.Name()); int32(id) != own {
			if fresh := w.given(int32(id)-1, int32(id)); len(fresh) > 0 {
				t.Errorf("a thread is taken for a process: %+v", fresh)
			}
		}
	}
	w.scan(time.Now())
	if w.procs[pid] == nil {
		t.Error("the scan did not find it")
	}
}

// Whatever the numbers say, all are listed now and then.
func TestScanLists(t *testing.T) {
	var rows collected
	w := newWatcher(&probe.Recording{Rows: &rows, Procs: probe.NewProcs(), Hook: "/no/such/hook"})
	now := time.Now()
	w.scan(now)
	if !w.nextList.Equal(now.Add(longest)) {
		t.Error("the first scan lists")
	}
	w.lastPid = 1 // very many since
	w.scan(now.Add(time.Second))
	if !w.nextList.Equal(now.Add(time.Second + longest)) {
		t.Error("where many numbers were given, all are listed")
	}
	w.scan(now.Add(time.Second + longest))
	if !w.nextList.Equal(now.Add(time.Second + 2*longest)) {
		t.Error("all are listed now and then")
	}
}
