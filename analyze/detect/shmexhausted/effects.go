package shmexhausted

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// effect is that a worker found no room in /dev/shm, and could not go on.
type effect struct {
	at     int64
	worker *timeline.WorkerProcess
	kind   kind
	short  string
	text   finding.Evidence
	named  bool // it is beyond doubt that it was /dev/shm, and for want of room
	died   bool
}

type kind int

const (
	fault     kind = iota // SIGBUS
	raised                // an exception
	swallowed             // by the thread that hands batches over: the batch is lost, and the loop waits for it
)

const pageSize = 4096 // of most machines

// torchFile is how torch names files of /dev/shm in what it raises: </torch_4711_1_0>.
var torchFile = regexp.MustCompile(`[<"]/(torch_[0-9]+_[0-9_]+)[>"]`)

// look finds the effects, in the order of time.
func (r *room) look() {
	for _, l := range r.Loaders {
		for _, w := range l.WorkerProcesses {
			if w.Process == nil {
				if e := r.unseenFault(w); e != nil {
					r.effects = append(r.effects, *e)
				}
				continue
			}
			for _, e := range []*effect{r.faulted(w), r.raisedIn(w), r.swallowedIn(w)} {
				if e != nil {
					r.effects = append(r.effects, *e)
					break
				}
			}
		}
	}
	slices.SortStableFunc(r.effects, func(a, b effect) int {
		if a.named != b.named { // what is sure comes first
			return map[bool]int{true: -1, false: 1}[a.named]
		}
		return cmp.Compare(a.at, b.at)
	})
}

// faulted is a SIGBUS of a worker at an address in /dev/shm.
func (r *room) faulted(w *timeline.WorkerProcess) *effect {
	f := w.Process.Fault()
	if f == nil {
		return r.unseenFault(w)
	}
	inShm := strings.HasPrefix(f.MappingPath, "/dev/shm/")
	const noPage = 2 // BUS_ADRERR: others are of broken memory
	if f.Signal != timeline.SIGBUS || f.SiCode != noPage || !inShm || timeline.BehindEnd(f) {
		return nil
	}
	full, how := r.wasFull(w, f)
	if !full {
		return nil
	}
	return &effect{at: f.TsNS, worker: w, kind: fault, died: true, named: true, short: "a worker died of SIGBUS in " + f.MappingPath,
		text: finding.Evidence{
			Text: fmt.Sprintf("Worker %d (pid %d) got SIGBUS at 0x%x, within %s, where no page was left: %s.",
				w.Number, w.Pid, f.Address, f.MappingPath, how),
			Refs: []finding.Ref{ref(w.Process.Part, "signal", f.Seq)},
		}}
}

// wasFull says how it is known that /dev/shm was full when a worker got SIGBUS.
func (r *room) wasFull(w *timeline.WorkerProcess, f *traces.Signal) (full bool, how string) {
	if f.ShmCapacity > 0 && f.ShmUsed >= f.ShmCapacity-r.notAddedUp(f.ShmCapacity) {
		return true, fmt.Sprintf("%s of %s were in use", words.Bytes(f.ShmUsed), words.Bytes(f.ShmCapacity))
	}
	for _, l := range r.Loaders {
		for _, other := range l.WorkerProcesses {
			for _, x := range r.memory.Full(other.Process) {
				if near(x.TsNS, f.TsNS) {
					return true, fmt.Sprintf("a %s of pid %d failed there for want of room at the same time", x.Call, other.Pid)
				}
			}
		}
	}
	return r.seenFull(w, f.TsNS)
}

// notAddedUp is what processors may have taken or given back that is not in the
// kernel's count yet: 32 pages each, or twice as many as there are of them. Where
// that is most of the capacity, the count says nothing.
func (r *room) notAddedUp(capacity int64) int64 {
	const processors = 64 // of a large machine
	return min(processors*2*processors*pageSize, capacity/4)
}

