package probe

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/traces"
)

type anyRows []any

func (r *anyRows) Append(row any) { *r = append(*r, row) }

func newTestLoop(t *testing.T, watches ...Watch) *Loop {
	t.Helper()
	l, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range watches {
		if err := l.Add(string(rune('a'+i)), func() (Watch, error) { return w, nil }); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// run lets a loop run until each of its looks has been asked for.
func run(t *testing.T, l *Loop, until func()) (failures []string) {
	t.Helper()
	go func() {
		until()
		l.Ended()
	}()
	l.Run(func(name string, err error) { failures = append(failures, name+": "+err.Error()) })
	return failures
}

// A probe that fails is told of once, gives back what it holds, and keeps no other
// from its last look.
func TestLoopFails(t *testing.T) {
	var calls []string
	broken := Watch{
		Look:  func(Turn) (time.Time, error) { return time.Time{}, errors.New("broken") },
		Calm:  func() bool { return false },
		End:   func(Turn) error { calls = append(calls, "end of the broken one"); return nil },
		Close: func() { calls = append(calls, "closed") },
	}
	whole := Watch{
		Look: func(Turn) (time.Time, error) { return time.Time{}, nil },
		End:  func(Turn) error { calls = append(calls, "end"); return nil },
	}
	began := time.Now()
	failures := run(t, newTestLoop(t, broken, whole), func() { time.Sleep(10 * time.Millisecond) })
	if !slices.Equal(failures, []string{"a: broken"}) {
		t.Errorf("failures %q", failures)
	}
	if got := strings.Join(calls, ", "); got != "closed, end" {
		t.Errorf("calls: %s", got)
	}
	if waited := time.Since(began); waited >= Grace {
		t.Errorf("it was waited for as if it could become calm: %v", waited)
	}
}

// After the target's end all look until they are calm; End comes after the last
// look of all, in order.
func TestLoopEnds(t *testing.T) {
	var calls []string
	left := 3
	first := Watch{
		Look: func(turn Turn) (time.Time, error) {
			if turn.Ending {
				left--
			}
			return time.Time{}, nil
		},
		Calm: func() bool { return left == 0 },
		End:  func(Turn) error { calls = append(calls, "a"); return nil },
	}
	second := Watch{
		Look: func(turn Turn) (time.Time, error) {
			if turn.Ending {
				calls = append(calls, "look")
			}
			return time.Time{}, nil
		},
		End: func(turn Turn) error {
			if !turn.Ending || left != 0 {
				t.Errorf("the end came early: %+v, %d left", turn, left)
			}
			calls = append(calls, "b")
			return nil
		},
	}
	l := newTestLoop(t, first, second)
	written := 0
	l.Chores = func(time.Time) time.Time { written = len(calls); return time.Time{} }
	run(t, l, func() {})
	if got := strings.Join(calls, " "); got != "look look look a b" || written != 3 {
		t.Errorf("calls: %s; chores after %d of them", got, written)
	}
}

// A bell wakes its own probe, with those that are due anyway; one that has news
// wakes them all.
func TestLoopBells(t *testing.T) {
	var bell [2]int
	if err := unix.Pipe2(bell[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(bell[0])
	defer unix.Close(bell[1])
	l, err := NewLoop()
	if err != nil {
		t.Fatal(err)
	}
	looks := make(chan string, 64)
	news := false
	add := func(name string, start func()) {
		err := l.Add(name, func() (Watch, error) {
			start()
			return Watch{Look: func(turn Turn) (time.Time, error) {
				if !turn.Ending {
					looks <- name
				}
				if name == "ringing" && news {
					news = false
					l.Bells.RingAll()
				}
				return time.Time{}, nil
			}}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add("before", func() {})
	add("ringing", func() {
		if err := l.Bells.Hang(bell[0]); err != nil {
			t.Fatal(err)
		}
	})
	add("after", func() {})
	ring := func() {
		if _, err := unix.Write(bell[1], []byte{1}); err != nil {
			t.Error(err)
		}
	}
	take := func(n int) (names []string) {
		for range n {
			names = append(names, <-looks)
		}
		return names
	}
	run(t, l, func() {
		for _, want := range []string{"before ringing after", "ringing", "ringing"} {
			if got := strings.Join(take(strings.Count(want, " ")+1), " "); got != want {
				t.Errorf("looked: %s, want %s", got, want)
			}
			ring()
		}
		take(1) // of the last ring
		news = true
		ring()
		if got := strings.Join(take(3), " "); got != "ringing after before" {
			t.Errorf("looked after news: %s", got)
		}
	})
	if n := len(looks); n > 0 {
		t.Errorf("%d looks that nobody rang for: %s", n, strings.Join(take(n), " "))
	}
}

// Those that are due at nearly the same time share a wake-up.
func TestLoopTogether(t *testing.T) {
	passes := map[time.Time]int{}
	watch := func(first time.Duration) Watch {
		looked := false
		return Watch{Look: func(turn Turn) (time.Time, error) {
			if turn.Ending {
				return time.Time{}, nil
			}
			if passes[turn.Now]++; looked {
				return time.Time{}, nil
			}
			looked = true
			return turn.Now.Add(first), nil
		}}
	}
	l := newTestLoop(t, watch(100*time.Millisecond), watch(100*time.Millisecond+together/2))
	run(t, l, func() { time.Sleep(300 * time.Millisecond) })
	if len(passes) != 2 {
		t.Errorf("%d wake-ups, want the first one and one for both", len(passes))
	}
}

// Watches that look at any distance end up in step.
func TestLoopInStep(t *testing.T) {
	l := &Loop{began: time.Now()}
	for _, tc := range []struct{ at, pause, want time.Duration }{
		{0, 20 * time.Millisecond, 20 * time.Millisecond}, {123 * time.Millisecond, 499 * time.Millisecond, 622 * time.Millisecond},
		{1, beat, beat}, {123 * time.Millisecond, beat, beat}, {3*beat + time.Millisecond, 2 * beat, 5 * beat}, {1, time.Hour, time.Hour},
	} {
		now := l.began.Add(tc.at)
		if got := l.inStep(now, now.Add(tc.pause)).Sub(l.began); got != tc.want {
			t.Errorf("at %v in %v: at %v, want %v", tc.at, tc.pause, got, tc.want)
		}
	}
}

// A probe of the kernel tier hands in what it counted, and what that cost, when
// all is over.
func TestReaderEnds(t *testing.T) {
	var rows anyRows
	p := &Programs{Collection: &ebpf.Collection{}, rows: &rows, told: map[string]uint64{}}
	r := &reader{KernelSide: &KernelSide{Probe: "test"}, programs: p, tree: NewTree()}
	r.handler = Handler{
		Runs: func() uint64 { return 7 },
		End: func() error {
			p.Lost("cow", "no room", 3)
			p.Lost("cow", "no room", 5)
			p.Lost("cow", "no room", 5)
			return nil
		},
	}
	l := newTestLoop(t, Watch{Look: r.look, End: r.end})
	if failures := run(t, l, func() {}); len(failures) > 0 {
		t.Fatal(failures)
	}
	var lost []uint64
	costs := 0
	for _, r := range rows {
		switch r := r.(type) {
		case traces.Lost:
			lost = append(lost, r.Count)
		case traces.Overhead:
			costs++
			if r.Probe != "test" {
				t.Errorf("cost of %q", r.Probe)
			}
		}
	}
	if len(lost) != 2 || lost[0] != 3 || lost[1] != 2 || costs != 1 {
		t.Errorf("losses %d, want 3 and 2; %d rows of costs, want 1", lost, costs)
	}
}

// What can wait is done between looks, one thing at a time, and a probe that is added so
// looks as the others do; when the target has ended, nothing is begun any more.
func TestLater(t *testing.T) {
	var order []string
	look := func(name string) Watch {
		return Watch{Look: func(turn Turn) (time.Time, error) {
			if !turn.Ending {
				order = append(order, name)
			}
			return time.Time{}, nil
		}}
	}
	l := newTestLoop(t, look("first"))
	done := make(chan bool)
	l.Later(func() {
		if err := l.Add("second", func() (Watch, error) { order = append(order, "start"); return look("second"), nil }); err != nil {
			t.Error(err)
		}
	})
	l.Later(func() {
		order = append(order, "last")
		one := [8]byte{1}
		_, _ = unix.Write(l.ended, one[:]) // the target ends
		close(done)
	})
	l.Later(func() { t.Error("done after the end of the target") })
	run(t, l, func() { <-done })
	if want := []string{"first", "start", "second", "last"}; !slices.Equal(order, want) {
		t.Errorf("%q, want %q", order, want)
	}
}
