package poll

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// A child that has inherited one open file and opened the same file itself.
func TestSameFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const inherited, own = 198, 199
	for _, fd := range []int{inherited, own} {
		if err := unix.Dup3(int(f.Fd()), fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	child := exec.Command("python3", "-c", `
import os, sys
os.dup2(3, 198)
os.dup2(os.open(sys.argv[1], os.O_RDONLY), 199)
os.lseek(198, 700, os.SEEK_SET)
print(flush=True)
sys.stdin.read()`, path)
	child.ExtraFiles = []*os.File{f}
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Skipf("SKIPPED %s: %v", t.Name(), err)
	}
	defer func() { stdin.Close(); child.Wait() }()
	if _, err := stdout.Read(make([]byte, 1)); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	here, there := int32(os.Getpid()), int32(child.Process.Pid)
	for fd, want := range map[int32]bool{inherited: true, own: false} {
		if got, err := sameFile(there, here, fd); err != nil || got != want {
			t.Errorf("descriptor %d is of the same open file: %v, %v; want %v", fd, got, err, want)
		}
	}
	if offset, flags, ok := fdinfo(here, inherited); !ok || offset != 700 || flags&unix.O_ACCMODE != unix.O_RDONLY {
		t.Errorf("position %d, flags %o, %v; the child has sought 700", offset, flags, ok)
	}
	if _, _, ok := fdinfo(here, 77777); ok {
		t.Error("a descriptor that is not open has a position")
	}
}

func TestLook(t *testing.T) {
	p := position{offset: 100}
	for _, offset := range []int64{100, 200, 150, 150, 0, 10} {
		p.look(offset)
	}
	if diff := cmp.Diff([]uint64{6, 4, 2}, []uint64{p.looks, p.moved, p.back}); diff != "" {
		t.Errorf("looks, moved, back (-want +got):\n%s", diff)
	}
}
