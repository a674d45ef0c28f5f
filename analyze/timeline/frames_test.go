package timeline_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze/timeline"
)

func TestCaller(t *testing.T) {
	for name, tc := range map[string]struct{ frames, want string }{
		"nothing":        {"", ""},
		"no frames":      {"x\n:1\na b c\n:x f\n", ""},
		"a script":       {"/home/me/train.py:12 <module>", "train.py:12"},
		"a function":     {"/home/me/train.py:12 main\n/home/me/train.py:90 <module>", "train.py:12 (main), called from train.py:90"},
		"blanks, colons": {"/home/me/my: project/a b.py:3 Loop.step", "my: project/a b.py:3 (Loop.step)"},
		"elsewhere":      {"/opt/lab/train.py:7 <module>", "/opt/lab/train.py:7"},
		"in torch": {"/venv/lib/python3.11/site-packages/torch/nn/modules/module.py:12 Module.to\n/home/me/train.py:3 fit\n/home/me/run.py:9 main\n" +
			"/home/me/run.py:20 <module>", "train.py:3 (fit), called from run.py:9 (main)"},
		"by a library": {"/usr/lib/python3/dist-packages/lightning/loop.py:12 fit\n<frozen runpy>:88 _run_code", ""},
		"of python":    {"/usr/lib/python3.11/contextlib.py:81 inner\n/home/me/train.py:3 fit", "train.py:3 (fit)"},
		"a comprehension": {"/home/me/data.py:4 Photos.__getitem__.<locals>.<listcomp>\n/home/me/data.py:4 Photos.__getitem__\n/home/me/data.py:9 <module>",
			"data.py:4 (Photos.__getitem__), called from data.py:9"},
		"typed in": {"<stdin>:1 <module>", "<stdin>:1"},
	} {
		if got := timeline.Caller("/home/me", timeline.Frames(tc.frames), 2); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
