package hook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/shim"
)

// interpreterVariable names the interpreter that is tried, here and by `make`.
const interpreterVariable = "DPTRACE_PYTHON"

const trialTime = 2 * time.Minute // importing torch from a cold network disk

var needs = []probe.Need{
	{
		Name:  "a folder for the hook's records",
		Gains: "no hook at all: nothing about loaders can be said",
		Try: func() probe.Trial {
			dir, err := SpoolBase(".")
			if err != nil {
				return probe.Trial{Detail: err.Error(), Get: "export TMPDIR=FOLDER, on a local disk with 64 MB free"}
			}
			return probe.Trial{Have: true, Detail: dir}
		},
	},
	{
		Name:  "Python",
		Gains: "no hook at all: nothing about loaders can be said",
		Try: func() probe.Trial {
			out, err := python("", "import sys; print('%d.%d.%d' % sys.version_info[:3], sys.executable); sys.exit(sys.version_info < (3, 8))")
			if err != nil {
				return probe.Trial{Detail: out + err.Error(), Get: "install Python 3.8 or newer, or name one with " + interpreterVariable}
			}
			return probe.Trial{Have: true, Detail: out}
		},
	},
	{
		Name:  "the hook in Python",
		Gains: "all rules that look inside of the training; worker-killed and swallowed-crash see less",
		Try: func() probe.Trial {
			seen, err := trySession("import sys; sys.exit('dptrace_hook' not in sys.modules)")
			if err != nil {
				return probe.Trial{Detail: err.Error() + seen.output,
					Get: "look for a sitecustomize.py that shadows ours, or PYTHONPATH being ignored (-I, -E, a wrapper script)"}
			}
			return probe.Trial{Have: true, Detail: "loads through PYTHONPATH"}
		},
	},
	{
		Name:  "torch, seen by the hook",
		Gains: "all rules that look inside of the training; worker-killed and swallowed-crash see less",
		Try: func() probe.Trial {
			seen, err := trySession("from torch.utils.data import DataLoader\nfor _ in DataLoader([0, 1]): pass")
			switch {
			case err != nil:
				return probe.Trial{Detail: err.Error() + seen.output,
					Get: "name a Python that can import torch with " + interpreterVariable + ", or pip install torch"}
			case seen.torch == "":
				return probe.Trial{Detail: "a DataLoader ran, and nothing was recorded" + seen.output,
					Get: "please report it, with the versions of Python and torch"}
			}
			return probe.Trial{Have: true, Detail: fmt.Sprintf("torch %s, %d records of a small DataLoader", seen.torch, seen.records)}
		},
	},
}

// python runs a program in the interpreter that would be recorded, and gives
// what it prints. hook is a folder of ours for PYTHONPATH, or "".
func python(hook, program string) (output string, err error) {
	name := os.Getenv(interpreterVariable)
	if name == "" {
		name = "python3"
	}
	ctx, cancel := context.WithTimeout(context.Background(), trialTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, "-c", program)
	if hook != "" {
		cmd.Env = shim.Environ(os.Environ(), hook)
	}
	out, err := cmd.CombinedOutput()
	output = strings.TrimSpace(string(out))
	if len(output) > 300 { // of a traceback, the end says why
		output = "… " + output[len(output)-300:]
	}
	return output, err
}

// attempt is what a program that ran with the hook has left.
type attempt struct {
	output  string
	torch   string
	records int
}

// trySession runs a program as record would, and reads its ring.
func trySession(program string) (a attempt, err error) {
	base, err := SpoolBase(".")
	if err != nil {
		return a, err
	}
	dir, err := os.MkdirTemp(base, "dptrace-doctor-")
	if err != nil {
		return a, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	folder, spool := filepath.Join(dir, "hook"), filepath.Join(dir, "spool")
	session := shim.Session{Spool: spool, Ring: RingBytes, Rings: Rings}
	if err := errors.Join(os.Mkdir(spool, 0o700), shim.Unpack(folder, session, "")); err != nil {
		return a, err
	}
	a.output, err = python(folder, program)
	if a.output != "" {
		a.output = "\n           " + strings.ReplaceAll(a.output, "\n", "\n           ")
	}
	if err != nil {
		return a, err
	}
	fd, err := unix.Open(spool, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return a, err
	}
	defer func() { _ = unix.Close(fd) }()
	entries, err := os.ReadDir(spool)
	if err != nil {
		return a, err
	}
	for _, e := range entries {
		r, err := openRing(fd, e.Name())
		if err != nil {
			return a, err
		}
		_, _, err = r.drain(nil, func(rec record) {
			a.records++
			if f, err := parseFacts(rec.payload); err == nil && rec.kind == typeProcess {
				a.torch = f.text("torch")
			}
		})
		r.close()
		if err != nil {
			return a, err
		}
	}
	return a, nil
}
