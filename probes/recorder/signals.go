package recorder

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// forwarded are the signals that somebody sends to a program to tell it
// something. They are sent to us, because our pid is what is known outside.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

// again is how soon the same signal is the same event: timeout(1) sends it to
// us first and then to all.
const again = time.Second

// listener holds the signals that would end the recorder.
type listener struct {
	c        chan os.Signal
	listened []os.Signal
}

// listen begins to hold signals. A signal that was ignored when we were started
// (nohup, a shell's background job) stays ignored, for the target too: Notify
// would reset it.
func listen() *listener {
	l := &listener{c: make(chan os.Signal, 64)}
	for _, s := range forwarded {
		if !signal.Ignored(s) {
			l.listened = append(l.listened, s)
		}
	}
	if len(l.listened) > 0 {
		signal.Notify(l.c, l.listened...)
	}
	// Our stderr may be a pipe that nobody reads any more: writing to it must
	// be an error and not the end of the recorder.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return l
}

// restore lets signals end us as they end any program.
func (l *listener) restore() {
	if len(l.listened) > 0 {
		signal.Reset(l.listened...)
	}
}

// forwarding passes on to the target what was sent to us alone.
type forwarding struct {
	done chan struct{}
	wg   sync.WaitGroup
}

func (l *listener) forward(t *target) *forwarding {
	f := &forwarding{done: make(chan struct{})}
	f.wg.Add(1)
	go func() {
		defer f.wg.Done()
		w, err := callWitness()
		if err == nil {
			defer w.dismiss()
		}
		toAll := map[syscall.Signal]time.Time{}
		for {
			select {
			case <-f.done:
				return
			case s := <-l.c:
				n := s.(syscall.Signal)
				switch {
				case time.Since(toAll[n]) < again:
				case w != nil && w.saw(n), w == nil && n == syscall.SIGINT:
					toAll[n] = time.Now()
				default:
					_ = syscall.Kill(t.pid, n) // ESRCH: it has just ended
				}
			}
		}
	}()
	return f
}

func (f *forwarding) stop() {
	close(f.done)
	f.wg.Wait()
}
