package cow

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/probe"
)

const (
	tick = 100 * time.Millisecond
	// Between two looks at the kernel's counts: this long, or so long that
	// looking is a hundredth of the time.
	lookEvery = time.Second
	lookShare = 0.01
	costEvery = 5 * time.Second
)

// watcher holds what the programs count, and hands it on.
type watcher struct {
	*probe.Recording
	programs *probe.Programs
	blocks   *ebpf.Map
	procs    map[uint32]*process // by the ID of the kernel side
	finished map[uint32]bool
	parents  map[uint32]forker // what they had mapped when they forked last
	losses   probe.Losses
	began    time.Duration // CPU time of the thread before
	keys     []cowBlock    // for read
	values   []cowPages
}

func start(r *probe.Recording) (probe.Watch, error) {
	if r.Descendants == nil {
		return nil, errors.New("the process probe did not start")
	}
	spec, err := loadCow()
	if err != nil {
		return nil, fmt.Errorf("read the eBPF object: %w", err)
	}
	programs, err := probe.Attach(spec, map[string]*ebpf.Map{cowMapProcs: r.Descendants})
	if err != nil {
		return nil, err
	}
	w := &watcher{Recording: r, programs: programs, blocks: programs.Maps[cowMapBlocks], procs: map[uint32]*process{}, finished: map[uint32]bool{}, parents: map[uint32]forker{}}
	return w.watch, nil
}

func (w *watcher) watch(ctx context.Context) error {
	defer w.programs.Close()
	runtime.LockOSThread() // its CPU time is what looking costs
	defer runtime.UnlockOSThread()
	w.began = probe.ThreadCPU()
	var next, costed time.Time
	for ctx.Err() == nil {
		now := time.Now()
		w.programs.Measure(now)
		if now.Sub(costed) >= costEvery {
			costed = now
			w.cost()
		}
		w.welcome()
		if !now.Before(next) {
			before := probe.ThreadCPU()
			if err := w.look(now); err != nil {
				return err
			}
			next = now.Add(max(lookEvery, time.Duration(float64(probe.ThreadCPU()-before)/lookShare)))
		}
		select {
		case <-ctx.Done():
		case <-time.After(tick):
		}
	}
	<-w.Kin.Complete
	err := w.look(time.Now())
	w.tellAll()
	w.cost()
	return err
}

// cost counts one run of a program for each page fault of the run's processes.
func (w *watcher) cost() {
	w.Rows.Append(w.programs.Cost("cow", probe.ThreadCPU()-w.began, w.Kin.Faults()))
}

// welcome reads the mappings of processes that are new, or of their parents.
func (w *watcher) welcome() {
	for _, r := range w.Kin.All() {
		if r.Inherit && w.procs[r.ID] == nil && !w.finished[r.ID] {
			w.of(r)
		}
	}
}

// look takes over what the kernel has counted, and writes what is due. A
// process is finished with only if its end was known before its counts were
// read: nothing can be added to them then.
func (w *watcher) look(now time.Time) error {
	kin := map[uint32]probe.Relative{}
	for _, r := range w.Kin.All() {
		kin[r.ID] = r
	}
	var spent []cowBlock
	err := w.read(func(b cowBlock, n cowPages) {
		r, ok := kin[b.Id]
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
	for _, r := range kin {
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
		if _, ok := kin[id]; !ok {
			delete(w.finished, id)
			delete(w.parents, id)
		}
	}
	var lost uint64
	w.programs.Counter("lost_blocks", &lost)
	w.losses.Tell(w.Rows, "cow", "the map of 2 MiB blocks was full: where these pages are is not known", lost)
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
