package hook

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

// source is one process: its ring and what was told about it so far.
type source struct {
	*ring
	proc      uint32
	pid       int32
	start     uint64 // 0: not a process that can be seen from here
	handle    *handle
	strikes   int
	bad       uint64 // records that could not be decoded
	lostTold  uint64 // records that found no room, in a Lost row
	badTold   uint64 // and those that could not be decoded
	gaveUp    uint32 // flags of which there is a Lost row
	searched  int    // bytes of source that were read for it
	beaten    time.Time
	costed    time.Time
	lastCost  traces.Overhead
	hookErrs  uint64
	quietFrom time.Time // the last look that found something
	asked     time.Time // whether it has ended
}

// open finds out which process a new ring belongs to.
func (d *reader) open(r *ring) *source {
	s := &source{ring: r, pid: r.header.pid, handle: follow(r.header.pid, d.Bells)} // before its start is read: it is the same process then
	var p probe.Proc
	if st, err := procfs.ReadStat(s.pid); err == nil && !startedAfter(st, r.startNS) && isOwner(st, r) {
		p, _ = d.Procs.Of(s.pid, st.StartTicks)
		if p.Hooked { // its second ring: exec has put another program in its place
			p = d.Procs.Exec(s.pid, st.StartTicks)
		}
	} else {
		s.handle.close()
		s.handle = nil
		p = d.Procs.OfEnded(s.pid)
	}
	s.proc, s.start = p.Number, p.Start
	d.Procs.MarkHooked(s.pid, s.start, false)
	return s
}

// startedAfter reports whether a process is a later one with the pid of the
// ring's. Start times are in ticks of 10 ms, rounded down.
func startedAfter(st procfs.Stat, ringNS int64) bool {
	suspended := probe.BootNow() - probe.Now() // CLOCK_MONOTONIC does not count it
	return !startedBefore(st.StartTicks, ringNS+suspended)
}

func startedBefore(ticks uint64, bootNS int64) bool { return int64(ticks)*int64(procfs.Tick) <= bootNS }

// isOwner reports whether a process is the ring's, and not one that has its pid
// in another pid namespace, as inside of a container that shares our /tmp.
func isOwner(st procfs.Stat, r *ring) bool {
	if st.Ppid == r.ppid && r.ppid != 0 {
		return true
	}
	maps, err := procfs.Read(st.Pid, "maps") // its parent has ended, or never was its parent
	return err == nil && strings.Contains(string(maps), r.name)
}

// ended reports whether nothing can write to the ring any more.
func (s *source) ended() bool {
	if s.flags&flagEnded != 0 {
		return true
	}
	if s.start == 0 { // ended before it was looked at, or its pid is not one of ours
		return unix.Kill(int(s.pid), 0) == unix.ESRCH
	}
	if ended, known := s.handle.ended(); known {
		return ended
	}
	st, err := procfs.ReadStat(s.pid)
	return err != nil || st.StartTicks != s.start || st.Gone()
}

// tend takes what is new in one ring, and gives it back when its process has
// ended. fill is how much of the ring was new.
func (d *reader) tend(s *source, now time.Time) (fill float64) {
	due := d.ending || d.rung || now.Sub(s.quietFrom) > quiet && now.Sub(s.asked) > quiet
	ended := due && s.ended() || s.flags&flagEnded != 0 // asked before reading: what it wrote last is read then
	if due {
		s.asked = now
	}
	n, err := d.drain(s)
	if err == nil && !ended && s.flags&flagEnded != 0 { // its head may have been read before it was set
		ended = true
		var more int
		more, err = d.drain(s)
		n += more
	}
	if n > 0 {
		s.quietFrom = now
		s.strikes = 0
	}
	if err != nil {
		if s.strikes++; s.strikes >= strikes || ended {
			d.giveUp(s, err)
			return 0
		}
	}
	if now.Sub(s.beaten) >= beatEvery {
		s.beat(probe.Now())
		s.beaten = now
	}
	if now.Sub(s.costed) >= costEvery {
		d.account(s)
		s.costed = now
	}
	if ended && err == nil && s.tail == s.head {
		d.finish(s)
	}
	return float64(n) / float64(s.capacity)
}

