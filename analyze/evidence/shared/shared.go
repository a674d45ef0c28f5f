// Package shared is what is known of /dev/shm: how much room it has, what batches
// take of it, and which calls found none.
package shared

import (
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is for the rules about shared memory. Files that lie there, and what the
// kernel tier has counted, make it richer.
var Source = &collect.Source[*Memory]{
	Name:   "shared memory",
	Tables: []string{"batch_bytes", "shm_room", "shm_file", "shm_use", "shm_full"},
	Proof:  []string{"batch_bytes", "shm_room", "exception", "signal"},
	Inside: true,
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Memory] { return &collector{map[*traces.Part]*rows{}} },
}

type collector struct{ of map[*traces.Part]*rows }

// rows are those of one part.
type rows struct {
	batches []traces.BatchBytes
	rooms   []traces.ShmRoom
	files   []traces.ShmFile
	uses    map[useKey]traces.ShmUse // the last of each process and device
	full    map[uint32][]traces.ShmFull
}

type useKey struct {
	proc   uint32
	device int64
}

func (c *collector) Add(b traces.Batch) {
	r := c.of[b.Part]
	if r == nil {
		r = &rows{uses: map[useKey]traces.ShmUse{}, full: map[uint32][]traces.ShmFull{}}
		c.of[b.Part] = r
	}
	switch all := b.Rows.(type) {
	case []traces.BatchBytes:
		r.batches = append(r.batches, all...)
	case []traces.ShmRoom:
		r.rooms = append(r.rooms, all...)
	case []traces.ShmFile:
		r.files = append(r.files, all...)
	case []traces.ShmUse:
		for i := range all {
			r.uses[useKey{all[i].Proc, all[i].Device}] = all[i]
		}
	case []traces.ShmFull:
		for i := range all {
			r.full[all[i].Proc] = append(r.full[all[i].Proc], all[i])
		}
	}
}

func (c *collector) Merge(o collect.Collector[*Memory]) { maps.Copy(c.of, o.(*collector).of) }

func (c *collector) Build(e *collect.Evidence) *Memory {
	m := &Memory{parts: c.of, batches: map[*timeline.Loader][]Batch{}}
	t := collect.Of(e, timeline.Source)
	for part, r := range c.of {
		slices.SortStableFunc(r.rooms, func(a, b traces.ShmRoom) int { return int(min(max(a.TsNS-b.TsNS, -1), 1)) })
		for _, b := range r.batches {
			if w := t.Worker(part, b.Proc, b.Loader, b.Pass, b.Worker); w != nil {
				l := w.Pass.Loader
				m.batches[l] = append(m.batches[l], Batch{b, w.Pass})
			}
		}
	}
	return m
}

// Memory is the evidence of Source.
type Memory struct {
	parts   map[*traces.Part]*rows
	batches map[*timeline.Loader][]Batch
}

// Batch is one whose bytes were looked at: the first of a worker in a pass.
type Batch struct {
	traces.BatchBytes
	Of *timeline.Pass
}

// Batches of a loader.
func (m *Memory) Batches(l *timeline.Loader) []Batch { return m.batches[l] }

// Full is the calls of a process that found no room.
func (m *Memory) Full(p *timeline.Process) []traces.ShmFull {
	if p == nil || m.parts[p.Part] == nil {
		return nil
	}
	return m.parts[p.Part].full[p.Proc]
}

// Files that lay in /dev/shm at the end of a part's recording.
func (m *Memory) Files(part *traces.Part, device int64) (files []traces.ShmFile) {
	if m.parts[part] == nil {
		return nil
	}
	for _, f := range m.parts[part].files {
		if f.Phase == "end" && f.Device == device {
			files = append(files, f)
		}
	}
	return files
}

// Rooms is the file system at /dev/shm that a loader's processes see, over time.
type Rooms struct {
	Device int64
	All    []traces.ShmRoom // in the order of time
}

// Of finds that of a loader; nil: it is not known which. A process that is asked
// for a mount namespace stands for all that are in it.
func (m *Memory) Of(l *timeline.Loader) *Rooms {
	r := m.parts[l.Process.Part]
	if r == nil {
		return nil
	}
	devices := map[int64][]traces.ShmRoom{}
	for _, room := range r.rooms {
		devices[room.Device] = append(devices[room.Device], room)
	}
	if len(devices) == 1 {
		for device, all := range devices {
			return &Rooms{device, all}
		}
	}
	near := map[uint32]bool{}
	for p := l.Process; p != nil; p = p.Parent {
		near[p.Proc] = true
	}
	for _, w := range l.WorkerProcesses {
		if w.Process != nil {
			near[w.Process.Proc] = true
		}
	}
	for key := range r.uses {
		if near[key.proc] && len(devices[key.device]) > 0 && key.proc != 0 {
			return &Rooms{key.device, devices[key.device]}
		}
	}
	// The one that they came to see last: a namespace is left for another one, not the other way round.
	var found *Rooms
	for device, all := range devices {
		seen := slices.ContainsFunc(all, func(room traces.ShmRoom) bool { return near[room.Proc] })
		if seen && (found == nil || all[0].TsNS > found.All[0].TsNS) {
			found = &Rooms{device, all}
		}
	}
	return found
}

// At is how full it was at a time: the last row before it, or the first.
func (r *Rooms) At(ns int64) traces.ShmRoom {
	at := r.All[0]
	for _, room := range r.All {
		if room.TsNS <= ns {
			at = room
		}
	}
	return at
}

// Least is the row with the least room between two times, and what was as they began.
func (r *Rooms) Least(from, to int64) traces.ShmRoom {
	least := r.At(from)
	for _, room := range r.All {
		if from < room.TsNS && room.TsNS <= to && room.Free < least.Free {
			least = room
		}
	}
	return least
}