// seenFull is by what the recorder saw: less than a batch was free.
func (r *room) seenFull(w *timeline.WorkerProcess, at int64) (full bool, how string) {
	var batch int64
	if r.worst != nil {
		batch = r.worst.ranks[0].batch
	}
	return r.seenFree(w, at, batch)
}

// seenFree reports whether less than so many bytes, or hardly any, were free.
func (r *room) seenFree(w *timeline.WorkerProcess, at, bytes int64) (less bool, how string) {
	rooms := r.memory.Of(w.Loader)
	if rooms == nil {
		return false, ""
	}
	least := rooms.Least(at-int64(recently), at+int64(recently)/4)
	if least.Free >= max(bytes, least.Capacity/100) {
		return false, ""
	}
	return true, fmt.Sprintf("%s of %s were free at that time", words.Bytes(least.Free), words.Bytes(least.Capacity))
}

const recently = 2 * time.Second

func near(a, b int64) bool { return max(a-b, b-a) <= int64(recently) }

// unseenFault is a SIGBUS of which nobody has seen the address, at a time when /dev/shm
// was full, or so full that what the workers may be ahead did not fit any more: they fill
// it in less time than lies between two looks at it.
func (r *room) unseenFault(w *timeline.WorkerProcess) *effect {
	end := r.ends.Of(w)
	if !end.Known || end.Signal != timeline.SIGBUS {
		return nil
	}
	if sent := w.Process.Fatal(); sent != nil && !timeline.BySelf(w.Process, sent) { // by kill(1)
		return nil
	}
	full, how := r.seenFull(w, end.When())
	if !full && r.worst != nil {
		if full, how = r.seenFree(w, end.When(), r.worst.bytes); full {
			how += ", and " + r.worst.sum()
		}
	}
	if !full {
		if low, free := r.seenFree(w, end.When(), r.worst.capacity()/2); low {
			r.unplaced = fmt.Sprintf("worker %d was ended by SIGBUS; whether in /dev/shm, of which %s, is visible in the kernel tier only",
				w.Number, free)
		}
		return nil
	}
	return &effect{at: end.When(), worker: w, kind: fault, died: true, short: "a worker died of SIGBUS while /dev/shm was full",
		text: finding.Evidence{
			Text: fmt.Sprintf("Worker %d (pid %d) was ended by SIGBUS; of /dev/shm, %s. What was mapped at its address is visible in the "+
				"kernel tier only.", w.Number, w.Pid, how),
			Refs: r.refsOfRoom(w, end.When()),
		}}
}

func (r *room) refsOfRoom(w *timeline.WorkerProcess, at int64) []finding.Ref {
	rooms := r.memory.Of(w.Loader)
	least := rooms.Least(at-int64(recently), at+int64(recently)/4)
	return []finding.Ref{ref(w.Loader.Process.Part, "shm_room", least.Seq)}
}

// raisedIn is an exception of a worker that tells so itself, or by what the
// kernel saw.
func (r *room) raisedIn(w *timeline.WorkerProcess) *effect {
	for i := range w.Process.Raised {
		x := &w.Process.Raised[i]
		if x.Stage != "fetch" && x.Stage != "collate" || !noSpace(x.Message) {
			continue
		}
		e := &effect{at: x.TsNS, worker: w, kind: raised, named: true}
		e.text.Refs = []finding.Ref{ref(w.Process.Part, "exception", x.Seq)}
		var of string
		if m := torchFile.FindStringSubmatch(x.Message); m != nil {
			of = "/dev/shm/" + m[1]
		} else if strings.Contains(x.Message, "/dev/shm/") {
			of = "a file of the program's own in /dev/shm"
		} else if full := r.failedThen(w, x.TsNS); full != nil {
			of = "/dev/shm/" + full.Name
			e.text.Refs = append(e.text.Refs, ref(w.Process.Part, "shm_full", full.Seq))
		} else {
			continue // another file system
		}
		e.short = "a worker found no room in /dev/shm"
		e.text.Text = fmt.Sprintf("Worker %d (pid %d) found no room for %s: %s: %s", w.Number, w.Pid, of, x.Type, firstLine(x.Message))
		return e
	}
	return nil
}

