package hook

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/traces"
)

// A ring is the memory of a process that may be anything. What one costs is
// bounded by its size, which is ours, and not by what is in it.
func TestHostileRing(t *testing.T) {
	const most = 40 << 20 // bytes allocated for one ring's worth of records, rubbish included
	json := func(n int) []byte { return []byte(`{"a":[` + strings.Repeat("{},", n/3) + `{}]}`) }
	for name, payloads := range map[string]func(m *image){
		"one record of small objects": func(m *image) { m.put(typeLoader, json(RingBytes-1024)) },
		"records as long as they may": func(m *image) {
			for range 3 {
				m.put(typeLoader, json(255<<10))
			}
		},
		"deep": func(m *image) { m.put(typeLoader, bytes.Repeat([]byte("["), RingBytes-1024)) },
		"keys": func(m *image) {
			var b bytes.Buffer
			for i := 0; b.Len() < RingBytes-2048; i++ {
				fmt.Fprintf(&b, `,"%d":1`, i)
			}
			m.put(typeLoader, append([]byte(`{"a":1`), append(b.Bytes(), '}')...))
		},
		"numbers": func(m *image) {
			m.put(typeDist, []byte(`{"ranks":[`+strings.Repeat("1,", RingBytes/2-1024)+`1]}`))
		},
		"many small ones": func(m *image) {
			for range RingBytes/32 - 1 {
				m.put(typePass, []byte("{}"))
			}
		},
		"claims of many indices": func(m *image) {
			for range RingBytes/64 - 1 {
				m.put(typePut, fixed("put", values{"n": 1<<31 - 1}))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "1.1.ring")
			m := newImage(RingBytes)
			payloads(m)
			m.save(t, path)
			r, err := openImage(t, path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			rows := &counter{}
			d := newReader(nil)
			d.Rows = rows
			s := &source{ring: r}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n, _, err := r.drain(nil, func(rec record) { d.take(s, rec) })
			runtime.ReadMemStats(&after)
			if err != nil || n == 0 {
				t.Fatalf("%d bytes were drained: %v", n, err)
			}
			if got := after.TotalAlloc - before.TotalAlloc; got > most {
				t.Errorf("%d MB were allocated", got>>20)
			}
			if int(s.bad)+rows.n == 0 {
				t.Error("the records left neither rows nor a loss")
			}
		})
	}
}

// counter counts rows and keeps none, as the trace's writer does.
type counter struct{ n int }

func (c *counter) Append(any) { c.n++ }

// Each record may name another attribute of a large file of source.
func TestHostileSources(t *testing.T) {
	python := filepath.Join(t.TempDir(), "large.py")
	if err := os.WriteFile(python, bytes.Repeat([]byte("x = a = 1\n"), maxSource/10), 0o600); err != nil {
		t.Fatal(err)
	}
	var c collector
	d := newReader(&c)
	hostile, honest := &source{ring: &ring{}}, &source{ring: &ring{}}
	ask := func(s *source, attr string) traces.RngSlot {
		d.take(s, record{kind: typeSlot, payload: fmt.Appendf(nil, `{"slot": 1, "attr": %q, "source": %q}`, attr, python)})
		return c.rows[len(c.rows)-1].(traces.RngSlot)
	}
	for i := range 200 {
		ask(hostile, fmt.Sprintf("a%d", i))
	}
	if hostile.searched > 40<<20 {
		t.Errorf("%d MB were searched", hostile.searched>>20)
	}
	if len(c.rows) != 200 {
		t.Errorf("%d rows: a slot without its line is one", len(c.rows))
	}
	short := filepath.Join(filepath.Dir(python), "short.py")
	if err := os.WriteFile(short, []byte("rng = Random(0)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	python = short
	if row := ask(honest, "rng"); row.Line != 1 {
		t.Errorf("another process pays for it: line %d", row.Line)
	}
}

// Many processes may ask, each what nobody has asked.
func TestHostileSourcesOfMany(t *testing.T) {
	python := filepath.Join(t.TempDir(), "large.py")
	if err := os.WriteFile(python, bytes.Repeat([]byte("x = a = 1\n"), maxSource/10), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newReader(&collector{})
	for i := range 100 {
		s := &source{ring: &ring{}}
		for j := range 20 {
			d.take(s, record{kind: typeSlot, payload: fmt.Appendf(nil, `{"slot": 1, "attr": "a%d_%d", "source": %q}`, i, j, python)})
		}
	}
	if d.searched > 140<<20 {
		t.Errorf("%d MB were searched", d.searched>>20)
	}
}

// A process that lives on and writes without end keeps nobody waiting when the target
// has ended; what ended processes have left is taken.
func TestEndless(t *testing.T) {
	dir := t.TempDir()
	var c collector
	d := newReader(&c)
	d.ending, d.until = true, time.Now().Add(-time.Second)
	for i, pid := range []int{os.Getpid(), 1 << 29} { // one that lives, one that cannot
		m := newImage(8192)
		m.u32(atPid, uint32(pid))
		m.put(typePass, []byte("{}"))
		name := fmt.Sprintf("%d.%d.ring", pid, i)
		m.save(t, filepath.Join(dir, name))
		r, err := openImage(t, filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		d.rings[name] = &source{ring: r, pid: int32(pid)}
	}
	d.look(time.Now())
	if _, there := d.rings[fmt.Sprintf("%d.0.ring", os.Getpid())]; len(c.rows) != 1 || !there {
		t.Errorf("%d rows, rings %v: %v", len(c.rows), d.rings, c.rows)
	}
}

// Nor does a folder full of what is no ring.
func TestHostileSpool(t *testing.T) {
	spool := t.TempDir()
	for i := range 2 * maxIgnored {
		if err := os.WriteFile(filepath.Join(spool, fmt.Sprintf("%d.1.ring", i)), bytes.Repeat([]byte("x"), 256), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var c collector
	d := newReader(&c)
	var err error
	if d.dir, err = unix.Open(spool, unix.O_RDONLY|unix.O_DIRECTORY, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(d.dir)
	for range 3 {
		d.listed = time.Time{}
		d.list(time.Now())
	}
	if len(c.rows) != maxIgnored {
		t.Errorf("%d rows", len(c.rows))
	}
}
