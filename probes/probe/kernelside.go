package probe

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/traces"
)

// KernelSide is what makes a probe of the kernel tier differ from the others. Its
// Start is the probe's: what all of them do lies here, in reader.go and in cost.go.
type KernelSide struct {
	Probe string // its name
	Load  func() (*ebpf.CollectionSpec, error)
	// Prepare sets the programs up for a recording, before they are loaded; nil:
	// there is nothing to set.
	Prepare func(spec *ebpf.CollectionSpec, r *Recording) error
	// Behind is where the programs go in place of being attached: another probe's
	// goes on to them, whose time theirs is part of. nil: they are attached.
	Behind func(r *Recording) *ebpf.Map
	// Attach attaches the programs that are no tracepoints; nil: each is attached
	// where its section says.
	Attach func(p *Programs) error
	Ring   string // the map that hands over records; "": the programs only count
	// Pause is how long a record may lie in the ring. The first one after such a
	// time without any rings a bell: the programs see to that.
	Pause time.Duration
	Table string // of the rows that are made of them
	Drops []Drop
	// Follows is set in the one probe that follows the processes of the run. The
	// others count for the processes in its map, and so come After it.
	Follows bool
	Open    func(r *Recording, p *Programs) Handler
}

// Drop is a counter of the programs: of what found no room.
type Drop struct {
	Variable string
	Index    int // if it is an array
	Table    string
	Reason   string
}

// Handler is what a probe makes of what its programs saw. What is nil is left out.
type Handler struct {
	Take   func(record []byte) bool                        // one of the ring's; reports whether it could be decoded
	Look   func(now time.Time) (next time.Time, err error) // after the records that were there; next as Watch.Look's
	Second func(now time.Time)                             // once a second, or later where nothing happens
	Runs   func() uint64                                   // of the programs for the run's processes so far; nil: one for each record
	// End is called after the last record, when the target has ended and the
	// process tree is complete.
	End func() error
}

// processMap is the map of bpf/procs.h: the processes of the run.
const processMap = "procs"

// Start loads and attaches the programs.
func (k *KernelSide) Start(r *Recording) (Watch, error) {
	spec, err := k.Load()
	if err != nil {
		return Watch{}, fmt.Errorf("read the eBPF object: %w", err)
	}
	if k.Prepare != nil {
		if err := k.Prepare(spec, r); err != nil {
			return Watch{}, err
		}
	}
	shared := map[string]*ebpf.Map{}
	if !k.Follows {
		if r.Descendants == nil { // a map of its own would stay empty
			return Watch{}, errors.New("the probe that follows the processes did not start")
		}
		shared[processMap] = r.Descendants
	}
	p, err := load(spec, shared, r.KernelTypes)
	if err != nil {
		return Watch{}, err
	}
	switch {
	case k.Behind != nil:
		err = p.follow(k.Behind(r))
	case k.Attach != nil:
		err = k.Attach(p)
	default:
		err = p.attach(spec)
	}
	if err != nil {
		p.close()
		return Watch{}, err
	}
	p.rows = r.Rows
	if k.Ring != "" {
		if err := p.openRing(k.Ring, r.Bells); err != nil {
			p.close()
			return Watch{}, err
		}
	}
	if k.Follows {
		r.Descendants, r.Tree = p.Maps[processMap], NewTree()
	}
	l := &reader{KernelSide: k, programs: p, tree: r.Tree, handler: k.Open(r, p), bells: r.Bells}
	watch := Watch{Look: l.look, End: l.end, Close: p.close}
	if k.Follows {
		watch.Calm = r.Tree.ended
	}
	return watch, nil
}

// openRing begins to read a ring. It is looked at by the clock, and when the
// programs ring for what cannot wait.
func (p *Programs) openRing(name string, bells *Bells) error {
	m := p.Maps[name]
	var err error
	if p.ring, err = ringbuf.NewReader(m); err != nil {
		return fmt.Errorf("open the eBPF ring: %w", err)
	}
	if err := bells.Hang(m.FD()); err != nil {
		return fmt.Errorf("watch the eBPF ring: %w", err)
	}
	return nil
}

