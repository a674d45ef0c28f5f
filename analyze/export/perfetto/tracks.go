package perfetto

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// process is the tracks of one, 0 where there are none yet.
type process struct {
	track                        uint64 // its own, on which instants lie
	loop, indices, work          uint64
	rss, private                 uint64
	inFlight                     map[uint32]uint64 // of each of its DataLoader objects
	loopEnd, indicesEnd, workEnd int64             // what comes before is drawn already: slices of a track do not overlap
	rank                         uint64
	streams                      map[uint64]*stream // by their handles
}

// mostPids is above any pid that Linux gives (PID_MAX_LIMIT of include/linux/threads.h).
const mostPids = 1 << 22

// tracks describes the processes of the run. A process is known by its pid there:
// where it was given twice, on two nodes or one after another, the later ones are
// given numbers that no process has.
func (e *exporter) tracks() map[stages.Process]*process {
	all, taken := map[stages.Process]*process{}, map[int32]bool{}
	workers := serving(e.Timeline)
	for i, p := range e.Timeline.Processes {
		if p.Proc == 0 {
			continue
		}
		title := workers[p]
		if title == "" {
			title = role(p)
		}
		pid := p.Pid
		if taken[pid] || pid <= 0 {
			pid = mostPids + int32(i)
		}
		taken[pid] = true
		tracks := &process{track: uint64(len(all) + 1), inFlight: map[uint32]uint64{}}
		all[stages.Process{Part: p.Part, Proc: p.Proc}] = tracks
		described := number(nil, processPid, uint64(pid))
		if p.Cmdline != "" {
			described = text(described, processCmd, words.Printable(p.Cmdline))
		}
		described = text(described, processName, fmt.Sprintf("%s (pid %d)", title, p.Pid))
		e.packets.track(number(message(number(nil, trackUUID, tracks.track), trackProcess, described), trackOrder, explicitly))
	}
	e.lastTrack = uint64(len(all))
	return all
}

// child makes a track below a process's own.
func (e *exporter) child(of *process, name string, more []byte) uint64 {
	e.lastTrack++
	of.rank++
	b := number(nil, trackUUID, e.lastTrack)
	b = text(b, trackName, name)
	if of.track != 0 {
		b = number(b, trackParent, of.track)
	}
	b = number(b, trackRank, of.rank)
	e.packets.track(append(b, more...))
	return e.lastTrack
}

// of is the tracks of a row's process; nil: it is not known.
// Rows of one process come one after another.
func (e *exporter) of(part *traces.Part, proc uint32) *process {
	if k := (stages.Process{Part: part, Proc: proc}); k != e.lastKey {
		e.lastKey, e.lastOf = k, e.processes[k]
	}
	return e.lastOf
}

// place of a part in the run.
func (e *exporter) place(part *traces.Part) int {
	if part != e.lastPart {
		e.lastPart, e.lastPlace = part, e.parts[part]
	}
	return e.lastPlace
}

// serving is what the workers of the run are called.
func serving(t *timeline.Timeline) map[*timeline.Process]string {
	workers := map[*timeline.Process]string{}
	for _, l := range t.Loaders {
		for _, w := range l.WorkerProcesses {
			if w.Process != nil && w.Number >= 0 {
				workers[w.Process] = fmt.Sprintf("worker %d of %s%s", w.Number, stages.Title(l), rank(l.Process))
			}
		}
	}
	return workers
}

// titles is what the DataLoader objects of the run are called.
func titles(t *timeline.Timeline) map[stages.Object]string {
	all := map[stages.Object]string{}
	for object, l := range stages.Loaders(t) {
		all[object] = stages.Title(l)
	}
	return all
}

func rank(p *timeline.Process) string {
	if p.Rank < 0 {
		return ""
	}
	return fmt.Sprintf(", rank %d", p.Rank)
}

// longest is how many bytes of a command line a title shows.
const longest = 60

func role(p *timeline.Process) string {
	if p.Kind == "target" {
		return "main process" + rank(p)
	}
	line := strings.Join(strings.Fields(p.Cmdline), " ")
	if len(line) > longest {
		line = line[:longest] + "..."
	}
	if line == "" {
		line = "process"
	}
	return words.Printable(line) + rank(p)
}
