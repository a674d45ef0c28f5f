package probe

import (
	"strings"
	"testing"
)

func TestIsolating(t *testing.T) {
	for args, want := range map[string]string{
		"python train.py -I":             "",
		"python -I train.py":             "-I",
		"python -u -sE train.py":         "-E",
		"python -BS -c pass":             "-S",
		"python -W ignore -I -m x":       "-I",
		"python -Wignore -I -m x":        "-I",
		"python -X dev train.py -E":      "",
		"python -Xdev -E train.py":       "-E",
		"python -c -I":                   "",
		"python -m torch.run -I":         "",
		"python --version":               "",
		"python -uc print(1) -I":         "",
		"python - -I":                    "",
		"python":                         "",
		"python -WI train.py":            "",
		"python -XI -q -S -c from x y z": "-S",
	} {
		if got := Isolating(strings.Fields(args)); got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
}

func TestIsPython(t *testing.T) {
	for name, want := range map[string]bool{
		"python": true, "/usr/bin/python3": true, "python3.11": true, "python3.13t": true, "python3.12-dbg": true, "/opt/pypy3": true,
		"/usr/bin/python3.11 (deleted)": true,
		"pythonize":                     false, "bash": false, "ipython-wrapper.sh": false, "torchrun": false, "/opt/python/sh": false, "": false,
	} {
		if got := IsPython(name); got != want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestObstacle(t *testing.T) {
	const hook = "/tmp/dptrace-session-1/hook"
	for _, tc := range []struct {
		argv    string
		environ []string
		want    string
	}{
		{"python train.py", []string{"A=1", "PYTHONPATH=" + hook + ":/x"}, ""},
		{"python train.py", []string{"A=1"}, "started without the recording's PYTHONPATH"},
		{"python train.py", []string{}, "started without the recording's PYTHONPATH"},
		{"python train.py", nil, ""}, // not known
		{"python -I train.py", []string{"PYTHONPATH=" + hook}, "started with -I, which ignores PYTHONPATH"},
	} {
		if got := Obstacle(strings.Fields(tc.argv), tc.environ, hook); got != tc.want {
			t.Errorf("%s, %q: got %q, want %q", tc.argv, tc.environ, got, tc.want)
		}
	}
}
