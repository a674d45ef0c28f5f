package hook

import (
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
)

// However fast a ring fills, it is looked at before half of it is new; and no
// sooner than has a reason.
func TestPause(t *testing.T) {
	for _, tc := range []struct {
		perSecond float64 // of the ring
		bells     bool
		want      time.Duration
	}{
		{0, true, maxPause}, {0, false, bellless}, {0.2, true, maxPause}, {1, false, bellless},
		{1, true, 125 * time.Millisecond}, {2, false, 62500 * time.Microsecond}, {1000, true, minPause},
	} {
		if got := pause(tc.perSecond, tc.bells); got != tc.want {
			t.Errorf("%v of a ring in a second, bells %v: %v, want %v", tc.perSecond, tc.bells, got, tc.want)
		}
	}
}

// spooled is a loop that reads a spool of its own.
func spooled(t *testing.T) (l *probe.Loop, d *reader, spool string) {
	t.Helper()
	spool = t.TempDir()
	l, err := probe.NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	err = l.Add("hook", func() (probe.Watch, error) {
		var err error
		d, err = open(&probe.Recording{Rows: &collector{}, Procs: probe.NewProcs(), Target: 7, Spool: spool, Bells: l.Bells})
		return d.watching(), err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l, d, spool
}

// A ring that fills up all of a sudden, after it was left alone for long, loses
// nothing: its hook rings.
func TestBell(t *testing.T) {
	l, d, spool := spooled(t)
	m := newImage(64 << 10)
	m.u64(atBell, 16<<10)
	path := filepath.Join(spool, "1.1.ring")
	m.save(t, path)
	drained := make(chan uint64, 64)
	l.Chores = func(time.Time) time.Time {
		if s := d.rings["1.1.ring"]; s != nil {
			select {
			case drained <- s.tail:
			default: // nobody asks any more
			}
		}
		return time.Time{}
	}
	go func() {
		defer l.Ended()
		defer func() { _ = os.Remove(path) }()
		const looks = 3 // the first of the loop, that of the file, one by the clock
		for range looks {
			<-drained
		}
		for range 20 { // laps of the ring, each far shorter than the pause
			for m.head()%(16<<10) < 15<<10 {
				m.put(typePass, []byte(`{"pass": 1}`))
			}
			m.put(typePass, make([]byte, 1<<10))
			m.save(t, path)
			now := time.Now()
			if err := os.Chtimes(path, now, now); err != nil {
				t.Error(err)
			}
			for limit := time.After(maxPause / 2); ; {
				select {
				case tail := <-drained:
					if tail != m.head() {
						continue
					}
				case <-limit:
					t.Error("nobody came before the clock")
					return
				}
				break
			}
		}
	}()
	l.Run(func(name string, err error) { t.Errorf("%s: %v", name, err) })
	if s := d.rings["1.1.ring"]; s != nil && s.lost() > 0 {
		t.Errorf("%d records lost", s.lost())
	}
}

// A process that lives for a few milliseconds between two looks: its ring is seen
// when it is made, and its records are taken.
func TestShortLived(t *testing.T) {
	l, d, spool := spooled(t)
	c := d.Rows.(*collector)
	go func() {
		defer l.Ended()
		time.Sleep(maxPause / 4) // the loop sleeps by now
		m := newImage(minCapacity)
		m.u64(atBell, minCapacity/4)
		m.put(typePass, []byte(`{"pass": 1}`))
		m.u32(atFlags, flagEnded)
		m.save(t, filepath.Join(spool, "1.1.ring"))
		for limit := time.Now().Add(maxPause / 2); time.Now().Before(limit); time.Sleep(time.Millisecond) {
			if _, err := os.Stat(filepath.Join(spool, "1.1.ring")); err != nil {
				return // drained and given back
			}
		}
		t.Error("it was not taken before the clock")
	}()
	l.Run(func(name string, err error) { t.Errorf("%s: %v", name, err) })
	if len(c.rows) == 0 {
		t.Error("its record is lost")
	}
}

// Without inotify the folder is looked at by the clock.
func TestNoNotices(t *testing.T) {
	_, d, spool := spooled(t)
	d.notices.close()
	d.notices = nil
	m := newImage(minCapacity)
	m.u64(atBell, minCapacity/4)
	m.save(t, filepath.Join(spool, "1.1.ring"))
	d.look(time.Now())
	if len(d.rings) != 1 || d.pause != bellless {
		t.Errorf("%d rings, pause %v", len(d.rings), d.pause)
	}
	_ = unix.Close(d.dir)
}

// Rings of processes that do nothing are looked at twice a second, all of them in
// one wake-up.
func TestIdleRings(t *testing.T) {
	l, d, spool := spooled(t)
	for i := range 16 {
		m := newImage(minCapacity)
		m.u64(atBell, minCapacity/4)
		m.save(t, filepath.Join(spool, strconv.Itoa(i+1)+".1.ring"))
	}
	const span = 3 * time.Second
	var looks atomic.Int64
	l.Chores = func(time.Time) time.Time { looks.Add(1); return time.Time{} }
	go func() {
		time.Sleep(span)
		looked := int(looks.Load())
		if n := d.Procs.Alive(); len(n) == 0 {
			t.Error("no ring was opened")
		}
		if most := int(span/maxPause) + 2; looked > most {
			t.Errorf("%d looks in %v, at most %d have a reason", looked, span, most)
		}
		l.Ended()
	}()
	l.Run(func(name string, err error) { t.Errorf("%s: %v", name, err) })
}
