package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/traces"
)

// All that a ring says is missing becomes a row of lost, each kind once, and
// again only for what is new.
func TestLost(t *testing.T) {
	type row struct {
		count  uint64
		reason string // the begin of it
	}
	for name, tc := range map[string]struct {
		set  func(*image)
		want []row
	}{
		"nothing":             {func(m *image) { m.u32(atFlags, flagEnded) }, nil},
		"the ring was full":   {func(m *image) { m.u64(atDropped, 7) }, []row{{7, "the ring was full"}}},
		"a record is missing": {func(m *image) { m.number = 2; m.put(typePass, []byte("{}")) }, []row{{2, "the ring was full"}}},
		"both are the same": {func(m *image) { m.number = 2; m.put(typePass, []byte("{}")); m.u64(atDropped, 2) },
			[]row{{2, "the ring was full"}}},
		"damaged records": {func(m *image) { m.put(typePut, nil); m.put(typePass, nil) }, []row{{2, "records could not be decoded"}}},
		"full and damaged": {func(m *image) { m.u64(atDropped, 7); m.put(typePut, nil) },
			[]row{{7, "the ring was full"}, {1, "records could not be decoded"}}},
		"no recorder for long": {func(m *image) { m.u64(atDropped, 1); m.u32(atFlags, flagUnread) },
			[]row{{1, "the ring was full, as the recorder had not looked for 10 s"}}},
		"errors of its own": {func(m *image) { m.u32(atFlags, flagErrors|flagEnded) }, []row{{0, "the hook gave up after errors of its own;"}}},
		"errors told, and given up": {func(m *image) {
			m.put(typeErrors, []byte(`{"count": 20, "last": "boom", "disabled": true}`))
			m.u32(atFlags, flagErrors)
		}, []row{{20, "boom (the hook has stopped in this process)"}, {0, "the hook gave up after errors of its own;"}}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "1.1.ring")
			m := newImage(minCapacity)
			tc.set(m)
			m.save(t, path)
			r, err := openImage(t, path)
			if err != nil {
				t.Fatal(err)
			}
			var c collector
			d := newReader(&c)
			s := &source{ring: r, pid: int32(os.Getpid()), proc: 3}
			d.rings[r.name], d.dir = s, -1
			for i := range 3 { // later looks find nothing new
				for _, s := range d.rings {
					d.tend(s, time.Now().Add(time.Duration(i)*2*costEvery))
				}
			}
			var got []traces.Lost
			for _, row := range c.rows {
				if lost, ok := row.(traces.Lost); ok {
					got = append(got, lost)
				}
			}
			if len(got) != len(tc.want) {
				t.Fatalf("rows %+v, want %+v", got, tc.want)
			}
			for i, want := range tc.want {
				named := strings.HasPrefix(got[i].Source, "hook") && strings.HasPrefix(got[i].Reason, want.reason)
				if !named || got[i].Count != want.count || got[i].Proc != 3 {
					t.Errorf("row %+v, want %+v", got[i], want)
				}
			}
		})
	}
}

// A process that had no room for its ring leaves an empty file: a row, once, of
// the process if it is known.
func TestWithoutRing(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"99.12345.28.none", "98.12345.0.none", "rubbish.none"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var c collector
	d := newReader(&c)
	known, _ := d.Procs.Of(99, 1)
	d.Spool = dir
	var err error
	if d.dir, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(d.dir) }()
	d.list(time.Now())
	d.listed = time.Time{}
	d.list(time.Now())
	if len(c.rows) != 3 {
		t.Fatalf("rows %+v", c.rows)
	}
	reasons := map[string]uint32{}
	for _, row := range c.rows {
		lost := row.(traces.Lost)
		if lost.Source != "hook" || lost.Count != 0 {
			t.Errorf("row %+v", lost)
		}
		reasons[lost.Reason] = lost.Proc
	}
	const rest = "; what the process did is not recorded"
	if proc := reasons["the hook could not make its ring: no space left on device"+rest]; proc != known.Number {
		t.Errorf("of process %d, want %d: %v", proc, known.Number, reasons)
	}
	if _, ok := reasons["the hook could not make its ring"+rest]; !ok {
		t.Errorf("no reason without a number: %v", reasons)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left in the spool: %v %v", left, err)
	}
}
