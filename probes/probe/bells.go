package probe

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Bells is what can wake the recorder before its time: descriptors that become
// readable when there is something to look at. nil is none: the next look comes
// by the clock.
type Bells struct {
	epoll int
	owner int // the watch whose descriptors are hung up now
	rung  []unix.EpollEvent
	all   bool // what one probe has seen is news to the others
}

func newBells() (*Bells, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create: %w", err)
	}
	return &Bells{epoll: epoll, rung: make([]unix.EpollEvent, 64)}, nil
}

// Hang makes a descriptor wake the probe that calls it, from its Start or Look,
// each time that something new comes. It hangs there until it is closed.
func (b *Bells) Hang(fd int) error {
	if b == nil {
		return nil
	}
	// By edges: what is left unread rings no second time.
	event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(fd), Pad: int32(b.owner)}
	if err := unix.EpollCtl(b.epoll, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// RingAll makes all probes look: the one that calls it has seen processes begin or
// end.
func (b *Bells) RingAll() {
	if b != nil {
		b.all = true
	}
}

// wait sleeps until a bell rings or the time has come, and calls ring with the
// owner of each bell that rang.
func (b *Bells) wait(until time.Time, ring func(owner int)) {
	pause := max(time.Until(until), 0)
	// Rounded up: a moment too early is a wake-up for nothing.
	n, err := unix.EpollWait(b.epoll, b.rung, int((pause+time.Millisecond-1)/time.Millisecond))
	if err != nil && !errors.Is(err, unix.EINTR) { // not possible with a descriptor of epoll; do not spin on what is
		time.Sleep(min(pause, time.Second))
	}
	for i := range max(n, 0) {
		ring(int(b.rung[i].Pad))
	}
}

func (b *Bells) close() { _ = unix.Close(b.epoll) }
