package timeline

import "testing"

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		cwd, file string
		line      int32
		want      string
	}{
		{"/home/me/proj", "/home/me/proj/train.py", 88, "train.py:88"},
		{"/home/me/proj", "/home/me/proj/src/../train.py", 88, "train.py:88"},
		{"/home/me/proj", "./train.py", 88, "train.py:88"},
		{"/home/me/proj", "src//data.py", 3, "src/data.py:3"},
		{"/home/me/proj", "/home/me/other/train.py", 88, "/home/me/other/train.py:88"},
		{"/home/me/proj", "/home/me/proj/..data/train.py", 88, "..data/train.py:88"},
		{"/home/me/proj", "/opt//lib/x.py", 0, "/opt/lib/x.py"},
		{"", "/opt/x.py", 1, "/opt/x.py:1"},
		{"/home", "", 1, "unknown place"},
	} {
		if got := Place(c.cwd, c.file, c.line); got != c.want {
			t.Errorf("Place(%q, %q, %d) is %q, want %q", c.cwd, c.file, c.line, got, c.want)
		}
	}
}
