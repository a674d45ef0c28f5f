package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

const (
	// patience is how long work may take before anything is said of it.
	patience = time.Second
	// refresh is the time between two looks at it, and mostOften what is at least between two that are drawn.
	refresh   = time.Second / 4
	mostOften = time.Second / 5
	// eraseLine is "go to the begin of the line, and erase it".
	eraseLine = "\r\x1b[K"
)

// progressLine is one line on a terminal that says how far work is. Where nothing can be said,
// it is nil or has nowhere to write.
type progressLine struct {
	mu      sync.Mutex
	to      io.Writer // nil: no terminal
	columns int
	begun   time.Time
	last    time.Time // when it was drawn
	shown   bool
	what    func() string
	stop    chan struct{}
}

// newProgressLine is one on stderr, if that is a terminal whose lines can be drawn anew.
func newProgressLine(stderr io.Writer, quiet bool) *progressLine {
	l := &progressLine{begun: time.Now(), stop: make(chan struct{})}
	columns, ok := terminal(stderr)
	if quiet || !ok || os.Getenv("TERM") == "dumb" {
		return l
	}
	if columns <= 1 { // not told
		columns = 80
	}
	l.to, l.columns = stderr, columns
	go func() {
		ticks := time.NewTicker(refresh)
		defer ticks.Stop()
		for {
			select {
			case <-l.stop:
				return
			case now := <-ticks.C:
				l.tick(now)
			}
		}
	}()
	return l
}

// now is what is worked at from here on.
func (l *progressLine) now(what func() string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what = what
}

// tick draws the line, if it is time to.
func (l *progressLine) tick(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.to == nil || l.what == nil || now.Sub(l.begun) < patience || now.Sub(l.last) < mostOften {
		return
	}
	l.last, l.shown = now, true
	text := []rune("dptrace: " + words.Printable(l.what()))
	fmt.Fprint(l.to, eraseLine+string(text[:min(len(text), l.columns-1)])) // a full line would begin another one
}

// close erases the line. Nothing is drawn afterwards.
func (l *progressLine) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown {
		fmt.Fprint(l.to, eraseLine)
	}
	if l.to != nil {
		close(l.stop)
	}
	l.to, l.shown = nil, false
}

func howFarRead(p *traces.Progress) string {
	read, all := p.Bytes()
	switch {
	case all == 0:
		return "reading"
	case read >= all*999/1000: // what a segment holds besides rows is not counted
		return "judging what was read"
	}
	return fmt.Sprintf("reading, %d %% of %s", 100*read/all, words.Bytes(all))
}

func howFarWritten(name string, n int64) string {
	return fmt.Sprintf("writing %s, %s so far", name, words.Bytes(n))
}

// counted counts what is written.
type counted struct {
	to io.Writer
	n  atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.n.Add(int64(n))
	return n, err
}
