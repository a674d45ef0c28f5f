package shmexhausted

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/shared"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// told is how many workers are described one by one.
const told = 3

// exhausted is the finding after it has happened.
func (r *room) exhausted() finding.Finding {
	f := finding.Finding{Certainty: finding.Proven, Facts: r, Proof: "hook", Title: r.title()}
	for i, e := range r.effects {
		if e.kind != raised && e.named {
			f.Proof = "kernel"
		}
		if i < told {
			f.Evidence = append(f.Evidence, e.text)
		}
	}
	if more := len(r.effects) - told; more > 0 {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("So did %d more.", more)})
	}
	f.Evidence = append(f.Evidence, r.sums()...)
	first := r.effects[0]
	pass := first.worker.At(first.at)
	f.Cost = "the pass broke off"
	if pass != nil {
		f.Cost = fmt.Sprintf("pass %d ended after %s", pass.Pass.Number, words.Count(pass.Pass.Delivered, "batch"))
		if first.kind == swallowed && !pass.Pass.Exhausted {
			f.Cost += "; its loop waited for a batch that was lost"
		}
	}
	f.Fix = r.fix()
	return f
}

func (r *room) title() string {
	first := r.effects[0]
	text := "/dev/shm was full, and worker " + fmt.Sprint(first.worker.Number)
	switch first.kind {
	case fault:
		text += " died of it (SIGBUS)"
	case raised:
		text += " could not hand over its batch (No space left on device)"
	case swallowed:
		text += "'s batch was lost (No space left on device)"
	}
	if r.worst != nil && r.worst.bytes > r.worst.free {
		text += fmt.Sprintf(": the loader needs %s, %s were free", words.Bytes(r.worst.bytes), words.Bytes(r.worst.free))
	}
	return text
}

// forecast is the finding while nothing has happened yet.
func (r *room) forecast() finding.Finding {
	n := r.worst
	return finding.Finding{
		Certainty: finding.Likely,
		Title: fmt.Sprintf("/dev/shm is too small for this loader: up to %s in it, %s were free",
			words.Bytes(n.bytes), words.Bytes(n.free)),
		Evidence: r.sums(),
		Cost: "a worker dies as soon as the loop falls behind its workers, as when it evaluates or saves: " +
			"\"Bus error\", or \"No space left on device\"",
		Fix:   r.fix(),
		Facts: r,
	}
}

// sums is the arithmetic, and what else lies in /dev/shm.
func (r *room) sums() (list []finding.Evidence) {
	n := r.worst
	if n == nil {
		return nil
	}
	most := n.ranks[0]
	object := &most.loader.Objects[most.object]
	var refs []finding.Ref
	for _, b := range most.seen[:min(len(most.seen), told)] {
		refs = append(refs, ref(most.loader.Process.Part, "batch_bytes", b.Seq))
	}
	text := fmt.Sprintf("A batch takes %s of shared memory (%s).", words.Bytes(most.batch), dtypes(most.seen))
	if full := int64(object.NumWorkers)*max(int64(object.Prefetch), 1) + 1; object.Prefetch > 0 && most.inFlight == full {
		text += fmt.Sprintf(" Up to %d x %d + 1 = %d of them are there at once: num_workers x prefetch_factor, and the one that the loop has.",
			object.NumWorkers, object.Prefetch, full)
	} else {
		text += fmt.Sprintf(" Up to %d of them are there at once.", most.inFlight)
	}
	list = append(list, finding.Evidence{Text: text, Refs: refs})
	then, least := n.rooms.At(begin(most.loader)), n.rooms.Least(begin(most.loader), most.loader.Process.End)
	together := ""
	if len(n.ranks) > 1 {
		together = fmt.Sprintf("%s share it. ", words.Count(len(n.ranks), "rank"))
	}
	list = append(list, finding.Evidence{
		Text: fmt.Sprintf("%s/dev/shm holds %s, of which %s were free before the workers were started, and %s at the least that was seen.",
			together, words.Bytes(least.Capacity), words.Bytes(n.free), words.Bytes(least.Free)),
		Refs: []finding.Ref{ref(most.loader.Process.Part, "shm_room", then.Seq), ref(most.loader.Process.Part, "shm_room", least.Seq)},
	})
	if len(r.effects) > 0 && n.bytes <= n.free {
		list = append(list, finding.Evidence{Text: fmt.Sprintf("The loader's own batches take %s at most: what filled it is batches that the "+
			"loop keeps, or other files and programs.", words.Bytes(n.bytes))})
	}
	if left := r.leftOver(); len(left) > 0 {
		list = append(list, r.tellLeft(left))
	}
	return list
}

// dtypes of the first batch that was looked at: float32 3.1 MB, int64 4 KB.
func dtypes(seen []shared.Batch) string {
	var list []string
	for item := range strings.SplitSeq(seen[0].Dtypes, ",") {
		name, bytes, _ := strings.Cut(item, "=")
		n, _ := strconv.ParseInt(bytes, 10, 64)
		list = append(list, name+" "+words.Bytes(n))
	}
	return strings.Join(list, ", ")
}

// leftOver is files of processes that are dead, which nobody else holds.
func (r *room) leftOver() (files []traces.ShmFile) {
	for _, l := range r.Loaders {
		for _, f := range r.memory.Files(l.Process.Part, r.worst.rooms.Device) {
			known := slices.ContainsFunc(files, func(o traces.ShmFile) bool { return o.Name == f.Name })
			if f.Owner == "dead" && !known {
				files = append(files, f)
			}
		}
	}
	return files
}

func (r *room) tellLeft(files []traces.ShmFile) finding.Evidence {
	var all int64
	var refs []finding.Ref
	for _, f := range files {
		all += f.Bytes
		refs = append(refs, ref(r.worst.loader.Process.Part, "shm_file", f.Seq))
	}
	return finding.Evidence{Refs: refs, Text: fmt.Sprintf("%s of it lie in %s whose processes are dead: /dev/shm/%s first.",
		words.Bytes(all), words.Count(len(files), "file"), files[0].Name)}
}
