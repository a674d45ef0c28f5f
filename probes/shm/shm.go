// Package shm counts what each process of the run does in /dev/shm: files that it
// makes there, bytes by which it makes them longer, names that it removes, and the
// calls that find no room. Looking is done by bpf/shm.bpf.c.
package shm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// Probe is bpf/shm.bpf.c.
var Probe = probe.Probe{
	Name:  "shm",
	Doc:   "bytes that each process of the run puts into /dev/shm, and its calls that find no room there; from the kernel",
	Tier:  probe.Kernel,
	Needs: []probe.Need{probe.Tracepoint("sys_exit", "how much each worker has put into /dev/shm; how full that is remains")},
	After: []string{"process", "files"}, // whose program goes on to this one
	Start: kernelSide.Start,
}

var kernelSide = probe.KernelSide{
	Probe:  "shm",
	Load:   loadShm,
	Behind: func(r *probe.Recording) *ebpf.Map { return r.SystemCalls },
	Ring:   shmMapFull,
	Pause:  100 * time.Millisecond, // BELL_NS of bpf/shm.bpf.c
	Table:  "shm_full",
	Drops: []probe.Drop{
		{Variable: shmVarLostEvents, Table: "shm_full", Reason: "the ring of the shm probe was full"},
		{Variable: shmVarLostUses, Table: "shm_use", Reason: "calls of more processes at once than the shm probe counts for"},
	},
	Open: open,
}

const (
	lookEvery = time.Second
	tellEvery = 10 * time.Second // a process of which more was counted; its last row comes with its end
)

// watcher turns what the programs count into rows.
type watcher struct {
	*probe.Recording
	uses     *ebpf.Map
	changed  *ebpf.Variable
	programs *probe.Programs
	devices  devices
	waiting  []shmFullEvent             // of processes whose fork is still in the ring of the process probe
	told     map[shmShmKey]told         // what was said of each
	latest   map[uint32]map[uint32]used // by process and device, as they were read last
	next     time.Time
	batches  probe.Batches[shmShmKey, shmShmUse]
}

// used is what the kernel side has counted.
type used = shmShmUse

type told struct {
	used
	at time.Time
}

func open(r *probe.Recording, p *probe.Programs) probe.Handler {
	w := &watcher{Recording: r, uses: p.Maps[shmMapUses], changed: p.Variables[shmVarChanged], programs: p,
		batches: probe.Batches[shmShmKey, shmShmUse]{N: 1024},
		devices: devices{target: r.Target, known: map[uint32]bool{}}, told: map[shmShmKey]told{}, latest: map[uint32]map[uint32]used{}}
	return probe.Handler{
		Take: w.take,
		Look: w.look,
		End:  w.end,
	}
}

func (w *watcher) end() error {
	_ = w.changed.Set(uint64(1)) // whatever it says: this is the last time
	err := w.count(time.Now(), true)
	w.programs.Lost("shm_full", "calls of processes whose fork was lost", uint64(len(w.waiting)))
	return err
}

// take keeps a call that found no room, until it is known whose it was. Its
// device is found out at once: the process may end of it.
func (w *watcher) take(raw []byte) bool {
	var e shmFullEvent
	if n, err := binary.Decode(raw, binary.NativeEndian, &e); err != nil || n > len(raw) { // the ring rounds sizes up
		return false
	}
	if r, ok := w.Tree.Of(e.Id); ok && e.Device != 0 && e.AtShm == 0 {
		w.devices.isShm(e.Device, r, w.Tree)
	}
	w.waiting = append(w.waiting, e)
	return true
}

var calls = map[uint32]string{uint32(shmShmCallSHM_OPEN): "open", uint32(shmShmCallSHM_TRUNCATE): "ftruncate",
	uint32(shmShmCallSHM_ALLOCATE): "fallocate", uint32(shmShmCallSHM_WRITE): "write"}

// look writes what is due.
func (w *watcher) look(now time.Time) (next time.Time, err error) {
	w.tellFull()
	if now.Before(w.next) {
		return w.next, nil
	}
	w.next = now.Add(lookEvery)
	return w.next, w.count(now, false)
}

