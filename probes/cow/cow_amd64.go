package cow

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/probe"
)

const (
	// Between two looks at the kernel's counts: this long, or so long that
	// looking is a hundredth of the time.
	lookEvery = time.Second
	lookShare = 0.01
)

// watcher holds what the programs count, and hands it on.
type watcher struct {
	*probe.Recording
	blocks   *ebpf.Map
	procs    map[uint32]*process // by the ID of the kernel side
	finished map[uint32]bool
	parents  map[uint32]forker // what they had mapped when they forked last
	next     time.Time         // of look
	keys     []cowBlock        // for read
	values   []cowPages
}

var kernelSide = probe.KernelSide{
	Probe: "cow",
	Load:  loadCow,
	Table: "cow",
	Drops: []probe.Drop{
		{Variable: cowVarLostBlocks, Table: "cow", Reason: "the map of 2 MiB blocks was full: where these pages are is not known"},
	},
	Open: open,
}

func start(r *probe.Recording) (probe.Watch, error) { return kernelSide.Start(r) }

func open(r *probe.Recording, p *probe.Programs) probe.Handler {
	w := &watcher{Recording: r, blocks: p.Maps[cowMapBlocks], procs: map[uint32]*process{}, finished: map[uint32]bool{},
		parents: map[uint32]forker{}}
	// One run of a program for each page fault of the run's processes.
	return probe.Handler{Look: w.tick, Runs: r.Tree.Faults, End: w.end}
}

func (w *watcher) tick(now time.Time) error {
	w.welcome()
	if now.Before(w.next) {
		return nil
	}
	before := probe.ThreadCPU()
	err := w.look(now)
	w.next = now.Add(max(lookEvery, time.Duration(float64(probe.ThreadCPU()-before)/lookShare)))
	return err
}

func (w *watcher) end() error {
	err := w.look(time.Now())
	w.tellAll()
	return err
}

// welcome reads the mappings of processes that are new, or of their parents.
func (w *watcher) welcome() {
	for _, r := range w.Tree.All() {
		if r.Inherit && w.procs[r.ID] == nil && !w.finished[r.ID] {
			w.of(r)
		}
	}
}

// look takes over what the kernel has counted, and writes what is due. A
// process is finished with only if its end was known before its counts were
// read: nothing can be added to them then.
func (w *watcher) look(now time.Time) error {
	nodes := map[uint32]probe.Node{}
	for _, r := range w.Tree.All() {
		nodes[r.ID] = r
	}
	var spent []cowBlock
	err := w.read(func(b cowBlock, n cowPages) {
		r, ok := nodes[b.Id]
		switch {
		case !ok: // its fork is still in the ring
			return
		case !r.Inherit: // it has called exec: what it copied before is gone
			spent = append(spent, b)
			return
		case !r.Ended.IsZero():
			spent = append(spent, b)
		}
		w.of(r).count(b.Number, n)
	})
	if err != nil {
		return err
	}
	for _, r := range nodes {
		p := w.procs[r.ID]
		switch {
		case !r.Ended.IsZero():
			w.finish(r)
		case p != nil && !r.Inherit:
			delete(w.procs, r.ID)
		case p != nil && p.due(now):
			w.tell(p, r, now, false)
		}
	}
	if len(spent) > 0 {
		// A key that is gone already would end the batch; none is: we alone delete.
		if _, err := w.blocks.BatchDelete(spent, nil); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("free the counts of ended processes: %w", err)
		}
	}
	for id := range w.finished {
		if _, ok := nodes[id]; !ok {
			delete(w.finished, id)
			delete(w.parents, id)
		}
	}
	return nil
}

// read calls f with all counts that the kernel holds.
func (w *watcher) read(f func(cowBlock, cowPages)) error {
	if w.keys == nil {
		const batch = 4096 // looking each up alone takes ten times as long: 230 ms against 20 for 60,000
		w.keys, w.values = make([]cowBlock, batch), make([]cowPages, batch)
	}
	var cursor ebpf.MapBatchCursor
	for {
		n, err := w.blocks.BatchLookup(&cursor, w.keys, w.values, nil)
		for i := range n {
			f(w.keys[i], w.values[i])
		}
		switch {
		case errors.Is(err, ebpf.ErrKeyNotExist): // the end
			return nil
		case err != nil:
			return fmt.Errorf("read the counts of copied pages: %w", err)
		}
	}
}
