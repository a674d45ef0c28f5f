package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/traces"
)

// writeSlowly is `slowly FILE`: it writes half of a file, says so, and goes on when it is told to on stdin.
// With -q it is quiet.
func writeSlowly() {
	quiet := os.Args[1] == "-q"
	name := os.Args[len(os.Args)-1]
	w := beginWork(os.Stderr, quiet)
	err := w.file(name, func(to io.Writer) error {
		fmt.Fprint(to, "half")
		fmt.Println("half")
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return err
		}
		_, err := fmt.Fprint(to, " and half")
		return err
	})
	w.end()
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowly:", err)
		os.Exit(1)
	}
	fmt.Println("whole")
}

// slowly starts it, and returns when half of the file is written.
func slowly(t *testing.T, stderr *os.File, args ...string) (c *exec.Cmd, stdin io.WriteCloser, stdout *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "slowly") // testscript goes by the name that it is called by
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	c = exec.Command(name, args...)
	c.Env = append(os.Environ(), "TERM=xterm")
	c.Stderr = stderr
	stdin, err = c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill() })
	stdout = bufio.NewReader(out)
	if line, err := stdout.ReadString('\n'); line != "half\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return c, stdin, stdout
}

func exitCode(c *exec.Cmd) int {
	c.Wait()
	return c.ProcessState.ExitCode()
}

