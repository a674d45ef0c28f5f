package poll

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/dptrace/dptrace/probes/procfs"
)

// TestLooksAtStatus: which shells look at exit codes, by what they were told to do.
func TestLooksAtStatus(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skipf("SKIPPED %s: %v", t.Name(), err)
	}
	const wait = "\nread -r line\n"
	for _, c := range []struct {
		name, script string
		inline       bool
		want         bool
	}{
		{name: "it goes on", script: "python train.py\necho done"},
		{name: "a code that is kept", script: "python train.py\nrc=$?", want: true},
		{name: "behind -c", script: "python train.py; [ $? = 0 ]", inline: true, want: true},
		{name: "nothing behind -c", script: "python train.py", inline: true},
		{name: "a trap", script: "trap 'echo failed' ERR 2>/dev/null\npython train.py", want: true},
		{name: "in a comment", script: "# rc=$? would tell\npython train.py"},
		{name: "a code of braces", script: "python train.py\nrc=${?}", want: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			command := exec.Command(shell, "run.sh")
			if c.inline {
				command = exec.Command(shell, "-c", "read -r line; "+c.script)
			} else if err := os.WriteFile(filepath.Join(folder, "run.sh"), []byte(wait+c.script), 0o600); err != nil {
				t.Fatal(err)
			}
			command.Dir = folder
			stdin, err := command.StdinPipe()
			if err == nil {
				err = command.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = stdin.Close(); _ = command.Process.Kill(); _ = command.Wait() }()
			for len(procfs.Cmdline(int32(command.Process.Pid))) == 0 { // it is calling exec right now
				time.Sleep(time.Millisecond)
			}
			if got := looksAtStatus(int32(command.Process.Pid), shell); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
			if looksAtStatus(int32(command.Process.Pid), "/usr/bin/python3") {
				t.Error("a Python is no shell")
			}
		})
	}
}
