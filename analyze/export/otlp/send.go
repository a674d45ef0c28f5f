package otlp

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// signal is a kind of what is sent.
type signal int

const (
	spans signal = iota
	points
	records
	signals
)

var signalNames = [signals]string{"spans", "metric data points", "log records"}

// Count is of the items of one signal.
type Count struct {
	Sent        int // Delivered + Rejected + Undelivered
	Delivered   int // the server said so
	Rejected    int // the server took the request, and not these
	Undelivered int // no request with them was answered as taken
}

// Told is what came of an export.
type Told struct {
	Signals [signals]Count
	Foreign [signals]string // the server does not know this kind of data: what it says; else ""
	Batches int             // whose traces are in the spans
	Left    int             // that were not in the sample
	Again   int64           // requests that were sent once more
	Refused int64           // calls (gRPC) that found the server too busy or not there
	Reasons map[string]int  // why items were not delivered
}

// Complete reports whether all has arrived, but for logs and metrics that the server
// has no place for although it took others: there is nothing to be mended then.
func (t *Told) Complete() bool {
	delivered := 0
	for _, c := range t.Signals {
		delivered += c.Delivered
	}
	for i, c := range t.Signals {
		excused := t.Foreign[i] != "" && signal(i) != spans && delivered > 0
		if c.Rejected+c.Undelivered > 0 && !excused {
			return false
		}
	}
	return true
}

// Lines says it, the reasons of what is missing at the end.
func (t *Told) Lines() (lines []string) {
	var sent []string
	for i, c := range t.Signals {
		switch {
		case t.Foreign[i] != "":
			lines = append(lines, fmt.Sprintf("%d %s were not taken: the server has no place for them (%s)", c.Sent, signalNames[i], t.Foreign[i]))
		case c.Sent > 0:
			sent = append(sent, fmt.Sprintf("%d of %d %s", c.Delivered, c.Sent, signalNames[i]))
		}
	}
	if len(sent) == 0 {
		sent = []string{"nothing"}
	}
	of := fmt.Sprintf(" (%d batches", t.Batches)
	if t.Left > 0 {
		of += fmt.Sprintf("; %d are not in the sample", t.Left)
	}
	lines = slices.Insert(lines, 0, "delivered "+strings.Join(sent, ", ")+of+")")
	if t.Again > 0 {
		lines = append(lines, fmt.Sprintf("%d requests were sent again", t.Again))
	}
	for _, reason := range slices.Sorted(maps.Keys(t.Reasons)) {
		lines = append(lines, fmt.Sprintf("%d not delivered: %s", t.Reasons[reason], reason))
	}
	return lines
}

const (
	inFlight    = 4 // requests at once: with what is being made, all that is held in memory
	pause       = 250 * time.Millisecond
	longestWait = 5 * time.Second
)

// sender sends requests and keeps account of what became of them.
type sender struct {
	ctx      context.Context
	patience time.Duration // how long a request may be repeated while none arrives
	slots    chan struct{}
	calls    calls
	taken    *atomic.Int64
	wg       sync.WaitGroup

	mu     sync.Mutex
	told   Told
	last   time.Time // when something arrived
	gone   bool      // patience has ended once: what is left is not tried
	failed [signals]bool
}

func newSender(ctx context.Context, patience time.Duration, requests int) *sender {
	return &sender{ctx: ctx, patience: patience, slots: make(chan struct{}, requests), told: Told{Reasons: map[string]int{}},
		taken: new(atomic.Int64)}
}

// send uploads n items, in the background once there is a slot.
func (s *sender) send(kind signal, n int, upload func(context.Context) error) {
	s.mu.Lock()
	s.told.Signals[kind].Sent += n
	s.mu.Unlock()
	s.slots <- struct{}{}
	s.wg.Go(func() {
		s.settle(kind, n, s.deliver(upload))
		<-s.slots
	})
}

// deliver repeats a request as long as that may help.
func (s *sender) deliver(upload func(context.Context) error) (o outcome) {
	begin, wait := time.Now(), pause
	o = outcome{rejected: -1, reason: "the endpoint did not answer before"}
	ctx := s.calls.watched(s.ctx)
	for !s.hopeless() {
		if o = outcomeOf(upload(ctx)); !o.again || s.ctx.Err() != nil {
			return o
		}
		if s.waited(begin) >= s.patience {
			s.mu.Lock()
			s.gone = true
			s.mu.Unlock()
			return o
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, longestWait)
		case <-s.ctx.Done():
			return o
		}
	}
	return o
}

func (s *sender) hopeless() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone || s.ctx.Err() != nil
}

// waited is how long nothing has arrived, since a request was begun.
func (s *sender) waited(begin time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last.After(begin) {
		begin = s.last
	}
	return time.Since(begin)
}

// settle books what came of a request.
func (s *sender) settle(kind signal, n int, o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.told.Signals[kind]
	switch {
	case o.rejected < 0:
		c.Undelivered += n
		s.failed[kind] = true
		if o.foreign {
			s.told.Foreign[kind] = o.reason
			return
		}
	default:
		s.last = time.Now()
		lost := min(o.rejected, n)
		c.Rejected += lost
		c.Delivered += n - lost
		s.taken.Add(int64(n - lost))
		n = lost
	}
	if n > 0 {
		s.told.Reasons[o.reason] += n
	}
}

// arrived waits for what is on its way, and reports whether the server has answered
// to all of a kind since the last reset.
func (s *sender) arrived(kind signal) bool {
	s.wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.failed[kind] || kind != spans && s.told.Foreign[kind] != ""
}

// counted adds batches whose spans were sent, or are not in the sample.
func (s *sender) counted(batches, left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told.Batches += batches
	s.told.Left += left
}

// reset forgets what did not arrive: it is sent again.
func (s *sender) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone, s.failed, s.told.Reasons = false, [signals]bool{}, map[string]int{}
	for i := range s.told.Signals {
		c := &s.told.Signals[i]
		c.Sent, c.Undelivered = c.Sent-c.Undelivered, 0
	}
}

// all waits for what is on its way.
func (s *sender) all() *Told {
	s.wg.Wait()
	s.told.Again, s.told.Refused = s.calls.again.Load(), s.calls.refused.Load()
	return &s.told
}
