package backends

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// recorded runs a program of two ranks under record --otlp, and gives what it says.
func recorded(t *testing.T, trace, more string, env ...string) string {
	t.Helper()
	python := os.Getenv("DPTRACE_PYTHON")
	if python == "" {
		t.Skip("DPTRACE_PYTHON is not set: this is a test of make backends")
	}
	file := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(file, []byte(ranks+more), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program(t), "record", "--quiet", "--otlp", "--tier", "hook", "-o", trace, "--", python, file)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("record: %v\n%s", err, out)
	}
	return string(out)
}

// What was sent while it ran is what an export sends, and not a word was said of it. On a machine that is so busy that a
// process at nice 19 does not come to its end in time, what is missing is said, to the span.
func TestRecord(t *testing.T) {
	s := newCollector(t)
	trace := filepath.Join(t.TempDir(), "live.dptrace")
	said := recorded(t, trace, "", s.overHTTP()...)
	s.stop()
	live := s.spans(t)
	for id, times := range live {
		if times != 1 && said == "" {
			t.Errorf("span %x was sent %d times", id, times)
		}
	}
	s.start(t)
	o := export(t, trace, nil, s.overGRPC()...)
	s.stop()
	if all := s.spans(t); len(all) != o.sent {
		t.Errorf("%d spans were sent by the export, %d are known after it", o.sent, len(all))
	}
	switch m := line.FindStringSubmatch(said); {
	case said == "" && len(live) == o.sent:
	case m != nil && m[1] == strconv.Itoa(len(live)) && len(live) < o.sent:
	default:
		t.Errorf("%d of %d spans were sent while it ran, and it says %q", len(live), o.sent, said)
	}
}

// A dead endpoint changes nothing for the program; that it was dead is said, and the export brings all.
func TestRecordDead(t *testing.T) {
	s := newCollector(t)
	trace := filepath.Join(t.TempDir(), "dead.dptrace")
	said := recorded(t, trace, "", "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+free(t))
	if !strings.Contains(said, "delivered 0 of ") || !strings.Contains(said, "dptrace export otlp "+trace+" sends it") {
		t.Errorf("it says %q", said)
	}
	complete(t, s, export(t, trace, nil, s.overHTTP()...))
}
