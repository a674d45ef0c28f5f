package frames_test

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/probes/frames"
)

// program stands still three calls deep, on lines that it tells: of a function, of a method called over two lines, of the module.
// An early return, a long jump between lines and a name that is not ASCII are in the way of the tables.
var program = strings.ReplaceAll(`import ctypes, os, sys, threading


class Größe:
    def still(self, n):
        if n < 0:
            return
        for i in range(2):
            pass
FAR        print(os.getpid(), "%d.%d.%d" % sys.version_info[:3], ctypes.c_size_t(state()).value, flush=True); sys.stdin.read(1)


def deeper(n):
    g = Größe()
    return [
        g.still(k)
        for k in [n]
    ]


state = ctypes.pythonapi.PyThreadState_Get
state.restype = ctypes.c_void_p
threading.Thread(target=threading.Event().wait, daemon=True).start()  # another thread state, in front of the main one's
deeper(
    1)
`, "FAR", strings.Repeat("\n", 150))

// pythons are the interpreters of this machine that have a layout.
func pythons(t *testing.T) (paths []string) {
	cache := cmp.Or(os.Getenv("DPTRACE_CACHE"), filepath.Join(cmp.Or(os.Getenv("XDG_CACHE_HOME"), os.Getenv("HOME")+"/.cache"), "dptrace"))
	found := []string{filepath.Join(cache, "torch-2.15-py3.14/bin/python3")} // tools/torch-env
	for _, pattern := range []string{"/usr/bin/python3", "/root/.pyenv/versions/3.*/bin/python3", os.Getenv("PYENV_ROOT") + "/versions/3.*/bin/python3"} {
		more, _ := filepath.Glob(pattern)
		found = append(found, more...)
	}
	if path, err := exec.LookPath("python3"); err == nil {
		found = append(found, path)
	}
	seen := map[string]bool{}
	for _, path := range found {
		version, err := exec.Command(path, "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])").Output()
		v := strings.TrimSpace(string(version))
		if _, ok := frames.LayoutOf(v); err == nil && ok && !seen[v] {
			seen[v] = true
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		t.Skipf("SKIPPED %s: no Python of a version that has a layout", t.Name())
	}
	return paths
}

// walk follows frames as bpf/python.h does.
func walk(t *testing.T, memory *os.File, thread uint64, l frames.Layout) (all []frames.Frame) {
	word := func(at uint64) uint64 {
		var b [8]byte
		if _, err := memory.ReadAt(b[:], int64(at)); err != nil {
			t.Fatalf("read at %#x: %v", at, err)
		}
		return binary.LittleEndian.Uint64(b[:])
	}
	frame := word(thread + uint64(l.First))
	if l.Second != frames.None {
		frame = word(frame + uint64(l.Second))
	}
	for frame != 0 && len(all) < 20 {
		f := frames.Frame{Code: word(frame + uint64(l.Code)), Instruction: word(frame + uint64(l.Instruction))}
		if l.Index {
			f.Instruction &= 1<<32 - 1
		}
		all = append(all, f)
		frame = word(frame + uint64(l.Previous))
	}
	return all
}

func TestPlaces(t *testing.T) {
	lines := strings.Split(program, "\n")
	at := func(text string) int {
		return 1 + slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, text) })
	}
	for _, path := range pythons(t) {
		t.Run(path, func(t *testing.T) {
			script := filepath.Join(t.TempDir(), "größe.py")
			if err := os.WriteFile(script, []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			c := exec.Command(path, script)
			c.Stderr = os.Stderr
			in, _ := c.StdinPipe()
			out, _ := c.StdoutPipe()
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Close(); _ = c.Wait() }()
			words := strings.Fields(first(t, bufio.NewScanner(out)))
			thread, err := strconv.ParseUint(words[2], 10, 64)
			layout, ok := frames.LayoutOf(words[1])
			memory, err2 := os.Open(fmt.Sprintf("/proc/%s/mem", words[0]))
			if err != nil || err2 != nil || !ok {
				t.Fatal(words, err, err2, ok)
			}
			defer memory.Close()
			var got []string
			var codes frames.Codes
			counted := counting{ReaderAt: memory}
			for _, f := range walk(t, memory, thread, layout) {
				p, err := layout.Place(memory, f)
				first, _ := codes.Place(&layout, &counted, 1, f)
				counted.reads = 0
				again, err2 := codes.Place(&layout, &counted, 1, f)
				if first != p || again != p || (err == nil) != (err2 == nil) || err == nil && counted.reads != 1 {
					t.Errorf("%v; remembered %v, then %v with %d reads", p, first, again, counted.reads)
				}
				if err == nil {
					got = append(got, fmt.Sprintf("%s:%d %s", filepath.Base(p.File), p.Line, p.Function[strings.LastIndex(p.Function, ".")+1:]))
				}
			}
			want := []string{fmt.Sprintf("größe.py:%d still", at("os.getpid")), fmt.Sprintf("größe.py:%d <listcomp>", at("g.still(k)")),
				fmt.Sprintf("größe.py:%d deeper", at("return [")), fmt.Sprintf("größe.py:%d <module>", len(lines)-2)}
			if minor, _ := strconv.Atoi(strings.Split(words[1], ".")[1]); minor >= 12 { // PEP 709: it is inlined
				want = slices.Delete(want, 1, 2)
				want[1] = fmt.Sprintf("größe.py:%d deeper", at("g.still(k)"))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", words[1], got, want)
			}
		})
	}
}

// counting counts how often it is read.
type counting struct {
	io.ReaderAt
	reads int
}

func (c *counting) ReadAt(b []byte, at int64) (int, error) {
	c.reads++
	return c.ReaderAt.ReadAt(b, at)
}

func first(t *testing.T, s *bufio.Scanner) string {
	if !s.Scan() {
		t.Fatal("the program tells nothing")
	}
	return s.Text()
}