func (w *watcher) tellFull() {
	unknown := w.waiting[:0]
	for _, e := range w.waiting {
		r, ok := w.Tree.Of(e.Id)
		if !ok {
			unknown = append(unknown, e)
			continue
		}
		if e.Device != 0 && e.AtShm == 0 && !w.devices.isShm(e.Device, r, w.Tree) {
			continue
		}
		name, _, _ := bytes.Cut(e.Name[:], []byte{0})
		w.Rows.Append(traces.ShmFull{Head: traces.Head{TsNS: int64(e.TsNs), Proc: w.Number(r)}, Device: deviceOf(e.Device), Call: calls[e.Call],
			Name: strings.ToValidUTF8(string(name), "?"), Bytes: int64(e.Bytes),
			Capacity: int64(e.Capacity) << pageShift, Used: int64(e.Used) << pageShift})
	}
	w.waiting = unknown
}

const pageShift = 12 // PAGE_SHIFT of bpf/core.h

// count takes over what the kernel has counted, and writes what is due: of a
// process that has ended, as long as its end was known before its counts were
// read, for the last time.
func (w *watcher) count(now time.Time, all bool) error {
	nodes := map[uint32]probe.Node{}
	for _, r := range w.Tree.All() {
		nodes[r.ID] = r
	}
	if err := w.read(); err != nil {
		return err
	}
	var spent []shmShmKey
	for id, of := range w.latest {
		r, ok := nodes[id]
		if !ok { // its fork is still in the ring
			continue
		}
		ended := !r.Ended.IsZero()
		for device, n := range of {
			key := shmShmKey{Id: id, Device: device}
			if device != 0 {
				n.Removed, n.Failed = of[0].Removed, n.Failed+of[0].Failed
				w.tell(key, n, r, now, all || ended)
			}
			if ended {
				spent = append(spent, key)
				delete(w.told, key)
			}
		}
		if ended {
			delete(w.latest, id)
		}
	}
	for _, key := range spent { // processes with files in /dev/shm: few end at once
		if err := w.uses.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("free the counts of ended processes: %w", err)
		}
	}
	return nil
}

// tell writes a row about a process and a device, if it is /dev/shm and there is news.
func (w *watcher) tell(key shmShmKey, n used, r probe.Node, now time.Time, last bool) {
	was, before := w.told[key]
	if before && !last && (was.used == n || now.Sub(was.at) < tellEvery) || n.AtShm == 0 && !w.devices.isShm(key.Device, r, w.Tree) {
		return
	}
	w.told[key] = told{n, now}
	w.Rows.Append(traces.ShmUse{Head: traces.Head{TsNS: probe.Now(), Proc: w.Number(r)}, Device: deviceOf(key.Device), Made: n.Made,
		Removed: n.Removed, Sized: n.Sized, Bytes: int64(n.Bytes), Failed: n.Failed, Final: !r.Ended.IsZero()})
}

// read takes all counts that the kernel holds, if there are new ones.
func (w *watcher) read() error {
	var changed uint64
	if err := w.changed.Get(&changed); err != nil {
		return fmt.Errorf("read whether shared memory was used: %w", err)
	}
	if changed == 0 {
		return nil
	}
	if err := w.changed.Set(uint64(0)); err != nil { // first: what comes meanwhile is new
		return fmt.Errorf("read whether shared memory was used: %w", err)
	}
	err := w.batches.Each(w.uses, func(key *shmShmKey, use *shmShmUse) {
		if w.latest[key.Id] == nil {
			w.latest[key.Id] = map[uint32]used{}
		}
		w.latest[key.Id][key.Device] = *use
	})
	if err != nil {
		return fmt.Errorf("read the counts of shared memory: %w", err)
	}
	return nil
}

// deviceOf is a device as stat(2) shows it.
func deviceOf(kernel uint32) int64 {
	const minorBits = 20 // of the kernel's own dev_t, include/linux/kdev_t.h
	return int64(unix.Mkdev(kernel>>minorBits, kernel&(1<<minorBits-1)))
}
