package recorder

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestDescriptorsOfTheTarget: what the target closes is closed, although the
// recorder was started with it, too, and goes on.
func TestDescriptorsOfTheTarget(t *testing.T) {
	dir := t.TempDir()
	done := filepath.Join(dir, "done")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	c := exec.Command(os.Args[0], "record", filepath.Join(dir, "t.dptrace"), "hook",
		"/bin/sh", "-c", `exec <&- >&- 3>&-; until [ -e "$0" ]; do sleep 0.05; done; exit 7`, done)
	c.ExtraFiles = []*os.File{write}
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	ended := func(name string, r io.ReadCloser) {
		late := time.AfterFunc(20*time.Second, func() { r.Close() })
		defer late.Stop()
		if _, err := io.ReadAll(r); err != nil {
			t.Errorf("%s, which the target has closed, has not ended for 20 s: %v", name, err)
		}
	}
	ended("stdout", stdout)
	ended("descriptor 3", read)
	if _, err := stdin.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("to the stdin that the target has closed one can write: %v", err)
	}
	if err := os.WriteFile(done, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); c.ProcessState.ExitCode() != 7 {
		t.Error(err)
	}
}
