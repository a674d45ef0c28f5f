package probe

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf/ringbuf"
)

const (
	secondEvery = time.Second
	costEvery   = 10 * time.Second
)

// reader hands on what the programs of one probe saw.
type reader struct {
	*KernelSide
	programs *Programs
	tree     *Tree
	handler  Handler
	bells    *Bells
	told     time.Time // when Handler.Second was called, and losses were told
	costed   time.Time
	taken    uint64 // records
	bad      uint64 // of them, that could not be decoded
}

// look takes what is in the ring. As long as something comes it is looked at
// again after Pause; then the next record rings.
func (r *reader) look(t Turn) (next time.Time, err error) {
	taken := r.taken
	if err := r.drain(); err != nil {
		return next, err
	}
	next = t.Now.Add(costEvery)
	if r.taken > taken {
		next = t.Now.Add(r.Pause)
		if r.Follows {
			r.bells.RingAll()
		}
	}
	if r.handler.Look != nil {
		due, err := r.handler.Look(t.Until)
		if err != nil {
			return next, err
		}
		next = sooner(next, due)
	}
	if t.Now.Sub(r.told) >= secondEvery {
		r.told = t.Now
		if r.handler.Second != nil {
			r.handler.Second(t.Now)
		}
		r.tellLost()
	}
	if t.Now.Sub(r.costed) >= costEvery {
		if !r.costed.IsZero() {
			r.tellCost(t)
		}
		r.costed = t.Now
	}
	if r.Follows {
		next = sooner(next, r.programs.cost.measure(t.Until))
	}
	return next, nil
}

// sooner is the earlier of two times, of which zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// end takes what is left.
func (r *reader) end(t Turn) error {
	err := r.drain()
	if err == nil && r.handler.End != nil {
		err = r.handler.End()
	}
	r.tellLost()
	r.tellCost(t)
	return err
}

// drain takes the records that are there.
func (r *reader) drain() error {
	ring := r.programs.ring
	if ring == nil || ring.AvailableBytes() == 0 {
		return nil
	}
	ring.SetDeadline(time.Unix(1, 0)) // never wait
	for {
		err := ring.ReadInto(&r.programs.record)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, ringbuf.ErrFlushed):
			return nil
		case err != nil:
			return fmt.Errorf("read the eBPF ring: %w", err)
		}
		r.taken++
		if !r.handler.Take(r.programs.record.RawSample) {
			r.bad++
		}
	}
}

// tellLost writes what found no room.
func (r *reader) tellLost() {
	for _, d := range r.Drops {
		r.programs.Lost(d.Table, d.Reason, r.programs.Counter(d.Variable, d.Index))
	}
	r.programs.Lost(r.Table, "events of the "+r.Probe+" probe could not be decoded", r.bad)
}

func (r *reader) tellCost(t Turn) {
	runs := r.taken
	if r.handler.Runs != nil {
		runs = r.handler.Runs()
	}
	r.programs.rows.Append(r.programs.overhead(r.Probe, t, runs))
}
