package recorder

import (
	"strings"
	"testing"
)

func TestSay(t *testing.T) {
	var stderr strings.Builder
	Options{Stderr: &stderr}.say("report: %s", "open \x1b]0;pwned\a\u009b31m\r\n\xffä: no such file")
	if want := "dptrace: report: open ?]0;pwned??31m???ä: no such file\n"; stderr.String() != want {
		t.Errorf("%q, want %q", stderr.String(), want)
	}
}
