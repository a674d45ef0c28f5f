package probe

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// Who is due so soon is looked at now: a wake-up costs more than most looks,
	// 0.1 ms, for the most part in the kernel and in Go's scheduler.
	together = 25 * time.Millisecond

	// Grace is what descendants get, which may live on after the target as daemons do,
	// to end in; they are asked so often.
	Grace    = time.Second
	endLooks = 5 * time.Millisecond

	// Looks that are so far apart come at multiples of it, hence in one wake-up.
	beat = time.Second / 2

	farAway = time.Hour // of a watch that waits for its bells alone
)

// Watch is a probe at work. What it has is called by the loop of the recording,
// all on one thread and never two at a time; what is nil is left out.
type Watch struct {
	// Look takes what has come, does what is due, and says when to look again at
	// the latest; zero: when a bell of it rings. An error ends the probe.
	Look func(t Turn) (next time.Time, err error)
	// Calm reports, when the target has ended, that nothing more will come.
	Calm func() bool
	// End hands in what is left, when all are calm or have been waited for.
	End func(t Turn) error
	// Close gives back what the probe holds, whether or not it ran.
	Close func()
}

// Turn is one call of a watch.
type Turn struct {
	Now    time.Time
	Until  time.Time     // what is due by then is due now: a look can come earlier than was asked for, with others
	Ending bool          // the target has ended
	Rung   bool          // a bell has rung, maybe one of this probe
	Began  time.Duration // CPU time of starting the probe
	Spent  time.Duration // and of the calls of its watch so far
}

// Loop lets the watches of a recording look, one after another, as they wish to
// and as their bells ring. There is one thread and one timer for all: recorders
// that wake up for each probe on its own are dear by the waking alone.
type Loop struct {
	Bells *Bells
	// Chores comes after the watches, each time that any has looked: what they have
	// taken can be written at once. next as Watch.Look's.
	Chores  func(now time.Time) (next time.Time)
	Wakes   uint64 // how often it has slept and woken up; read by Chores, or when Run has ended
	entries []*entry
	later   []func() // done between looks, one at a time
	began   time.Time
	ended   int // eventfd: the target has
	done    chan struct{}
}

// entry is a watch, and when it is due.
type entry struct {
	name   string
	watch  Watch
	wish   time.Time // when it wants to look
	next   time.Time // when it does
	rung   bool
	failed bool
	began  time.Duration
	spent  time.Duration
}

// NewLoop has nothing to watch yet.
func NewLoop() (*Loop, error) {
	bells, err := newBells()
	if err != nil {
		return nil, err
	}
	l := &Loop{Bells: bells, began: time.Now(), done: make(chan struct{})}
	if l.ended, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		bells.close()
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	bells.owner = -1
	if err := bells.Hang(l.ended); err != nil {
		return nil, err
	}
	return l, nil
}

// Add starts a probe with this name: bells that start hangs up are its own.
func (l *Loop) Add(name string, start func() (Watch, error)) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := ThreadCPU()
	l.Bells.owner = len(l.entries)
	watch, err := start()
	if err != nil {
		return err
	}
	l.entries = append(l.entries, &entry{name: name, watch: watch, began: ThreadCPU() - before})
	return nil
}

// Later has something done by Run, after a first look and between two looks, as adding a
// probe for which nobody shall wait. It is not done if the target has ended by then.
func (l *Loop) Later(do func()) { l.later = append(l.later, do) }

// Run looks until the target has ended, and then as long as something may come.
// failed is told of probes that end early.
func (l *Loop) Run(failed func(name string, err error)) {
	defer close(l.done)
	runtime.LockOSThread() // the thread's CPU time is what watching costs
	defer runtime.UnlockOSThread()
	l.looks(failed)
	for _, e := range l.entries {
		if e.watch.End != nil && !e.failed {
			e.call(failed, e.watch.End, time.Now(), true)
		}
	}
	l.close()
}

// looks is all of Run but what follows the last look.
func (l *Loop) looks(failed func(string, error)) {
	var ended time.Time
	for {
		now, ending := time.Now(), !ended.IsZero()
		next := l.look(now, ending, failed)
		if ending {
			if l.calm() || now.Sub(ended) > Grace {
				return
			}
			next = now.Add(endLooks)
		} else if len(l.later) > 0 {
			l.later[0]()
			l.later, next = l.later[1:], now
		}
		l.Wakes++
		l.Bells.wait(next, func(owner int) {
			if owner < 0 {
				ended = time.Now()
				return
			}
			l.entries[owner].rung = true
		})
	}
}

// look calls the watches that are due, and says when the next one is.
func (l *Loop) look(now time.Time, ending bool, failed func(string, error)) (next time.Time) {
	next = now.Add(farAway)
	for i, e := range l.entries {
		if e.watch.Look == nil || e.failed {
			continue
		}
		if ending || e.rung || !e.next.After(now.Add(together)) {
			l.Bells.owner = i
			rung, until := e.rung, now
			if !rung && e.wish.After(now) {
				until = e.wish
			}
			e.rung = false
			e.call(failed, func(t Turn) (err error) {
				t.Rung, t.Until = rung, until
				if e.wish, err = e.watch.Look(t); e.wish.IsZero() {
					e.wish = now.Add(farAway)
				}
				e.next = l.inStep(now, e.wish)
				return err
			}, now, ending)
			l.spread()
		}
		if !e.failed && e.next.Before(next) {
			next = e.next
		}
	}
	for _, e := range l.entries {
		if e.rung && !e.failed && e.watch.Look != nil {
			return now
		}
	}
	if l.Chores != nil {
		next = sooner(next, l.Chores(now))
	}
	return next
}

// inStep is a time for the next look at which others look as well: the wish, or
// somewhat earlier.
func (l *Loop) inStep(now, wish time.Time) time.Time {
	if wish.Sub(now) < beat {
		return wish
	}
	return wish.Add(-wish.Sub(l.began) % beat)
}

// spread takes the news of one watch to the others.
func (l *Loop) spread() {
	if !l.Bells.all {
		return
	}
	l.Bells.all = false
	for i, e := range l.entries {
		e.rung = e.rung || i != l.Bells.owner
	}
}

// call calls a watch and counts what that costs.
func (e *entry) call(failed func(string, error), f func(Turn) error, now time.Time, ending bool) {
	before := ThreadCPU()
	err := f(Turn{Now: now, Until: now, Ending: ending, Began: e.began, Spent: e.spent})
	e.spent += ThreadCPU() - before
	if err != nil {
		e.failed = true
		failed(e.name, err)
		e.close()
	}
}

func (e *entry) close() {
	if e.watch.Close != nil {
		e.watch.Close()
		e.watch.Close = nil
	}
}

func (l *Loop) calm() bool {
	for _, e := range l.entries {
		if e.watch.Calm != nil && !e.failed && !e.watch.Calm() {
			return false
		}
	}
	return true
}

// Ended tells the loop that the target has ended, and waits until Run returns.
func (l *Loop) Ended() {
	one := [8]byte{1} // any number but zero
	_, _ = unix.Write(l.ended, one[:])
	<-l.done
}

// Discard gives back what probes hold that never ran.
func (l *Loop) Discard() {
	l.close()
	close(l.done)
}

func (l *Loop) close() {
	for _, e := range l.entries {
		e.close()
	}
	_ = unix.Close(l.ended)
	l.Bells.close()
}
