package hook

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// image is a ring file in memory, written as the hook writes it.
type image struct {
	b      []byte
	number uint32
}

func newImage(capacity int) *image {
	m := &image{b: make([]byte, headerSize+capacity)}
	copy(m.b, "DPR1")
	m.u32(atVersion, 1)
	m.u32(atCapacity, uint32(capacity))
	m.u32(atPid, uint32(os.Getpid()))
	return m
}

func (m *image) u32(at int, v uint32) { binary.LittleEndian.PutUint32(m.b[at:], v) }
func (m *image) u64(at int, v uint64) { binary.LittleEndian.PutUint64(m.b[at:], v) }
func (m *image) capacity() uint64     { return uint64(len(m.b) - headerSize) }
func (m *image) head() uint64         { return binary.LittleEndian.Uint64(m.b[atHead:]) }

// put writes a record; there must be room.
func (m *image) put(kind uint16, payload []byte) {
	pad := -(recordHeader + len(payload)) & 7
	need := uint64(recordHeader + len(payload) + pad)
	at := m.head() % m.capacity()
	skip := uint64(0)
	if at+need > m.capacity() {
		skip = m.capacity() - at
		m.u32(headerSize+int(at), uint32(skip))
		binary.LittleEndian.PutUint16(m.b[headerSize+int(at)+recordType:], typePad)
		at = 0
	}
	p := headerSize + int(at)
	m.u32(p+recordLength, uint32(need))
	binary.LittleEndian.PutUint16(m.b[p+recordType:], kind)
	binary.LittleEndian.PutUint16(m.b[p+recordPad:], uint16(pad))
	m.u64(p+recordTime, 12345)
	m.u32(p+recordNumber, m.number)
	copy(m.b[p+recordHeader:], payload)
	m.number++
	m.u64(atHead, m.head()+skip+need)
}