func (d *reader) drain(s *source) (n int, err error) {
	n, d.buf, err = s.drain(d.buf, func(r record) { d.take(s, r) })
	return n, err
}

// finish ends a ring whose process has: its space is free again.
func (d *reader) finish(s *source) {
	d.account(s)
	d.Pythons.Remove(s.pid)
	s.close()
	s.handle.close()
	if err := unix.Unlinkat(d.dir, s.name, 0); err != nil {
		d.ignored[s.name] = true
	}
	delete(d.rings, s.name)
	if s.start == 0 { // procfs, which forgets the others, never saw it
		d.unseen = append(d.unseen, s)
	}
}

// forget drops the processes that nobody saw alive, once their parents have had
// the time to tell their exit codes.
func (d *reader) forget(now time.Time) {
	for len(d.unseen) > 0 && now.Sub(d.unseen[0].quietFrom) > remember {
		d.Procs.Forget(d.unseen[0].pid, 0)
		d.unseen = d.unseen[1:]
	}
}

// giveUp leaves a ring whose contents cannot be.
func (d *reader) giveUp(s *source, err error) {
	d.lost(s, 1, err.Error())
	d.finish(s)
}

// withoutRing tells of a process that had no room for its ring, by the file that
// it left in its place: PID.NS.ERRNO.none.
func (d *reader) withoutRing(name string) {
	var pid int32
	var ns int64
	var number int
	reason := "the hook could not make its ring"
	if n, _ := fmt.Sscanf(name, "%d.%d.%d.none", &pid, &ns, &number); n == 3 && number > 0 {
		reason += ": " + unix.Errno(number).Error()
	}
	head := traces.Head{TsNS: probe.Now()}
	if p, ok := d.Procs.ByPid(pid); ok {
		head.Proc = p.Number
	}
	d.Rows.Append(traces.Lost{Head: head, Source: "hook", Reason: reason + "; what the process did is not recorded"})
	if err := unix.Unlinkat(d.dir, name, 0); err != nil {
		d.ignored[name] = true
	}
}

// leave ends a ring whose process lives on after the recording.
func (d *reader) leave(s *source) {
	d.Rows.Append(traces.Process{Head: d.head(s), Pid: s.pid, StartTicks: s.start, Rank: -1, LocalRank: -1,
		Note: "it was still running when the recording ended"})
	d.finish(s)
}

// account writes what recording has cost the process, and what was lost.
func (d *reader) account(s *source) {
	now := traces.Overhead{HookNS: int64(s.hookNS), Calls: s.calls, Records: s.records}
	if now != s.lastCost {
		s.lastCost = now
		now.Head = d.head(s)
		d.Rows.Append(now)
	}
	if lost := s.lost(); lost > s.lostTold {
		reason := RingFull
		if s.flags&flagUnread != 0 {
			reason += ", as the recorder had not looked for 10 s"
		}
		d.lost(s, lost-s.lostTold, reason)
		s.lostTold = lost
	}
	if s.bad > s.badTold {
		d.lost(s, s.bad-s.badTold, "records could not be decoded")
		s.badTold = s.bad
	}
	for _, end := range ends {
		if s.flags&^s.gaveUp&end.flag != 0 {
			d.lost(s, 0, end.reason)
			s.gaveUp |= end.flag
		}
	}
}

// ends are what makes a hook write no more, by the flags of its ring. How much
// is missing nobody knows.
var ends = []struct {
	flag   uint32
	reason string
}{
	{flagErrors, "the hook gave up after errors of its own; what the process did from then on is not recorded"},
}

func (d *reader) lost(s *source, count uint64, reason string) {
	d.Rows.Append(traces.Lost{Head: d.head(s), Source: "hook", Count: count, Reason: reason})
}

func (d *reader) head(s *source) traces.Head { return traces.Head{TsNS: probe.Now(), Proc: s.proc} }
