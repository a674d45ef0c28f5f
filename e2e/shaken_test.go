package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dptrace/dptrace/traces"
)

// shakesVariable asks for more rounds than the few of every test run:
// DPTRACE_SHAKES=60 go test -run TestShaken -v ./e2e
const shakesVariable = "DPTRACE_SHAKES"

// batches are those that shaken/train.py is given.
const batches = 300

// TestShaken stops, continues and kills recorders at random moments. The training
// does not notice, and the report says what it lacks.
func TestShaken(t *testing.T) {
	p := python(t)
	t.Parallel()
	rounds := 3
	if text := os.Getenv(shakesVariable); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	command := []string{"sh", "-c", `echo begin; ` + p.Path + ` train.py; echo "code $?"`}
	plain := run(t, "shaken", command...)
	if !strings.HasSuffix(plain.stdout, "\ncode 7\n") || strings.Count(plain.stdout, "\n") != batches+3 {
		t.Fatalf("the training itself says:\n%s%s", end(plain.stdout), plain.tail())
	}
	for i := range rounds {
		t.Run(fmt.Sprint(i), func(t *testing.T) { shakeOnce(t, command, plain.stdout, i%3 != 0) })
	}
}

// shakeOnce records while the recorder is stopped and continued a few times, and in
// the end killed, or not.
func shakeOnce(t *testing.T, command []string, want string, kill bool) {
	spools, trace := t.TempDir(), filepath.Join(t.TempDir(), "run.dptrace")
	var out, complaints bytes.Buffer
	c := exec.Command(dptrace, append([]string{"record", "-q", "-o", trace, "--"}, command...)...)
	c.Dir, c.Stdout, c.Stderr = "shaken", &out, &complaints
	c.Env = append(environment(), "TMPDIR="+spools)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }() // also for who has the other end of stdout: the training
	killed := shake(c.Process, kill, ended)
	if killed {
		<-ended
	}
	if out.String() != want && (out.Len() > 0 || !killed) { // nothing: there was no shell yet
		t.Errorf("the training says something else: %d lines of %d, the last ones:\n%s%s",
			strings.Count(out.String(), "\n"), strings.Count(want, "\n"), end(out.String()), complaints.String())
	}
	if complaints.Len() > 0 {
		t.Errorf("it says:\n%s", complaints.String())
	}
	said := run(t, ".", dptrace, "report", "-v", trace)
	given := 0
	r, err := traces.Open(trace)
	if err != nil {
		if !killed || said.code != 3 { // at once: nothing was written yet
			t.Errorf("%v; report exits %d:\n%s", err, said.code, said.tail())
		}
		return
	}
	for _, row := range traces.Rows[traces.BatchNext](r) {
		if row.Status == "ok" {
			given++
		}
	}
	t.Logf("killed: %v, %d of %d batches are in the trace, report exits %d", killed, given, batches, said.code)
	told := strings.Contains(said.stdout, "was cut before the program ended") || strings.Contains(said.stdout, "an unknown number of") ||
		strings.Contains(said.stdout, "records: ")
	switch {
	case killed && !r.Parts[0].Sealed && (said.code != 3 || !told):
		t.Errorf("the recorder was killed, and the report exits %d:\n%s", said.code, said.stdout)
	case !killed && (given != batches || said.code == 3) && !told:
		t.Errorf("%d of %d batches, and the report exits %d:\n%s", given, batches, said.code, said.stdout)
	}
	if left, _ := os.ReadDir(spools); len(left) > 0 && said.code != 1 {
		t.Errorf("%v is left, after the report", left)
	}
}

// shake stops and continues a process at random, and in the end kills it, or lets it
// end. killed: it was there to be killed.
func shake(p *os.Process, kill bool, ended chan error) (killed bool) {
	for range 1 + rand.IntN(3) {
		pause := time.Duration(rand.Int64N(int64(2 * time.Second)))
		select {
		case err := <-ended:
			ended <- err
			return false
		case <-time.After(pause):
		}
		_ = p.Signal(syscall.SIGSTOP) // it may have ended
		time.Sleep(time.Duration(rand.Int64N(int64(time.Second))))
		if kill && rand.IntN(3) == 0 {
			break // killed as it stands
		}
		_ = p.Signal(syscall.SIGCONT)
	}
	if kill {
		return p.Kill() == nil
	}
	ended <- <-ended
	return false
}
