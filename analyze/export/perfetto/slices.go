package perfetto

import (
	"fmt"
	"iter"

	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// flow is the way of one batch, as a number of its own.
func (e *exporter) flow(part *traces.Part, proc, loader, pass, batch uint32) uint64 {
	h := uint64(e.place(part))
	for _, n := range []uint32{proc, loader, pass, batch} {
		h = (h ^ uint64(n)) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	return h | 1 // 0 is none
}

// slice draws one, from where the track's last one has ended at the earliest.
func (e *exporter) slice(track uint64, end *int64, s event, until int64) {
	s.kind, s.track, s.at = sliceBegin, track, max(s.at, *end, 1)
	if until <= s.at {
		return
	}
	*end = until
	e.packets.event(s)
	e.packets.event(event{kind: sliceEnd, track: track, at: until})
}

// queues draws what the processes with a training loop did: indices handed out,
// batches waited for and taken, and how many were on their way meanwhile. The two
// tables are read side by side, in the order of time.
func (e *exporter) queues() {
	nextPut, stop := iter.Pull2(traces.Rows[traces.BatchPut](e.Run))
	defer stop()
	flying := map[stages.Object]*flight{}
	part, put, more := nextPut()
	for p, next := range traces.Rows[traces.BatchNext](e.Run) {
		for more && (part == p && put.TsNS <= next.TsNS || part != p && e.parts[part] < e.parts[p]) {
			e.put(part, &put, flying)
			part, put, more = nextPut()
		}
		e.next(p, &next, flying)
	}
	for more {
		e.put(part, &put, flying)
		part, put, more = nextPut()
	}
}

// flight is the batches of one loader that were asked for and not delivered yet.
type flight struct {
	pass   uint32
	count  int64
	caller *process
}

func (e *exporter) put(part *traces.Part, r *traces.BatchPut, flying map[stages.Object]*flight) {
	p := e.of(part, r.Proc)
	if p == nil || r.First > 0 {
		return
	}
	if p.indices == 0 {
		p.indices = e.child(p, "index queue", nil)
	}
	put := e.clock.OfPut(part, r)
	e.slice(p.indices, &p.indicesEnd, event{
		at: put.Begin, name: "sampler and queue", flow: e.flow(part, r.Proc, r.Loader, r.Pass, r.Batch),
		notes: []note{{name: "batch", n: int64(r.Batch)}, {name: "pass", n: int64(r.Pass)}, {name: "worker", n: int64(r.Worker)}},
	}, put.End)
	e.fly(part, r.Proc, r.Loader, r.Pass, 1, put.End, flying)
}

func (e *exporter) next(part *traces.Part, r *traces.BatchNext, flying map[stages.Object]*flight) {
	p := e.of(part, r.Proc)
	if p == nil {
		return
	}
	next := e.clock.OfNext(part, r)
	called, at := next.Begin, next.End
	if r.Status == "exit" {
		if p.loop != 0 {
			e.slice(p.loop, &p.loopEnd, event{at: p.loopEnd, name: "step"}, at)
		}
		return
	}
	if p.loop == 0 {
		p.loop = e.child(p, "training loop", nil)
		p.loopEnd = called
	}
	e.batches++
	e.slice(p.loop, &p.loopEnd, event{at: p.loopEnd, name: "step"}, called)
	wait := event{at: called, name: e.waitFor(part, r.Proc, r.Loader),
		notes: []note{{name: "batch", n: int64(r.Batch)}, {name: "pass", n: int64(r.Pass)}, {name: "optimizer steps so far", n: int64(r.Steps)}}}
	if r.Status == "ok" {
		wait.flow, wait.last = e.flow(part, r.Proc, r.Loader, r.Pass, r.Batch), true
	} else {
		wait.notes = append(wait.notes, note{name: "ended by", text: r.Status})
	}
	e.slice(p.loop, &p.loopEnd, wait, at)
	p.loopEnd = max(p.loopEnd, at)
	if r.Status == "ok" {
		e.fly(part, r.Proc, r.Loader, r.Pass, -1, at, flying)
	}
}

// fly counts the batches on their way. A new pass begins with none: what was asked
// for before was thrown away.
func (e *exporter) fly(part *traces.Part, proc, loader, pass uint32, by, at int64, flying map[stages.Object]*flight) {
	k := stages.Object{Process: stages.Process{Part: part, Proc: proc}, Loader: loader}
	f := flying[k]
	if f == nil {
		if by < 0 { // a loader without workers asks for nothing ahead
			return
		}
		f = &flight{pass: pass, caller: e.of(part, proc)}
		flying[k] = f
	}
	if f.pass != pass {
		f.pass, f.count = pass, 0
	}
	f.count = max(f.count+by, 0)
	track := f.caller.inFlight[loader]
	if track == 0 {
		unit := message(nil, trackCounter, text(number(nil, counterUnit, unitCount), counterUnitName, "batches"))
		track = e.child(f.caller, "in flight: "+e.loader(part, proc, loader), unit)
		f.caller.inFlight[loader] = track
	}
	e.packets.event(event{kind: counter, track: track, at: at, value: f.count})
}

// waitFor is what waiting for a loader is called.
func (e *exporter) waitFor(part *traces.Part, proc, object uint32) string {
	if k := (stages.Object{Process: stages.Process{Part: part, Proc: proc}, Loader: object}); k != e.lastLoader {
		e.lastLoader, e.lastWait = k, "wait for "+e.loader(part, proc, object)
	}
	return e.lastWait
}

// loader is the name of a DataLoader object.
func (e *exporter) loader(part *traces.Part, proc, object uint32) string {
	if name := e.loaders[stages.Object{Process: stages.Process{Part: part, Proc: proc}, Loader: object}]; name != "" {
		return name
	}
	return fmt.Sprintf("loader object %d", object)
}

// fetches draws what workers did, and the main process where there are none.
func (e *exporter) fetches() {
	for part, r := range traces.Rows[traces.BatchFetch](e.Run) {
		p := e.of(part, r.Proc)
		if p == nil {
			continue
		}
		if p.work == 0 {
			p.work = e.child(p, "fetches", nil)
		}
		e.batches++
		e.fetch(p, part, &r)
	}
}

func (e *exporter) fetch(p *process, part *traces.Part, r *traces.BatchFetch) {
	did := e.clock.OfFetch(part, r)
	e.slice(p.work, &p.workEnd, event{at: did.HandOver.Begin, name: "hand over"}, did.HandOver.End)
	e.slice(p.work, &p.workEnd, event{at: did.Idle.Begin, name: "wait for indices"}, did.Idle.End)
	fetch := event{at: did.Fetch.Begin, name: "fetch",
		notes: []note{{name: "batch", n: int64(r.Batch)}, {name: "samples", n: int64(r.Samples)}}}
	if w := e.Timeline.Worker(part, r.Proc, r.Loader, r.Pass, r.Worker); w != nil && w.Number >= 0 {
		fetch.flow = e.ofWorker(w, r.Batch)
		fetch.notes = append(fetch.notes, note{name: "pass", n: int64(w.Pass.Recorded)})
	}
	e.slice(p.work, &p.workEnd, fetch, did.Fetch.End)
	e.slice(p.work, &p.workEnd, event{at: did.Collate.Begin, name: "collate"}, did.Collate.End)
}

func (e *exporter) ofWorker(w *timeline.WorkerPass, batch uint32) uint64 {
	main := w.Pass.Loader.Process
	return e.flow(main.Part, main.Proc, w.Pass.Object, w.Pass.Recorded, batch)
}
