package looptime

import (
	"sort"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// mostLooks at a process are kept; of more every second one.
const mostLooks = 128

// looks is what /proc said of one process, from time to time.
type looks struct {
	stride, n int
	all       []look
	last      look // of all of them
}

// look is what a process had used up by a time, ns and bytes.
type look struct {
	at               int64
	cpu, main, delay int64
	read             int64
	timed            bool // main and delay are known
	counted          bool // read is
}

func (p *partRows) look(r *traces.Memory) {
	l := p.looks[r.Proc]
	if l == nil {
		l = &looks{stride: 1}
		p.looks[r.Proc] = l
	}
	if l.n > 0 && r.TsNS <= l.last.at {
		return // of a damaged trace
	}
	l.n++
	l.last = look{at: r.TsNS, cpu: r.CPUNS, main: r.MainNS, delay: r.DelayNS, read: max(r.ReadBytes, 0),
		timed: r.MainNS > 0, counted: r.ReadBytes >= 0}
	if l.n%l.stride != 0 {
		return
	}
	l.all = append(l.all, l.last)
	if len(l.all) > mostLooks {
		l.stride *= 2
		for i := range len(l.all) / 2 {
			l.all[i] = l.all[2*i+1]
		}
		l.all = l.all[:len(l.all)/2]
	}
}

// Use is what processes used in some time, added up.
type Use struct {
	Wall  int64 // ns, of each process that was looked at, added up
	CPU   int64 // ns, of all their threads
	Main  int64 // ns, of the threads that they began with
	Delay int64 // ns, for which these waited for a processor
	Read  int64 // bytes, from disks
	Timed bool  // Main and Delay are known
}

func (u *Use) add(o Use) {
	u.Timed = (u.Timed || u.Wall == 0) && o.Timed
	u.Wall += o.Wall
	u.CPU += o.CPU
	u.Main += o.Main
	u.Delay += o.Delay
	u.Read += o.Read
}

// between is what a process used from one time to another, as far as it was looked
// at; ok is false if that is less than half of it.
func (p *partRows) between(proc *timeline.Process, from, to int64) (u Use, ok bool) {
	l := p.looks[proc.Proc]
	if l == nil || to <= from {
		return u, false
	}
	all := l.all
	if proc.Kind == "worker" && len(all) > 0 && proc.Begin < all[0].at { // it began with nothing
		all = append([]look{{at: proc.Begin, timed: all[0].timed, counted: all[0].counted}}, all...)
	}
	if len(all) < 2 {
		return u, false
	}
	a, b := max(from, all[0].at), min(to, all[len(all)-1].at)
	if 2*(b-a) < to-from {
		return u, false
	}
	x, y := at(all, a), at(all, b)
	return Use{Wall: b - a, CPU: y.cpu - x.cpu, Main: y.main - x.main, Delay: y.delay - x.delay, Read: y.read - x.read,
		Timed: x.timed && y.timed}, true
}

// at is what had been used by a time, which is not outside of the looks.
func at(all []look, t int64) look {
	i := sort.Search(len(all), func(i int) bool { return all[i].at >= t })
	if i == 0 || i == len(all) || all[i].at == t {
		return all[min(i, len(all)-1)]
	}
	x, y := all[i-1], all[i]
	part := float64(t-x.at) / float64(y.at-x.at)
	mid := func(a, b int64) int64 { return a + int64(part*float64(b-a)) }
	return look{at: t, cpu: mid(x.cpu, y.cpu), main: mid(x.main, y.main), delay: mid(x.delay, y.delay), read: mid(x.read, y.read),
		timed: x.timed && y.timed, counted: x.counted && y.counted}
}

// Processors is what a run may use of a machine's.
type Processors struct {
	Count     float64 // that it may use; 0: not known
	Group     string  // the control group whose quota that is; "" none
	Online    int     // of the machine; 0 not known
	Stopped   float64 // share of the quota's periods in which it was used up; <0: not known, or no quota
	StoppedNS int64   // for how long the group was stopped in all, ns; <0 not known
	Idle      float64 // of the machine's, on average over the recording; <0 not known
	Run       float64 // that the run's processes used, on average over the recording
	Others    float64 // that other programs used, likewise; <0 not known
	Rows      []uint64

	Accelerators string // that the machine has: none, or their kinds; "" not known
}

func (p *partRows) processorsOf() Processors {
	out := Processors{Count: float64(p.host.CPUs), Stopped: -1, StoppedNS: -1, Idle: -1, Others: -1,
		Accelerators: p.host.Accelerators}
	if len(p.cpu) == 0 {
		return out
	}
	a, b := p.cpu[0], p.cpu[len(p.cpu)-1]
	if b.Processors > 0 {
		out.Count = float64(b.Processors) / 1000
	}
	out.Group, out.Online = b.Path, int(b.Online)
	out.Rows = []uint64{a.Seq, b.Seq}
	if n := b.Periods - a.Periods; a.Periods >= 0 && n > 0 {
		out.Stopped = float64(b.Throttled-a.Throttled) / float64(n)
	}
	if a.ThrottledNS >= 0 && b.ThrottledNS >= 0 {
		out.StoppedNS = b.ThrottledNS - a.ThrottledNS
	}
	if b.TsNS > a.TsNS && a.IdleNS > 0 {
		wall := float64(b.TsNS - a.TsNS)
		out.Idle = float64(b.IdleNS-a.IdleNS) / wall
		out.Run = float64(p.used()) / wall
		out.Others = max(float64(b.Online)-out.Idle-out.Run, 0)
	}
	return out
}

// used is the CPU time of all processes of the part, as far as it is known: what is
// recorded begins with nothing.
func (p *partRows) used() (ns int64) {
	for _, l := range p.looks {
		ns += l.last.cpu
	}
	for k, cpu := range p.ended {
		if p.looks[k.proc] == nil {
			ns += cpu
		}
	}
	return ns
}
