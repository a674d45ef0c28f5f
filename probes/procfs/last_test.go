package procfs

import (
	"os"
	"os/exec"
	"testing"
)

func TestLastPid(t *testing.T) {
	before, ok := LastPid()
	if !ok {
		t.Fatal("the kernel does not tell")
	}
	child := exec.Command("true")
	if err := child.Run(); err != nil {
		t.Fatal(err)
	}
	// Others are started meanwhile; numbers begin anew once in many tests.
	after, _ := LastPid()
	if pid := int32(child.Process.Pid); before < after && (pid <= before || pid > after) {
		t.Errorf("pid %d was given between %d and %d", pid, before, after)
	}
	if before == after {
		t.Error("a process was started, and none was seen")
	}
}

func TestIsProcess(t *testing.T) {
	own := int32(os.Getpid())
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, thread := range threads {
		var id int32
		for _, digit := range thread.Name() {
			id = 10*id + digit - '0'
		}
		if is := IsProcess(id); is != (id == own) {
			t.Errorf("%d of process %d: %v", id, own, is)
		}
		seen++
	}
	if seen < 2 {
		t.Errorf("%d threads: nothing was told apart", seen)
	}
}
