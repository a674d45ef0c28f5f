package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// plainServer is plain/server.py: programs without dptrace start in it without
// importing torch each for itself.
type plainServer struct {
	socket string
	stdin  io.Closer // ends it
}

var startPlain = sync.OnceValues(func() (plainServer, error) {
	p, err := findPython()
	if err != nil {
		return plainServer{}, err
	}
	folder, err := os.MkdirTemp("", "dptrace-plain-") // short: a socket's path may have 107 bytes
	if err != nil {
		return plainServer{}, err
	}
	s := plainServer{socket: filepath.Join(folder, "socket")}
	c := exec.Command(p.Path, "-W", "ignore", "plain/server.py", s.socket)
	c.Env, c.Stderr = environment(), os.Stderr
	if s.stdin, err = c.StdinPipe(); err != nil {
		return s, err
	}
	said, err := c.StdoutPipe()
	if err != nil {
		return s, err
	}
	if err := c.Start(); err != nil {
		return s, err
	}
	atEnd(func() {
		s.stdin.Close()
		c.Wait()
		os.RemoveAll(folder)
	})
	_, err = bufio.NewReader(said).ReadString('\n')
	return s, err
})

// runPlain runs the case without dptrace.
func (c testCase) runPlain(t *testing.T, p interpreter) result {
	t.Helper()
	s, err := startPlain()
	if err != nil {
		t.Fatalf("the server of plain runs does not start: %v", err)
	}
	limits := []time.Duration{limit}
	if p.old() { // it hangs at exit now and then, see run
		limits = []time.Duration{limit / 5, limit / 5, limit}
	}
	for _, limit := range limits {
		if r, done := s.try(t, c, limit); done {
			return r
		}
	}
	t.Fatalf("%s: not done after %v", c.name(), limit)
	return result{}
}

// try is one attempt; false: it took longer than the limit.
func (s plainServer) try(t *testing.T, c testCase, limit time.Duration) (result, bool) {
	t.Helper()
	connection, err := net.Dial("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	folder, err := filepath.Abs(c.folder)
	if err != nil {
		t.Fatal(err)
	}
	request := map[string]any{
		"folder": folder, "program": c.program, "args": append([]string{}, c.args...), "ranks": c.ranks, "limit": limit.Seconds(),
	}
	if err := json.NewEncoder(connection).Encode(request); err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Code           int
		Stdout, Stderr string
		Done           bool
	}
	if err := json.NewDecoder(connection).Decode(&answer); err != nil {
		t.Fatalf("the server of plain runs does not answer: %v", err)
	}
	return result{answer.Code, answer.Stdout, answer.Stderr}, answer.Done
}
