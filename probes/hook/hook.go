// Package hook drains what the Python hook writes: the rings of
// shim/PROTOCOL.md. Records are decoded here; what leaves the package are rows
// of the trace.
package hook

import (
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
	beatEvery = 2 * time.Second  // a fifth of what makes the hook give up
	costEvery = 10 * time.Second // overhead rows

	remember = 30 * time.Second

	quiet = time.Second / 2 // without records, after which a process may have ended

	maxFiles   = 20_000 // in the spool that are looked at
	maxIgnored = 1000   // files that are no rings, from which on no more are looked for

	strikes = 3 // looks at the same damage before a ring is given up: the hook may be in the middle of a store
)

type reader struct {
	*probe.Recording
	dir     int // descriptor of the spool
	notices *notices
	rings   map[string]*source
	ignored map[string]bool // files that are no rings, damaged ones, and those that could not be removed
	sources sources
	buf     []byte
	listed  time.Time // of the spool
	noticed time.Time // that there was something new in it
	unmade  bool      // a ring has no header yet
	looked  time.Time
	pause   time.Duration // between two looks
	ending  bool          // the target has ended
	until   time.Time     // then: how long the processes that live on are waited for
	rung    bool          // a process may have
	unseen  []*source     // ended

	searched int // bytes of source
}

func start(r *probe.Recording) (probe.Watch, error) {
	d, err := open(r)
	if err != nil {
		return probe.Watch{}, err
	}
	return d.watching(), nil
}

func open(r *probe.Recording) (*reader, error) {
	dir, err := unix.Open(r.Spool, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open spool %s: %w", r.Spool, err)
	}
	return &reader{Recording: r, dir: dir, notices: notice(r.Spool, r.Bells), rings: map[string]*source{}, ignored: map[string]bool{},
		sources: sources{}, pause: bellless}, nil
}

func (d *reader) watching() probe.Watch {
	return probe.Watch{Look: d.turn, Calm: func() bool { return len(d.rings) == 0 }, End: d.end, Close: d.close}
}

// turn is a look, and when the next one is due.
func (d *reader) turn(t probe.Turn) (next time.Time, err error) {
	if d.rung = t.Rung; t.Ending && !d.ending {
		d.ending, d.until = true, t.Now.Add(probe.Grace)
	}
	d.look(t.Now)
	return t.Now.Add(d.pause), nil
}

// end leaves the processes that live on.
func (d *reader) end(probe.Turn) error {
	for _, s := range d.rings {
		d.leave(s)
	}
	return nil
}

func (d *reader) close() {
	d.notices.close()
	_ = unix.Close(d.dir)
}

// look takes what is new in all rings.
func (d *reader) look(now time.Time) {
	if d.notices.taken() {
		d.listed, d.noticed = time.Time{}, now
	}
	d.list(now)
	d.forget(now)
	since := max(now.Sub(d.looked), time.Millisecond)
	d.looked = now
	fastest, bells := 0.0, d.notices != nil
	for _, s := range d.rings {
		// Who lives on could write for ever; what the others have left has an end.
		if d.late() && !s.ended() {
			continue
		}
		bells = bells && s.bell > 0 && s.bell <= s.capacity/2
		fastest = max(fastest, d.tend(s, now)/since.Seconds())
	}
	if d.pause = pause(fastest, bells); d.unmade && now.Sub(d.noticed) < time.Second {
		d.pause = min(d.pause, unmadePause)
	}
}

// late reports whether those that live on have had their time.
func (d *reader) late() bool { return d.ending && time.Now().After(d.until) }

// filesIn are the names in a folder, found again by its descriptor.
func filesIn(dir int) []string {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), "spool")
	defer func() { _ = f.Close() }()
	names, _ := f.Readdirnames(maxFiles) // as many as there are
	return names
}

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
	d.listed, d.unmade = now, false
	for _, name := range filesIn(d.dir) {
		if len(d.ignored) >= maxIgnored {
			return
		}
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
			d.listed, d.unmade = time.Time{}, true // look again
		case err != nil:
			d.ignored[name] = true
			d.Rows.Append(traces.Lost{Head: traces.Head{TsNS: probe.Now()}, Source: "hook", Count: 1, Reason: err.Error()})
		default:
			d.rings[name] = d.open(r)
		}
	}
}