// save writes the image over the file, but for the recorder's fields.
func (m *image) save(t testing.TB, path string) {
	t.Helper()
	if old, err := os.ReadFile(path); err == nil && len(old) == len(m.b) {
		copy(m.b[atTail:atTail+8], old[atTail:atTail+8])
	}
	if err := os.WriteFile(path, m.b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func openImage(t testing.TB, path string) (*ring, error) {
	t.Helper()
	dir, err := unix.Open(filepath.Dir(path), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(dir) }()
	return openRing(dir, filepath.Base(path))
}

func TestDrainAroundTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "1.1.ring")
	m := newImage(minCapacity)
	m.save(t, path)
	r, err := openImage(t, path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	var want, got []string
	var buf []byte
	for i := range 500 { // several laps, with every remainder at the end
		text := fmt.Sprintf("%d %*d", i, i%97, i)
		want = append(want, text)
		m.put(typeKeys, []byte(text))
		m.save(t, path)
		if i%3 == 0 {
			if _, buf, err = r.drain(buf, func(rec record) { got = append(got, string(rec.payload)) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, _, err = r.drain(buf, func(rec record) { got = append(got, string(rec.payload)) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d records, want %d", len(got), len(want))
	}
	if m.head() < 5*minCapacity {
		t.Errorf("only %d bytes: the ring was not reused", m.head())
	}
	if after, err := os.ReadFile(path); err != nil || binary.LittleEndian.Uint64(after[atTail:]) != m.head() {
		t.Errorf("the tail in the file is not at the head: %v", err)
	}
}

const typeKeys = typeLoader // any type with a payload of text

// Whatever the watched process writes into its ring must end in an error, and
// take nothing along.
func TestDamagedRings(t *testing.T) {
	for name, damage := range map[string]func(*image){
		"head before tail":        func(m *image) { m.u64(atTail, 64); m.u64(atHead, 8) },
		"head too far":            func(m *image) { m.u64(atHead, m.capacity()+8) },
		"head not aligned":        func(m *image) { m.u64(atHead, 33) },
		"length 0":                func(m *image) { m.u32(headerSize+recordLength, 0) },
		"length not aligned":      func(m *image) { m.u32(headerSize+recordLength, 25) },
		"length past the head":    func(m *image) { m.u32(headerSize+recordLength, 1<<31) },
		"length within header":    func(m *image) { m.u32(headerSize+recordLength, 16) },
		"padding without end":     func(m *image) { binary.LittleEndian.PutUint16(m.b[headerSize+recordPad:], 60000) },
		"number of the past":      func(m *image) { m.u32(headerSize+recordNumber, 1<<32-1) },
		"truncated to less":       func(m *image) { m.b = m.b[:headerSize+16] },
		"truncated to the header": func(m *image) { m.b = m.b[:headerSize] },
		"truncated to nothing":    func(m *image) { m.b = nil },
		"another magic":           func(m *image) { m.b[0] = 'X' },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "1.1.ring")
			m := newImage(minCapacity)
			m.save(t, path)
			r, err := openImage(t, path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.close()
			m.put(typePass, []byte("{}"))
			if name == "head before tail" {
				r.tail = 64
			}
			damage(m)
			if err := os.WriteFile(path, m.b, 0o600); err != nil {
				t.Fatal(err)
			}
			taken := 0
			if _, _, err = r.drain(nil, func(record) { taken++ }); err == nil || taken > 0 {
				t.Errorf("took %d records, error %v", taken, err)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		file func(path string) error
		want error
	}{
		"empty":           {func(p string) error { return os.WriteFile(p, nil, 0o600) }, errNotYet},
		"header not yet":  {func(p string) error { return os.WriteFile(p, make([]byte, headerSize+minCapacity), 0o600) }, errNotYet},
		"a link":          {func(p string) error { return os.Symlink("/etc/passwd", p) }, unix.ELOOP},
		"a pipe":          {func(p string) error { return unix.Mkfifo(p, 0o600) }, errDamaged},
		"shorter than it": {func(p string) error { return os.WriteFile(p, newImage(minCapacity).b[:200], 0o600) }, errDamaged},
		"more than ours":  {func(p string) error { return os.WriteFile(p, newImage(RingBytes+8).b, 0o600) }, errDamaged},
		"too large": {func(p string) error {
			m := newImage(minCapacity)
			m.u32(atCapacity, 1<<31)
			return os.WriteFile(p, m.b, 0o600)
		}, errDamaged},
		"a later protocol": {func(p string) error {
			m := newImage(minCapacity)
			m.u32(atVersion, 2)
			return os.WriteFile(p, m.b, 0o600)
		}, errForeign},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "1.1.ring")
			if err := tc.file(path); err != nil {
				t.Fatal(err)
			}
			if _, err := openImage(t, path); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func FuzzDrain(f *testing.F) {
	good := newImage(minCapacity)
	good.put(typePut, make([]byte, 32))
	good.put(typeState, make([]byte, 56))
	good.put(typeDigest, append([]byte{20: 1, 28: 0}, make([]byte, 36)...))
	good.put(typeSlot, []byte(`{"slot": 1, "attr": "rng", "source": "/etc/passwd"}`))
	good.put(typeProcess, []byte(`{"pid": 1, "torch": "2"}`))
	f.Add(good.b[:headerSize+1024])
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newImage(minCapacity)
		m.u32(atCapacity, minCapacity)
		copy(m.b[atHead:atHead+8], data)
		if len(data) > headerSize {
			copy(m.b[headerSize:], data[headerSize:])
		}
		m.b[8], m.b[9] = m.b[8]&^7, m.b[9]&0x0f // often a possible head
		for i := 10; i < 16; i++ {
			m.b[i] = 0
		}
		path := filepath.Join(dir, "1.1.ring")
		if err := os.WriteFile(path, m.b, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := openImage(t, path)
		if err != nil {
			return
		}
		defer r.close()
		d := newReader(&collector{})
		s := &source{ring: r}
		_, _, _ = r.drain(nil, func(rec record) { d.take(s, rec) })
		if r.tail > r.head {
			t.Errorf("tail %d passed head %d", r.tail, r.head)
		}
	})
}
