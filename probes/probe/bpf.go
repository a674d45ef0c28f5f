package probe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/traces"
)

// Programs is the loaded and attached eBPF programs of one probe. It must stay
// reachable while they shall run: cilium/ebpf closes a link that nobody holds
// when the garbage collector finds it.
type Programs struct {
	*ebpf.Collection
	links []link.Link
	cost  programCost
}

// Attach loads what a specification holds, with some maps taken from
// elsewhere, and attaches each program where its section says.
func Attach(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map) (*Programs, error) {
	// Before 5.11 maps count against it; where it may not be raised, loading says
	// so. (The package rlimit of cilium/ebpf calls bpf(2) when it is imported.)
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: shared})
	if err != nil {
		return nil, fmt.Errorf("load eBPF: %w", err)
	}
	p := &Programs{Collection: c}
	for name, program := range c.Programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("attach %s: %w", name, err)
		}
		p.links = append(p.links, l)
	}
	return p, nil
}

// Close detaches the programs and frees the maps.
func (p *Programs) Close() {
	for _, l := range p.links {
		_ = l.Close() // a descriptor: the kernel detaches when it is gone
	}
	p.cost.stop()
	p.Collection.Close()
}

// Counter reads a global counter of the programs, or an array of them. into
// stays as it is if there is none of that name.
func (p *Programs) Counter(name string, into any) {
	if v := p.Variables[name]; v != nil {
		_ = v.Get(into) // of the right size: bpf2go has checked it
	}
}

// Drain calls f with each record of a ring that is there, and waits for more
// until a deadline. The programs do not wake us up for each of them.
func Drain(r *ringbuf.Reader, until time.Time, f func([]byte)) error {
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
		f(rec.RawSample)
	}
}

// Losses turns counters that only grow into rows of the table lost.
type Losses struct{ told map[string]uint64 }

// Tell writes how much more was lost since the last time.
func (l *Losses) Tell(rows Rows, table, reason string, total uint64) {
	if l.told == nil {
		l.told = map[string]uint64{}
	}
	if n := total - l.told[table+reason]; n > 0 {
		rows.Append(traces.Lost{Head: traces.Head{TsNS: Now()}, Source: "kernel", Table: table, Count: n, Reason: reason})
		l.told[table+reason] = total
	}
}

// programCost is how long a run of the programs takes: now and then the kernel
// takes the time, which itself costs some.
type programCost struct {
	stats   io.Closer // open while it does
	next    time.Time // to begin or to end
	refused bool
}

const (
	measureFirst = 200 * time.Millisecond
	measureFor   = 100 * time.Millisecond
	measureEvery = 10 * time.Second // to begin and to cease interrupts all CPUs
)

func (c *programCost) stop() {
	if c.stats != nil {
		_ = c.stats.Close()
		c.stats = nil
	}
}

// Measure lets the kernel begin and cease to take the time of the programs. It
// is called ten times a second.
func (p *Programs) Measure(now time.Time) {
	c := &p.cost
	switch {
	case c.next.IsZero():
		c.next = now.Add(measureFirst)
	case c.refused || now.Before(c.next):
	case c.stats != nil:
		c.stop()
		c.next = now.Add(measureEvery - measureFor)
	default:
		stats, err := ebpf.EnableStats(bpfStatsRunTime)
		if err != nil { // CAP_SYS_ADMIN is missing: what the programs cost remains unknown
			c.refused = true
			return
		}
		c.stats, c.next = stats, now.Add(measureFor)
	}
}

// bpfStatsRunTime is BPF_STATS_RUN_TIME of include/uapi/linux/bpf.h.
const bpfStatsRunTime = 0

// Cost is what a probe has cost so far: the CPU time of its own thread, and that
// of its programs for so many runs. The kernel's own count has those for all
// processes of the machine in it.
func (p *Programs) Cost(name string, cpu time.Duration, runs uint64) traces.Overhead {
	row := traces.Overhead{Head: traces.Head{TsNS: Now()}, Probe: name, CPUNS: int64(cpu)}
	var taken time.Duration
	var measured uint64
	for _, program := range p.Programs {
		if s, err := program.Stats(); err == nil {
			taken += s.Runtime
			measured += s.RunCount
		}
	}
	if measured > 0 {
		row.BpfRuns = runs
		row.BpfNS = int64(float64(taken) / float64(measured) * float64(runs))
	}
	return row
}
