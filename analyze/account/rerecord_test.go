package account

import (
	"strings"
	"testing"
)

func TestFix(t *testing.T) {
	const replaced = "started with another PYTHONPATH in place of the recording's PYTHONPATH; torch is loaded"
	for _, c := range []struct{ command, cmdline, reason, want string }{
		{"env PYTHONPATH=. python train.py", "python train.py", replaced, "env PYTHONPATH=. dptrace record -- python train.py"},
		{"env -i A=1 /usr/bin/python3 train.py -x", "/usr/bin/python3 train.py -x", "started without the recording's PYTHONPATH",
			"env -i A=1 $(which dptrace) record -- /usr/bin/python3 train.py -x"},
		{"python -I train.py", "python -I train.py", "started with -I, which ignores PYTHONPATH; torch is loaded", "dptrace record -- python train.py"},
		{"nice python -u -IB train.py -I", "python -u -IB train.py -I", "started with -I, which ignores PYTHONPATH",
			"dptrace record -- nice python -u -B train.py -I"},
		{"./run.sh", "python -E train.py", "started with -E, which ignores PYTHONPATH", "start that Python without -E while you record"},
		{"./run.sh a", "python train.py", replaced,
			"where PYTHONPATH is set, keep what is in it (PYTHONPATH=/your/folder:$PYTHONPATH), or record there: dptrace record -- python train.py"},
		{"python train.py", "python train.py", "another sitecustomize.py", ""},
	} {
		if got := fix(Unhooked{Cmdline: c.cmdline, Reason: c.reason}, strings.Fields(c.command)); got != c.want {
			t.Errorf("%s, %s:\n%s\nwant\n%s", c.command, c.reason, got, c.want)
		}
	}
}
