package hook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// Salvaged is what was found in the rings of a recorder that died.
type Salvaged struct {
	Records   int // read
	Processes int // of so many processes
	Left      int // rings of processes that still run
}

// Known is what the trace of a recorder that died says of the run.
type Known struct {
	Processes []traces.Process  // their numbers stay
	Lost      map[uint32]uint64 // records of a process that found no room, as far as that was told
}

// RingFull begins the reason of records that found no room.
const RingFull = "the ring was full"

// Salvage reads the rings in r.Spool, which nobody drains any more.
func Salvage(r *probe.Recording, known Known) (found Salvaged, err error) {
	dir, err := unix.Open(r.Spool, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return found, fmt.Errorf("open spool %s: %w", r.Spool, err)
	}
	defer func() { _ = unix.Close(dir) }()
	d := &reader{Recording: r, dir: dir, rings: map[string]*source{}, ignored: map[string]bool{}, sources: sources{}}
	for _, p := range known.Processes {
		r.Procs.Restore(p.Proc, p.Pid, p.StartTicks)
	}
	names := filesIn(dir)
	slices.Sort(names)
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, ".none"):
			d.withoutRing(name)
		case strings.HasSuffix(name, ".ring"):
			d.salvage(name, known, &found)
		}
	}
	return found, nil
}

// salvage reads one ring to its end, and removes it if its process has ended.
func (d *reader) salvage(name string, known Known, found *Salvaged) {
	ring, err := openRing(d.dir, name)
	if err != nil {
		return // its process has ended before it was made, or it is damaged: there is nothing to take
	}
	s := &source{ring: ring, pid: ring.header.pid}
	s.proc, s.start = d.numberOf(ring, known.Processes)
	s.lostTold = known.Lost[s.proc]
	ended := s.ended()
	records := 0
	for {
		n, buf, err := s.drain(d.buf, func(rec record) {
			if records == 0 { // those before it are the dead recorder's
				s.gaps = 0
			}
			records++
			d.take(s, rec)
		})
		d.buf = buf
		if err != nil {
			d.lost(s, 1, err.Error())
		}
		if n == 0 || err != nil {
			break
		}
	}
	if records > 0 {
		found.Records += records
		found.Processes++
		d.account(s)
	}
	if ended {
		_ = unix.Unlinkat(d.dir, name, 0) // what stays is found empty the next time
	} else {
		found.Left++
	}
	s.close()
}

// numberOf is the number that the dead recorder gave a ring's process, if it has come
// to that, and its start; else a new one.
func (d *reader) numberOf(r *ring, known []traces.Process) (number uint32, start uint64) {
	const soon = int64(1e10) // the first record is written right after the ring is made
	own := slices.DeleteFunc(slices.Clone(known), func(p traces.Process) bool { return p.Pid != r.header.pid })
	slices.SortFunc(own, func(a, b traces.Process) int { return cmp.Compare(a.TsNS, b.TsNS) })
	for _, p := range own {
		if p.Hook == "on" && p.TsNS >= r.startNS && p.TsNS < r.startNS+soon {
			return p.Proc, p.StartTicks
		}
	}
	suspended := probe.BootNow() - probe.Now()
	for _, p := range slices.Backward(own) { // it was seen by others, before its first record was taken
		if p.Hook != "on" && startedBefore(p.StartTicks, r.startNS+suspended) {
			return p.Proc, p.StartTicks
		}
	}
	p := d.Procs.Exec(r.header.pid, 0)
	return p.Number, 0
}
