// Package hook drains what the Python hook writes: the rings of
// shim/PROTOCOL.md. Records are decoded here; what leaves the package are rows
// of the trace.
package hook

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// Probe is the hook in the Python processes of the run.
var Probe = probe.Probe{
	Name:  "hook",
	Doc:   "loaders, batches, generator states and exceptions, from inside each Python process",
	Tier:  probe.Hook,
	Needs: needs,
	Start: start,
}

const (
	// The pause between two looks at the rings: so short while a ring fills by
	// an eighth in it, so long while hardly anything comes.
	minPause = 5 * time.Millisecond
	maxPause = 100 * time.Millisecond

	beatEvery = time.Second     // a tenth of what makes the hook give up
	costEvery = 5 * time.Second // overhead rows

	// After the target's end its descendants may live on, as daemons do. They
	// get this long to end; what they write later is not recorded.
	grace = time.Second

	remember = 30 * time.Second

	quiet = time.Second / 2 // without records, after which a process may have ended

	strikes = 3 // looks at the same damage before a ring is given up: the hook may be in the middle of a store
)

type reader struct {
	*probe.Recording
	dir     int // descriptor of the spool
	rings   map[string]*source
	ignored map[string]bool // files that are no rings, damaged ones, and those that could not be removed
	sources sources
	buf     []byte
	listed  time.Time // of the spool
	ending  bool      // the target has ended
	until   time.Time // then: how long the processes that live on are waited for
	unseen  []*source // ended

	searched int // bytes of source
}

func start(r *probe.Recording) (probe.Watch, error) {
	dir, err := unix.Open(r.Spool, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open spool %s: %w", r.Spool, err)
	}
	d := &reader{Recording: r, dir: dir, rings: map[string]*source{}, ignored: map[string]bool{}, sources: sources{}}
	return d.watch, nil
}

func (d *reader) watch(ctx context.Context) error {
	defer func() { _ = unix.Close(d.dir) }()
	pause := minPause
	for ctx.Err() == nil {
		pause = d.pause(pause, d.look(time.Now()))
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	d.ending, d.until = true, time.Now().Add(grace)
	for {
		d.look(time.Now())
		if len(d.rings) == 0 || d.late() {
			break
		}
		time.Sleep(minPause)
	}
	for _, s := range d.rings {
		d.leave(s)
	}
	return nil
}

// pause follows the fullest ring: fill is how much of it was new.
func (d *reader) pause(last time.Duration, fill float64) time.Duration {
	switch {
	case fill > 1.0/8:
		last /= 2
	case fill < 1.0/32:
		last += last / 2
	}
	return min(max(last, minPause), maxPause)
}

// look takes what is new in all rings.
func (d *reader) look(now time.Time) (fill float64) {
	d.list(now)
	d.forget(now)
	for _, s := range d.rings {
		// Who lives on could write for ever; what the others have left has an end.
		if d.late() && !s.ended() {
			continue
		}
		fill = max(fill, d.tend(s, now))
	}
	return fill
}

// late reports whether those that live on have had their time.
func (d *reader) late() bool { return d.ending && time.Now().After(d.until) }

// list opens the rings that are new in the spool.
func (d *reader) list(now time.Time) {
	var st unix.Stat_t
	if err := unix.Fstat(d.dir, &st); err != nil {
		return
	}
	// The folder's time is of the kernel's last tick: a file can appear right
	// after a listing and leave it unchanged.
	changed := time.Unix(st.Mtim.Unix())
	if changed.Before(d.listed.Add(-time.Second / 20)) {
		return
	}
	d.listed = now
	entries, err := os.ReadDir(d.Spool)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if d.rings[name] != nil || d.ignored[name] {
			continue
		}
		if strings.HasSuffix(name, ".none") {
			d.withoutRing(name)
			continue
		}
		if !strings.HasSuffix(name, ".ring") {
			continue
		}
		r, err := openRing(d.dir, name)
		switch {
		case errors.Is(err, errNotYet), errors.Is(err, unix.ENOENT):
			d.listed = time.Time{} // look again
		case err != nil:
			d.ignored[name] = true
			d.Rows.Append(traces.Lost{Head: traces.Head{TsNS: probe.Now()}, Source: "hook", Count: 1, Reason: err.Error()})
		default:
			d.rings[name] = d.open(r)
		}
	}
}
