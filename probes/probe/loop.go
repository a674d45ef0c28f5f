package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/cilium/ebpf/ringbuf"
)

const (
	lookEvery   = 100 * time.Millisecond
	secondEvery = time.Second
	costEvery   = 5 * time.Second

	// Descendants may live on after the target, as daemons do; they get this
	// long to end.
	grace = time.Second
)

// loop hands on what the programs of one probe saw until the recording ends.
type loop struct {
	*KernelSide
	programs *Programs
	tree     *Tree
	handler  Handler
	began    time.Duration // CPU time of the thread before
	taken    uint64        // records
	bad      uint64        // of them, that could not be decoded
}

func (l *loop) watch(ctx context.Context) error {
	defer l.programs.close()
	if l.Follows {
		defer close(l.tree.Complete)
	}
	if l.programs.ring != nil {
		defer context.AfterFunc(ctx, func() { _ = l.programs.ring.Flush() })() // do not wait for the next look
	}
	runtime.LockOSThread() // its CPU time is what watching costs
	defer runtime.UnlockOSThread()
	l.began = ThreadCPU()
	told, costed := time.Now(), time.Now()
	for ctx.Err() == nil {
		now := time.Now()
		if err := l.look(ctx, now); err != nil {
			return err
		}
		if now.Sub(told) >= secondEvery {
			told = now
			if l.handler.Second != nil {
				l.handler.Second(now)
			}
			l.tellLost()
		}
		l.programs.measure(now)
		if now.Sub(costed) >= costEvery {
			costed = now
			l.tellCost()
		}
	}
	err := l.end()
	l.tellLost()
	l.tellCost()
	return err
}

// look takes what comes within a tenth of a second; the programs do not wake us
// up for each record.
func (l *loop) look(ctx context.Context, now time.Time) error {
	if l.programs.ring == nil {
		if err := l.handler.look(now); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
		return nil
	}
	if err := l.drain(now.Add(lookEvery)); err != nil {
		return err
	}
	return l.handler.look(now)
}

func (h *Handler) look(now time.Time) error {
	if h.Look == nil {
		return nil
	}
	return h.Look(now)
}

// end takes what is left when the target has ended. The probe that follows the
// processes waits for its descendants, the others for that probe.
func (l *loop) end() error {
	if !l.Follows {
		<-l.tree.Complete
	}
	for end := time.Now().Add(grace); l.programs.ring != nil; {
		until := time.Now()
		if l.Follows {
			until = until.Add(lookEvery / 10)
		}
		if err := l.drain(until); err != nil {
			return err
		}
		if !l.Follows || l.tree.ended() || time.Now().After(end) {
			break
		}
	}
	if l.handler.End == nil {
		return nil
	}
	return l.handler.End()
}

// drain takes the records that are there, and waits for more until a deadline.
func (l *loop) drain(until time.Time) error {
	r := l.programs.ring
	r.SetDeadline(until)
	var rec ringbuf.Record
	for {
		err := r.ReadInto(&rec)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, ringbuf.ErrFlushed):
			return nil
		case err != nil:
			return fmt.Errorf("read the eBPF ring: %w", err)
		}
		l.taken++
		if !l.handler.Take(rec.RawSample) {
			l.bad++
		}
	}
}

// tellLost writes what found no room.
func (l *loop) tellLost() {
	for _, d := range l.Drops {
		l.programs.Lost(d.Table, d.Reason, l.programs.Counter(d.Variable, d.Index))
	}
	l.programs.Lost(l.Table, "events of the "+l.Probe+" probe could not be decoded", l.bad)
}

func (l *loop) tellCost() {
	runs := l.taken
	if l.handler.Runs != nil {
		runs = l.handler.Runs()
	}
	l.programs.rows.Append(l.programs.overhead(l.Probe, ThreadCPU()-l.began, runs))
}