// Programs is the loaded and attached eBPF programs of one probe. It must stay
// reachable while they shall run: cilium/ebpf closes a link that nobody holds
// when the garbage collector finds it.
type Programs struct {
	*ebpf.Collection
	links  []link.Link
	ring   *ringbuf.Reader // nil: they only count
	record ringbuf.Record
	rows   Rows
	told   map[string]uint64 // losses, by table and reason
	cost   programCost
}

// load loads what a specification holds, with some maps taken from elsewhere.
func load(spec *ebpf.CollectionSpec, shared map[string]*ebpf.Map, kernel *KernelBTF) (*Programs, error) {
	types, err := kernel.Of(spec.Types)
	if err != nil {
		return nil, err
	}
	if !allocates() {
		Preallocate(spec)
	}
	// Before 5.11 maps count against it; where it may not be raised, loading says
	// so. (The package rlimit of cilium/ebpf calls bpf(2) when it is imported.)
	_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: shared,
		Programs: ebpf.ProgramOptions{KernelTypes: types}})
	if err != nil {
		return nil, fmt.Errorf("load eBPF: %w", err)
	}
	return &Programs{Collection: c, told: map[string]uint64{}}, nil
}

// allocates reports whether programs may have memory allocated for a map's element wherever
// they run, as since Linux 6.1. Before, that is kmalloc, which may wake up a thread of the
// kernel: in sched_switch, under the lock that this takes. (kernel/bpf/memalloc.c;
// check_map_prog_compatibility of kernel/bpf/verifier.c warns of it.) A distribution that has
// it in an older kernel loses nothing but memory.
var allocates = sync.OnceValue(func() bool {
	var u unix.Utsname
	var major, minor int
	if unix.Uname(&u) != nil {
		return false
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 6 || major == 6 && minor >= 1
})

// preallocated is how many elements a map has room for whose memory is taken as it is made.
const preallocated = 16384

// Preallocate has the maps of programs take all of their memory as they are made.
func Preallocate(spec *ebpf.CollectionSpec) {
	for _, m := range spec.Maps {
		if m.Flags&unix.BPF_F_NO_PREALLOC != 0 {
			m.Flags &^= unix.BPF_F_NO_PREALLOC
			m.MaxEntries = min(m.MaxEntries, preallocated)
		}
	}
}

// attach attaches each program to the tracepoint that its section names.
func (p *Programs) attach(spec *ebpf.CollectionSpec) error {
	for name, program := range p.Programs {
		l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: spec.Programs[name].AttachTo, Program: program})
		if err != nil {
			return fmt.Errorf("attach %s: %w", name, err)
		}
		p.links = append(p.links, l)
	}
	return nil
}

// Hold keeps a link until the programs are detached.
func (p *Programs) Hold(l link.Link) { p.links = append(p.links, l) }

// follow puts each program into the array from which another one goes on to it.
func (p *Programs) follow(array *ebpf.Map) error {
	for name, program := range p.Programs {
		if err := array.Put(uint32(0), program); err != nil {
			return fmt.Errorf("go on to %s: %w", name, err)
		}
	}
	return nil
}

// close detaches the programs and frees the maps.
func (p *Programs) close() {
	if p.ring != nil {
		_ = p.ring.Close()
	}
	for _, l := range p.links {
		_ = l.Close() // a descriptor: the kernel detaches when it is gone
	}
	p.cost.stop()
	p.Collection.Close()
}

// Counter reads a counter of the programs, which is 64 bits wide or an array of
// such; 0 if there is none of that name.
func (p *Programs) Counter(name string, index int) uint64 {
	v := p.Variables[name]
	if v == nil {
		return 0
	}
	const wide = 8
	all := make([]uint64, v.Size()/wide)
	if index >= len(all) || v.Get(all) != nil {
		return 0
	}
	return all[index]
}

// Lost writes how much more was lost since the last time, of a total that only
// grows.
func (p *Programs) Lost(table, reason string, total uint64) {
	if n := total - p.told[table+reason]; n > 0 {
		p.rows.Append(traces.Lost{Head: traces.Head{TsNS: Now()}, Source: "kernel", Table: table, Count: n, Reason: reason})
		p.told[table+reason] = total
	}
}