// noSpace reports whether a message is that of ENOSPC. torch of late 2025 says
// another error's text for it.
func noSpace(message string) bool {
	return strings.Contains(message, "No space left on device") || strings.Contains(message, "[Errno 28]") ||
		strings.Contains(message, "unable to allocate shared memory(shm)")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}

// failedThen is the call that an exception tells of.
func (r *room) failedThen(w *timeline.WorkerProcess, at int64) *traces.ShmFull {
	for _, x := range r.memory.Full(w.Process) {
		if x.TsNS <= at && at-x.TsNS < int64(time.Second)/4 {
			return &x
		}
	}
	return nil
}

// swallowedIn is a file of torch's that found no room, of which the program heard
// nothing: the thread that hands batches over prints it and drops the batch.
func (r *room) swallowedIn(w *timeline.WorkerProcess) *effect {
	for _, x := range r.memory.Full(w.Process) {
		if !strings.HasPrefix(x.Name, "torch_") || x.Call == "open" {
			continue
		}
		return &effect{at: x.TsNS, worker: w, kind: swallowed, named: true, short: "a batch found no room in /dev/shm",
			text: finding.Evidence{
				Text: fmt.Sprintf("The %s of %s for /dev/shm/%s of worker %d (pid %d) failed with ENOSPC, %s of %s were in use: "+
					"the batch is lost, and the loop waits for it.", x.Call, words.Bytes(x.Bytes), x.Name, w.Number, w.Pid,
					words.Bytes(x.Used), words.Bytes(x.Capacity)),
				Refs: []finding.Ref{ref(w.Process.Part, "shm_full", x.Seq)},
			}}
	}
	return nil
}

// named reports whether an effect is beyond doubt one of a full /dev/shm.
func (r *room) named() bool {
	return len(r.effects) == 0 || slices.ContainsFunc(r.effects, func(e effect) bool { return e.named })
}

// wentOn reports whether the process of a worker that found no room began another
// pass of a loader at the same place, and got through it: with smaller batches, say.
func (r *room) wentOn() bool {
	return slices.ContainsFunc(r.effects, func(e effect) bool {
		return slices.ContainsFunc(e.worker.Loader.Process.Loaders, func(l *timeline.Loader) bool {
			return slices.ContainsFunc(l.Passes, func(p *timeline.Pass) bool { return p.Begin > e.at && p.Exhausted })
		})
	})
}

// explainsDeaths reports whether workers of the loader died, all of a full
// /dev/shm: what worker-killed says of them is said here.
func (r *room) explainsDeaths() bool {
	died := map[*timeline.WorkerProcess]bool{}
	for _, e := range r.effects {
		died[e.worker] = e.died
	}
	if !slices.ContainsFunc(r.effects, func(e effect) bool { return e.died }) {
		return false
	}
	for _, l := range r.Loaders {
		for _, w := range l.WorkerProcesses {
			end := r.ends.Of(w)
			if !end.Known || end.Signal == 0 || end.Signal == timeline.SIGTERM {
				continue
			}
			if end.Signal != timeline.SIGBUS || !r.sameCause(w, died) {
				return false
			}
		}
	}
	return true
}

// sameCause reports whether a worker that SIGBUS ended is one of those that found no
// room, or one of which nobody saw where.
func (r *room) sameCause(w *timeline.WorkerProcess, died map[*timeline.WorkerProcess]bool) bool {
	return died[w] || w.Process.Fault() == nil
}

func ref(part *traces.Part, table string, seq uint64) finding.Ref {
	return finding.Ref{Part: part.Name, Table: table, Seq: seq}
}