func files(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestInterrupted: a signal in the middle leaves nothing behind, and what was there before is as it was.
func TestInterrupted(t *testing.T) {
	// What is ignored here, as under nohup, is ignored by those that we start; what is caught is not.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, interrupts...)
	defer signal.Stop(caught)
	for s, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		for _, before := range []string{"", "of yesterday"} {
			folder := t.TempDir()
			name := filepath.Join(folder, "night.pprof")
			want := 0
			if before != "" {
				want = 1
				if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c, _, _ := slowly(t, nil, name)
			if got := files(t, folder); len(got) != want+1 {
				t.Fatalf("while it is written: %q", got)
			}
			if err := c.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			if got := exitCode(c); got != code {
				t.Errorf("%v: exit code %d, want %d", s, got, code)
			}
			content, _ := os.ReadFile(name)
			if got := files(t, folder); len(got) != want || string(content) != before {
				t.Errorf("%v: left behind %q, content %q", s, got, content)
			}
		}
	}
}

// TestNotInterrupted: the whole file, readable by whoever may read what this user makes; one that fails leaves nothing.
func TestNotInterrupted(t *testing.T) {
	folder := t.TempDir()
	name := filepath.Join(folder, "night.pprof")
	c, stdin, stdout := slowly(t, nil, name)
	stdin.Write([]byte("\n"))
	rest, _ := io.ReadAll(stdout)
	if code := exitCode(c); code != 0 || string(rest) != "whole\n" {
		t.Fatalf("exit code %d, %q", code, rest)
	}
	if content, err := os.ReadFile(name); string(content) != "half and half" || len(files(t, folder)) != 1 {
		t.Errorf("%q, %v, %q", content, err, files(t, folder))
	}
	c, stdin, _ = slowly(t, nil, filepath.Join(folder, "other"))
	stdin.Close()
	if code := exitCode(c); code != 1 || len(files(t, folder)) != 1 {
		t.Errorf("exit code %d, %q", code, files(t, folder))
	}
}

// TestIgnoredSignal: what nohup ignores goes on.
func TestIgnoredSignal(t *testing.T) {
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	name := filepath.Join(t.TempDir(), "night.pprof")
	c, stdin, _ := slowly(t, nil, name)
	c.Process.Signal(syscall.SIGHUP)
	stdin.Write([]byte("\n"))
	if code := exitCode(c); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestOnTerminal: the line appears after a while, and is gone when the work ends, however it does.
func TestOnTerminal(t *testing.T) {
	for how, code := range map[string]int{"ends": 0, "interrupted": 130} {
		master, slave := terminalPair(t)
		c, stdin, _ := slowly(t, slave, filepath.Join(t.TempDir(), "night.pprof"))
		slave.Close()
		screen := &bytes.Buffer{}
		read := make(chan error, 1)
		drawn := make(chan struct{})
		go func() {
			some := make([]byte, 4096)
			for told := false; ; {
				n, err := master.Read(some)
				screen.Write(some[:n])
				if !told && strings.Contains(screen.String(), "so far") {
					told = true
					close(drawn)
				}
				if err != nil { // EIO: nobody has it open any more
					read <- err
					return
				}
			}
		}()
		select {
		case <-drawn:
		case <-time.After(time.Minute):
			t.Fatalf("%s: nothing was drawn", how)
		}
		if how == "ends" {
			stdin.Write([]byte("\n"))
		} else {
			c.Process.Signal(syscall.SIGINT)
		}
		if got := exitCode(c); got != code {
			t.Errorf("%s: exit code %d", how, got)
		}
		<-read
		text := screen.String()
		if !strings.HasPrefix(text, eraseLine+"dptrace: writing ") || !strings.HasSuffix(text, eraseLine) || strings.Contains(text, "\n") {
			t.Errorf("%s: on the screen %q", how, text)
		}
	}
}

// TestQuietTerminal: nothing is drawn with --quiet, on a dumb terminal, and where stderr is no terminal.
func TestQuietTerminal(t *testing.T) {
	master, slave := terminalPair(t)
	defer slave.Close()
	later := time.Now().Add(time.Hour)
	for name, l := range map[string]func() *progressLine{
		"quiet": func() *progressLine { return newProgressLine(slave, true) },
		"dumb": func() *progressLine {
			t.Setenv("TERM", "dumb")
			defer t.Setenv("TERM", "xterm")
			return newProgressLine(slave, false)
		},
		"a pipe": func() *progressLine { return newProgressLine(&bytes.Buffer{}, false) },
	} {
		line := l()
		line.now(func() string { t.Errorf("%s: asked", name); return "" })
		line.tick(later)
		line.close()
	}
	fmt.Fprint(slave, "end")
	some := make([]byte, 100)
	if n, err := master.Read(some); string(some[:n]) != "end" {
		t.Errorf("%q, %v", some[:n], err)
	}
}

// TestProgressLine: nothing in the first second, at most five times in one, never more than a line, no control characters.
func TestProgressLine(t *testing.T) {
	begun := time.Unix(1000, 0)
	screen := &bytes.Buffer{}
	l := &progressLine{to: screen, columns: 30, begun: begun, stop: make(chan struct{})}
	text := "reading"
	l.now(func() string { return text })
	for ms := range 1000 {
		l.tick(begun.Add(time.Duration(ms) * time.Millisecond))
	}
	if screen.Len() > 0 {
		t.Fatalf("in the first second: %q", screen)
	}
	for ms := 1000; ms < 3000; ms++ {
		l.tick(begun.Add(time.Duration(ms) * time.Millisecond))
	}
	if n := strings.Count(screen.String(), "reading"); n != 10 {
		t.Errorf("%d times in two seconds", n)
	}
	screen.Reset()
	text = "writing " + strings.Repeat("a\x1b[2J", 20)
	l.tick(begun.Add(time.Hour))
	if drawn := strings.TrimPrefix(screen.String(), eraseLine); len(drawn) != 29 || strings.Contains(drawn, "\x1b") {
		t.Errorf("%q", drawn)
	}
	screen.Reset()
	l.close()
	l.tick(begun.Add(2 * time.Hour))
	if screen.String() != eraseLine {
		t.Errorf("at the end: %q", screen)
	}
	(*progressLine)(nil).close()
}

// TestHowFarRead: all that was asked for counts, and reading ends at all of it.
func TestHowFarRead(t *testing.T) {
	run, err := traces.Open(measured(t, true, true))
	if err != nil {
		t.Fatal(err)
	}
	if got := howFarRead(run.Progress()); got != "reading" {
		t.Errorf("before: %q", got)
	}
	rows := 0
	if err := run.EachPart([]string{"memory", "process"}, 1, func(int, traces.Batch) error {
		rows++
		if read, asked := run.Progress().Bytes(); read <= 0 || read > asked {
			t.Errorf("%d of %d bytes", read, asked)
		}
		return nil
	}); err != nil || rows == 0 {
		t.Fatalf("%d, %v", rows, err)
	}
}

func terminalPair(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal can be made here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skip("no terminal can be made here: ", err)
	}
	return master, slave
}
