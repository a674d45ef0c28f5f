// Package perfetto writes a run as a timeline for the Perfetto UI: each process
// with what it waited for and what it did, and how batches went from one to the
// next.
package perfetto

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Doc is the exporter in one line.
const Doc = "Who waited for what, batch by batch, as a timeline for the Perfetto UI"

// Long is what is in the file.
const Long = `Writes a timeline for ui.perfetto.dev, or for any other program that reads Perfetto's
protobuf traces (TracePacket):

  tracks    for each process that loads or takes data: "training loop" (wait for
            next(), step), "index queue" (the sampler, and handing indices to a
            worker), "fetches" (waiting for an index, fetch, collate, handing over),
            "copies" of each CUDA stream (how long the call took, and the wait right
            after it; kernel tier, more than 64 KiB)
  arrows    from the indices of a batch to its fetch and to the step that got it
  counters  resident, private and pinned memory of each process, batches in flight
            of each loader (asked for, not delivered yet)
  instants  signals, ends of processes, and the findings of the report, each at
            the first row that proves it

Processes of several ranks and nodes are in one file. Those of one node share its
clock; between nodes it is as good as the nodes' own clocks. What a step does is
not looked into: it is the time from one delivery to the next call of next().`

// ErrNothing: no batch was seen.
var ErrNothing = errors.New("the trace holds no batches: nothing to export")

// Sources is what the timeline is made of, besides rows that are streamed.
var Sources = []collect.Any{timeline.Source}

// Write writes the timeline of a run. Rows are read once more, a batch of them at a
// time: however long the run was, memory is bounded.
func Write(w io.Writer, r *analyze.Result) error {
	buffered := bufio.NewWriterSize(w, 1<<16)
	e := &exporter{packets: newPackets(buffered), Result: r, clock: stages.NewClock(r.Run, r.Timeline), parts: map[*traces.Part]int{},
		loaders: titles(r.Timeline)}
	for i, p := range r.Run.Parts {
		e.parts[p] = i
	}
	e.snapshot()
	e.processes = e.tracks()
	e.queues()
	e.fetches()
	if e.batches == 0 {
		return fmt.Errorf("export perfetto: %w", ErrNothing)
	}
	e.copies()
	e.pinned()
	e.memory()
	e.signals()
	e.ends()
	if err := e.findings(); err != nil {
		return fmt.Errorf("export perfetto: %w", err)
	}
	if err := errors.Join(e.packets.err, buffered.Flush()); err != nil {
		return fmt.Errorf("export perfetto: %w", err)
	}
	return nil
}

// exporter is a timeline in the making.
type exporter struct {
	*analyze.Result

	packets   *packets
	clock     *stages.Clock
	processes map[stages.Process]*process
	parts     map[*traces.Part]int     // their places in the run
	loaders   map[stages.Object]string // what they are called
	lastTrack uint64
	batches   int // deliveries and fetches that were written

	lastKey    stages.Process // of what was looked up last, and what it is
	lastOf     *process
	lastPart   *traces.Part
	lastPlace  int
	lastLoader stages.Object
	lastWait   string
}

// snapshot says what time it was, as far as that is known.
func (e *exporter) snapshot() {
	now := max(e.clock.Begin, 1)
	times := map[uint64]int64{monotonic: now, boottime: now}
	if wall := e.clock.Wall(now); wall > 0 {
		times[realtime] = wall
	}
	e.packets.snapshot(times)
}
