package timeline

import (
	"os/exec"
	"strings"
	"testing"
)

// A shell makes the words of it that it was made of.
func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"python", "train.py", "--lr=1e-3", "-o", "/a/b_c:d,e@f"}, "python train.py --lr=1e-3 -o /a/b_c:d,e@f"},
		{[]string{"python", "train.py", "--on_memory", ""}, "python train.py --on_memory ''"},
		{[]string{"python", "-c", "print(1); print('a b')"}, `python -c 'print(1); print('\''a b'\'')'`},
		{[]string{"x", "$HOME", "*", "a\\b", "a\nb", "größe", "~", "!", "a&b"}, "x '$HOME' '*' 'a\\b' 'a\nb' größe '~' '!' 'a&b'"},
	} {
		got := (&Timeline{Command: c.words}).CommandLine()
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.words, got, c.want)
		}
		out, err := exec.Command("sh", "-c", `printf '%s|' `+got).Output()
		if err != nil || string(out) != strings.Join(c.words, "|")+"|" {
			t.Errorf("%s: a shell makes %q of it (%v)", got, out, err)
		}
	}
	if got := (&Timeline{}).RecordAgain(); got != "dptrace record -- python ..." {
		t.Error(got)
	}
}
