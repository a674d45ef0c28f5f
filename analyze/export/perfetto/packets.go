package perfetto

import (
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of fields of Perfetto's protos/perfetto/trace/perfetto_trace.proto (v59).
const (
	tracePacket = 1 // Trace.packet

	packetClockSnapshot = 6 // TracePacket
	packetTimestamp     = 8
	packetSequence      = 10
	packetTrackEvent    = 11
	packetInterned      = 12
	packetFlags         = 13
	packetDefaults      = 59
	packetDescriptor    = 60
	packetFirst         = 87

	defaultsClock = 58 // TracePacketDefaults.timestamp_clock_id

	snapshotClock  = 1 // ClockSnapshot.clocks
	clockID        = 1 // ClockSnapshot.Clock
	clockTimestamp = 2

	trackUUID    = 1 // TrackDescriptor
	trackName    = 2
	trackProcess = 3
	trackParent  = 5
	trackCounter = 8
	trackOrder   = 11
	trackRank    = 12

	processPid  = 1 // ProcessDescriptor
	processCmd  = 2
	processName = 6

	counterUnit     = 3 // CounterDescriptor
	counterUnitName = 6

	eventAnnotation = 4 // TrackEvent
	eventType       = 9
	eventName       = 10 // name_iid
	eventTrack      = 11
	eventCounter    = 30
	eventFlow       = 47
	eventFlowEnd    = 48

	internedEvents      = 2 // InternedData
	internedAnnotations = 3
	internedID          = 1 // EventName, DebugAnnotationName
	internedName        = 2

	annotationName = 1 // DebugAnnotation.name_iid
	annotationInt  = 4
	annotationText = 6
)

// Values of enumerations there.
const (
	sliceBegin = 1 // TrackEvent.Type
	sliceEnd   = 2
	instant    = 3
	counter    = 4

	incrementalCleared = 1 // TracePacket.SequenceFlags
	incrementalNeeded  = 2

	unitCount = 2 // CounterDescriptor.Unit
	unitBytes = 3

	explicitly = 3 // TrackDescriptor.ChildTracksOrdering

	// BuiltinClock of protos/perfetto/common/builtin_clock.proto.
	realtime, monotonic, boottime = 1, 3, 6
)

// sequence is the one writer's, in the words of Perfetto.
const sequence = 1

// packets writes packets one by one. Names are written once, and referred to by
// number afterwards. The first error stays.
type packets struct {
	w     io.Writer
	err   error
	begun bool

	events, annotations names

	packet, inner, interned, nested, fact []byte // reused
}

// names are those that were written already. The first of them are most of what is written, and are found
// sooner than by their hash.
type names struct {
	first []string // whose numbers are 1, 2, ...
	all   map[string]uint64
}

const firstNames = 12

// number of a name, and whether it is new.
func (n *names) number(name string) (id uint64, added bool) {
	for i, known := range n.first {
		if known == name {
			return uint64(i + 1), false
		}
	}
	id, ok := n.all[name]
	if !ok {
		id = uint64(len(n.all) + 1)
		name = strings.Clone(name) // so that events, whose names come here, need no heap
		n.all[name] = id
		if len(n.first) < firstNames {
			n.first = append(n.first, name)
		}
	}
	return id, !ok
}

func newPackets(w io.Writer) *packets {
	return &packets{w: w, events: names{all: map[string]uint64{}}, annotations: names{all: map[string]uint64{}}}
}

// write ends a packet and writes it.
func (p *packets) write() {
	if p.err != nil {
		return
	}
	p.nested = message(p.nested[:0], tracePacket, p.packet)
	_, p.err = p.w.Write(p.nested)
}

// snapshot ties clocks to one another; it comes first.
func (p *packets) snapshot(times map[uint64]int64) {
	p.packet = p.packet[:0]
	var all []byte
	for _, id := range []uint64{realtime, monotonic, boottime} {
		if at, known := times[id]; known {
			all = message(all, snapshotClock, number(number(nil, clockID, id), clockTimestamp, uint64(at)))
		}
	}
	p.packet = message(p.packet, packetClockSnapshot, all)
	p.packet = number(p.packet, packetSequence, sequence)
	p.write()
}

// track describes one.
func (p *packets) track(fields []byte) {
	p.packet = number(message(p.packet[:0], packetDescriptor, fields), packetSequence, sequence)
	p.write()
}

// event is one on a track.
type event struct {
	kind  uint64
	track uint64
	at    int64
	name  string
	flow  uint64 // 0: none
	last  bool   // the flow ends here
	value int64  // of a counter
	notes []note
}

// note is one fact beside an event.
type note struct {
	name string
	text string // "": it is a number
	n    int64
}

func (p *packets) event(e event) {
	p.interned = p.interned[:0]
	b := number(number(p.inner[:0], eventType, e.kind), eventTrack, e.track)
	if e.name != "" {
		b = number(b, eventName, p.intern(&p.events, internedEvents, e.name))
	}
	if e.kind == counter {
		b = number(b, eventCounter, uint64(e.value))
	}
	if e.flow != 0 {
		field := protowire.Number(eventFlow)
		if e.last {
			field = eventFlowEnd
		}
		b = protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), e.flow)
	}
	for _, n := range e.notes {
		fact := number(p.fact[:0], annotationName, p.intern(&p.annotations, internedAnnotations, n.name))
		if n.text != "" {
			fact = text(fact, annotationText, n.text)
		} else {
			fact = number(fact, annotationInt, uint64(n.n))
		}
		b = message(b, eventAnnotation, fact)
		p.fact = fact
	}
	p.inner = b
	p.packet = number(p.packet[:0], packetTimestamp, uint64(e.at))
	p.packet = number(p.packet, packetSequence, sequence)
	p.packet = message(p.packet, packetTrackEvent, p.inner)
	flags := uint64(incrementalNeeded)
	if !p.begun {
		p.begun = true
		flags |= incrementalCleared
		p.packet = number(p.packet, packetFirst, 1)
		p.packet = message(p.packet, packetDefaults, number(nil, defaultsClock, monotonic))
	}
	p.packet = number(p.packet, packetFlags, flags)
	if len(p.interned) > 0 {
		p.packet = message(p.packet, packetInterned, p.interned)
	}
	p.write()
}

// intern is the number of a name, which is written with this packet if it is new.
func (p *packets) intern(known *names, field protowire.Number, name string) uint64 {
	id, added := known.number(name)
	if added {
		p.interned = message(p.interned, field, text(number(nil, internedID, id), internedName, name))
	}
	return id
}

func number(b []byte, field protowire.Number, v uint64) []byte {
	return varint(varint(b, uint64(field)<<3|uint64(protowire.VarintType)), v)
}

func text(b []byte, field protowire.Number, s string) []byte {
	return append(varint(varint(b, uint64(field)<<3|uint64(protowire.BytesType)), uint64(len(s))), s...)
}

func message(b []byte, field protowire.Number, inner []byte) []byte {
	return append(varint(varint(b, uint64(field)<<3|uint64(protowire.BytesType)), uint64(len(inner))), inner...)
}

// varint is protowire's, in a form that is compiled into its callers: a timeline is hardly anything else.
func varint(b []byte, v uint64) []byte {
	for ; v >= 1<<7; v >>= 7 {
		b = append(b, byte(v)|1<<7)
	}
	return append(b, byte(v))
}
