package cow

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

const (
	// Between two looks at the kernel's counts: this long, or so long that
	// looking is no more than this share of the time, but no longer than that.
	// Going through the map takes 1 ms where it is empty.
	lookEvery = time.Second
	lookShare = 0.001
	lookLimit = 10 * time.Second
)

// watcher holds what the programs count, and hands it on.
type watcher struct {
	*probe.Recording
	blocks   *ebpf.Map
	changed  *ebpf.Variable      // not 0: so are the counts
	known    uint64              // probe.Tree.Changes of the last welcome
	procs    map[uint32]*process // by the ID of the kernel side
	finished map[uint32]bool
	parents  map[uint32]forker // what they had mapped when they forked last
	next     time.Time         // of look
	batches  probe.Batches[cowBlock, cowPages]
	sites    *probe.Sites
	places   probe.Batches[cowPyStack, cowPySite]
	seen     map[uint32]uint32 // of each site, as it was told last
	programs *probe.Programs
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
	w := &watcher{Recording: r, blocks: p.Maps[cowMapBlocks], changed: p.Variables[cowVarChanged],
		batches: probe.Batches[cowBlock, cowPages]{N: 4096}, places: probe.Batches[cowPyStack, cowPySite]{N: 256},
		procs: map[uint32]*process{}, finished: map[uint32]bool{},
		parents: map[uint32]forker{}, sites: &probe.Sites{Recording: r, Map: p.Maps[cowMapPythons]}, seen: map[uint32]uint32{}, programs: p}
	w.sites.Follow()
	// One run of a program for each page fault of the run's processes.
	return probe.Handler{Look: w.tick, Runs: r.Tree.Faults, End: w.end}
}

func (w *watcher) tick(now time.Time) (next time.Time, err error) {
	w.welcome()
	if now.Before(w.next) {
		return w.next, nil
	}
	before := probe.ThreadCPU()
	err = w.look(now)
	spent := float64(probe.ThreadCPU() - before)
	w.next = now.Add(min(max(lookEvery, time.Duration(spent/lookShare)), lookLimit))
	return w.next, err
}

func (w *watcher) end() error {
	_ = w.changed.Set(uint64(1)) // whatever it says: this is the last time
	err := w.look(time.Now())
	w.tellAll()
	if n := w.programs.Counter(cowVarLostSites, 0); n > 0 {
		w.Rows.Append(traces.Touch{Head: traces.Head{TsNS: probe.Now()}, Seen: n})
	}
	return err
}

// welcome reads the mappings of processes that are new, or of their parents.
func (w *watcher) welcome() {
	changes := w.Tree.Changes()
	if changes == w.known {
		return
	}
	w.known = changes
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
	unfinished := false
	for _, r := range w.Tree.All() {
		nodes[r.ID] = r
		unfinished = unfinished || !r.Ended.IsZero() && !w.finished[r.ID]
	}
	var spent []cowBlock
	err := w.read(unfinished, func(b *cowBlock, n *cowPages) {
		r, ok := nodes[b.Id]
		switch {
		case !ok: // its fork is still in the ring
			return
		case !r.Inherit: // it has called exec: what it copied before is gone
			spent = append(spent, *b)
			return
		case !r.Ended.IsZero():
			spent = append(spent, *b)
		}
		w.of(r).count(b.Number, *n)
	})
	if err != nil {
		return err
	}
	if err := w.touched(nodes); err != nil {
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

// read calls f with all counts that the kernel holds, if there are new ones, or
// if it must: a processor that counts right now may have seen that others were
// told of, and tells of its own with its next one.
func (w *watcher) read(must bool, f func(*cowBlock, *cowPages)) error {
	var changed uint64
	if err := w.changed.Get(&changed); err != nil {
		return fmt.Errorf("read whether pages were copied: %w", err)
	}
	if changed == 0 && !must {
		return nil
	}
	if err := w.changed.Set(uint64(0)); err != nil { // first: what comes meanwhile is new
		return fmt.Errorf("read whether pages were copied: %w", err)
	}
	if err := w.batches.Each(w.blocks, f); err != nil {
		return fmt.Errorf("read the counts of copied pages: %w", err)
	}
	return nil
}
