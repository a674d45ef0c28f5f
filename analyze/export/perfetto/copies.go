package perfetto

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/traces"
)

// stream is a track of the copies that a process has asked for on one stream.
type stream struct {
	track uint64
	end   int64
}

// mostStreams of a process have a track each; the copies of all others are on one.
const mostStreams = 32

const otherStreams = ^uint64(0)

// copies draws those of more than 64 KiB: how long the calls took, and how long the thread
// waited right after them. What the device did is not known.
func (e *exporter) copies() {
	drivers := stages.Drivers(e.Run)
	for part, r := range traces.Rows[traces.Copy](e.Run) {
		p := e.of(part, r.Proc)
		if p == nil || stages.Twice(drivers, part, &r) {
			continue
		}
		s := e.stream(p, r.Stream)
		at := e.clock.Of(part, r.TsNS)
		end := at + max(r.CallNS, 0)
		e.slice(s.track, &s.end, event{at: at, name: copying(r.Direction), notes: []note{
			{name: "bytes", n: r.Bytes}, {name: "function", text: r.Function}, {name: "thread", n: int64(r.Thread)},
			{name: "next", text: r.Next},
		}}, end)
		if begin := end + max(r.GapNS, 0); r.NextNS > 0 {
			e.slice(s.track, &s.end, event{at: begin, name: "wait: " + r.Next}, begin+r.NextNS)
		}
	}
}

func copying(direction string) string {
	switch direction {
	case "to-device":
		return "copy to the device"
	case "to-host":
		return "copy to the host"
	case "device":
		return "copy on the device"
	}
	return "copy"
}

func (e *exporter) stream(p *process, handle uint64) *stream {
	if p.streams == nil {
		p.streams = map[uint64]*stream{}
	}
	if p.streams[handle] == nil && len(p.streams) >= mostStreams {
		handle = otherStreams
	}
	s := p.streams[handle]
	if s == nil {
		name := fmt.Sprintf("copies, stream %#x", handle)
		switch handle {
		case 0:
			name = "copies, default stream"
		case otherStreams:
			name = "copies, other streams"
		}
		s = &stream{track: e.child(p, name, nil)}
		p.streams[handle] = s
	}
	return s
}

// pinned draws how much memory of the host the driver was told to pin or to register.
func (e *exporter) pinned() {
	type block struct {
		of      *process
		address uint64
	}
	blocks, sums, tracks := map[block]int64{}, map[*process]int64{}, map[*process]uint64{}
	unit := message(nil, trackCounter, number(nil, counterUnit, unitBytes))
	for part, r := range traces.Rows[traces.HostMemory](e.Run) {
		p := e.of(part, r.Proc)
		if p == nil || r.What == "managed" {
			continue
		}
		k := block{p, r.Address}
		was, known := blocks[k]
		if r.What == "freed" || r.What == "unregistered" {
			if !known { // managed, or of before it was watched
				continue
			}
			delete(blocks, k)
			r.Bytes = 0
		} else {
			blocks[k] = max(r.Bytes, 0)
		}
		sums[p] += max(r.Bytes, 0) - was
		if tracks[p] == 0 {
			tracks[p] = e.child(p, "pinned memory", unit)
		}
		e.packets.event(event{kind: counter, track: tracks[p], at: e.clock.Of(part, r.TsNS), value: sums[p]})
	}
}
