package traces

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
)

// disk is a file system with room for so many bytes; what is over fails in
// the middle of a write, as on a full disk.
type disk struct{ room int }

type diskFile struct {
	*os.File
	disk *disk
}

func (d *disk) create(name string) (file, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return diskFile{f, d}, nil
}

func (f diskFile) Write(b []byte) (int, error) {
	n := min(len(b), max(f.disk.room, 0))
	f.disk.room -= n
	f.File.Write(b[:n])
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

// Close gives back what an unlinked file held.
func (f diskFile) Close() error {
	if _, err := os.Stat(f.Name()); errors.Is(err, os.ErrNotExist) {
		held, err := f.File.Stat()
		if err != nil {
			return err
		}
		f.disk.room += int(held.Size())
	}
	return f.File.Close()
}

// clock is a time that tests move.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

// The disk fills up in the middle of a recording, at each possible byte of
// what is written, and later has room again. All rows that were not counted
// as lost are in the trace, nothing in it is unreadable, and the trace itself
// says how many were lost.
func TestDiskFull(t *testing.T) {
	for room := 0; room < 9000; room += 97 {
		d, c := &disk{room: room}, &clock{time0}
		dir := filepath.Join(t.TempDir(), "x.dptrace")
		w, err := Create(dir, "host-1", Options{create: d.create, now: c.now})
		if err != nil {
			t.Fatal(err)
		}
		var want []any
		i := 0
		add := func() {
			row := sampleRow(tableOfName["batch_fetch"], i)
			lost := w.Lost()["batch_fetch"]
			if w.Append(row); w.Lost()["batch_fetch"] == lost {
				want = append(want, row)
			}
			i++
		}
		for range 30 { // seconds
			for range 20 {
				add()
			}
			c.t = c.t.Add(time.Second)
			w.Tick()
		}
		full := w.Err()
		for w.Lost()["batch_fetch"] < 5 && full != nil && i < 20_000 {
			add()
		}
		d.room = 1 << 30
		for range 3 {
			c.t = c.t.Add(time.Second)
			w.Tick()
		}
		add()
		if err := w.Seal(); err != nil {
			t.Fatalf("room %d: %v", room, err)
		}
		if full != nil && !errors.Is(full, syscall.ENOSPC) {
			t.Fatalf("room %d: %v", room, full)
		}
		got, r := readAll(t, dir)
		if len(r.Problems) > 0 {
			t.Fatalf("room %d: %v", room, r.Problems)
		}
		for n, row := range got["batch_fetch"] {
			f := row.(BatchFetch)
			w := want[n].(BatchFetch)
			w.Seq = uint64(n) // lost rows have no number
			if !reflect.DeepEqual(f, w) {
				t.Fatalf("room %d: row %d: %+v, want %+v", room, n, f, w)
			}
		}
		var told uint64
		for _, row := range Rows[Lost](r) {
			if row.Source != "writer" || row.Table != "batch_fetch" || !strings.Contains(row.Reason, "no space left") {
				t.Fatalf("%+v", row)
			}
			told += row.Count
		}
		if len(got["batch_fetch"]) != len(want) || told != w.Lost()["batch_fetch"] || (full != nil) != (told > 0) {
			t.Fatalf("room %d: %d rows of %d, told %d lost of %d, %v", room, len(got["batch_fetch"]), len(want), told, w.Lost()["batch_fetch"], full)
		}
	}
}

// The disk fills to its last byte and stays so: what is lost is told nevertheless, in a trace that ends as it should.
func TestDiskFullToTheEnd(t *testing.T) {
	for room := reserveBytes; room < reserveBytes+9000; room += 499 {
		d, c := &disk{room: room}, &clock{time0}
		dir := filepath.Join(t.TempDir(), "x.dptrace")
		w, err := Create(dir, "host-1", Options{create: d.create, now: c.now})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1000 {
			w.Append(sampleRow(tableOfName["batch_fetch"], i))
			if i%20 == 0 {
				c.t = c.t.Add(time.Second)
				w.Tick()
			}
		}
		d.room = min(d.room, 0) // somebody else took what was left
		if err := w.Seal(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("room %d: %v", room, err)
		}
		got, r := readAll(t, dir)
		var told uint64
		for _, row := range Rows[Lost](r) {
			told += row.Count
		}
		if len(r.Problems) > 0 || told != w.Lost()["batch_fetch"] || uint64(len(got["batch_fetch"]))+told != 1000 {
			t.Fatalf("room %d: %d rows, told %d lost of %d, %v", room, len(got["batch_fetch"]), told, w.Lost()["batch_fetch"], r.Problems)
		}
	}
}

// The disk stays full: what waits is bounded, Close says the error and counts.
func TestDiskStaysFull(t *testing.T) {
	d, c := &disk{}, &clock{time0}
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	w, err := Create(dir, "host-1", Options{create: d.create, now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	for i := range n {
		w.Append(Exit{ExitCode: int32(i)})
		if i%1000 == 0 {
			c.t = c.t.Add(time.Second)
			w.Tick()
		}
	}
	if rows := w.tables[reflect.TypeFor[Exit]()].buffered.rows; rows > maxBatchRows {
		t.Errorf("%d rows wait", rows)
	}
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	if got := w.Lost()["exit"]; got != n {
		t.Errorf("%d counted as lost, want %d", got, n)
	}
	if files, _ := os.ReadDir(w.Dir()); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
	if _, err := Open(dir); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
}

// The same on a real file system that is full.
func TestFullTmpfs(t *testing.T) {
	mnt := t.TempDir()
	if err := syscall.Mount("tmpfs", mnt, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("mounting a tmpfs needs CAP_SYS_ADMIN: %v", err)
	}
	defer syscall.Unmount(mnt, syscall.MNT_DETACH)
	dir := filepath.Join(mnt, "x.dptrace")
	c := &clock{time0}
	w, err := Create(dir, "host-1", Options{now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(mnt, "ballast")
	os.WriteFile(ballast, make([]byte, 200<<10), 0o600)
	for i := 0; w.Lost()["rng_state"] == 0 && i < 100_000; i++ {
		s := sampleRow(tableOfName["rng_state"], i).(RngState)
		s.Raw = make([]byte, 1000)
		for j := range s.Raw {
			s.Raw[j] = byte(i * j * (i ^ j) >> 3)
		}
		w.Append(s)
	}
	if !errors.Is(w.Err(), syscall.ENOSPC) {
		t.Fatalf("the disk never filled: %v", w.Err())
	}
	os.Remove(ballast)
	c.t = c.t.Add(2 * time.Second)
	w.Append(Exit{ExitCode: 1})
	c.t = c.t.Add(2 * time.Second)
	if w.Tick(); w.Rows()["exit"] != 1 {
		t.Errorf("a batch that is too big for the disk holds up a small one: %v", w.Rows())
	}
	if err := w.Seal(); err != nil {
		t.Logf("still no room for all: %v", err)
	}
	got, r := readAll(t, dir)
	if len(got["exit"]) != 1 {
		t.Errorf("nothing was written after there was room: %v", r.Problems)
	}
	var told uint64
	for _, row := range Rows[Lost](r) {
		told += row.Count
	}
	if told == 0 || told != w.Lost()["rng_state"] {
		t.Errorf("the trace tells of %d lost rows, there are %d", told, w.Lost()["rng_state"])
	}
	for _, p := range r.Problems {
		t.Error(p)
	}
}

func TestRowTooLong(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	w, err := Create(dir, "host-1", Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.Append(Meta{Key: "a", Value: strings.Repeat("x", maxRowBytes)})
	w.Append(Meta{Key: "b", Value: strings.Repeat("y", maxRowBytes-1)})
	w.Append(&Meta{Key: "c", Value: "not \xff UTF-8"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, r := readAll(t, dir)
	if len(got["meta"]) != 2 || len(got["lost"]) != 1 || got["lost"][0].(Lost).Reason != "row too long" || len(r.Problems) > 0 {
		t.Errorf("%d rows, %v, %v", len(got["meta"]), got["lost"], r.Problems)
	}
	if s := got["meta"][1].(Meta).Value; s != "not \uFFFD UTF-8" {
		t.Errorf("%q", s)
	}
}

func TestRotation(t *testing.T) {
	c := &clock{time0}
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	w, err := Create(dir, "host-1", Options{now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 25 { // minutes
		w.Append(Exit{ExitCode: int32(i)})
		c.t = c.t.Add(time.Minute)
		w.Tick()
	}
	if err := w.Seal(); err != nil {
		t.Fatal(err)
	}
	got, r := readAll(t, dir)
	if n := len(r.Parts[0].segments["exit"]); n != 3 || len(got["exit"]) != 25 || len(r.Problems) > 0 {
		t.Errorf("%d segments, %d rows, %v", n, len(got["exit"]), r.Problems)
	}
	if files, _ := os.ReadDir(w.Dir()); len(files) != 2*(3+1) {
		t.Errorf("tables without rows made files: %v", files)
	}
}
