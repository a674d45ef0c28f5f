package fdexhausted

import (
	"fmt"
	"math/bits"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// exhausted is that something failed for want of a descriptor.
func (x *filled) exhausted() finding.Finding {
	f := x.failure
	list := []finding.Evidence{{
		Text: fmt.Sprintf("%s: %s (%s).", f.Type, message(f), x.where()),
		Refs: []finding.Ref{{Part: x.process().Part.Name, Table: "exception", Seq: f.Seq}},
	}}
	title := x.who() + " says that it has no descriptor left"
	if f.Open > 0 {
		title = fmt.Sprintf("%s ran out of descriptors: %s of %s", x.who(), words.Number(f.Open), words.Number(f.Limit))
		list = append(list, finding.Evidence{Text: fmt.Sprintf("It had %s of %s descriptors open then (RLIMIT_NOFILE); %s.",
			words.Number(f.Open), words.Number(f.Limit), x.what())})
	}
	batches := x.counts.batches(x.main, f.TsNS)
	if x.kept() {
		list = append(list, x.rise())
		title += ", as it " + x.habit()
	} else if x.mayKeep() {
		list = append(list, finding.Evidence{Text: fmt.Sprintf("That was after %s, and %s are under way at most: "+
			"the program keeps tensors of the others.", words.Count(batches, "batch"), words.Number(int64(x.underWay())))})
	}
	cost := fmt.Sprintf("the loop ended after %s", words.Count(batches, "batch"))
	if !f.ofMain() {
		cost = fmt.Sprintf("the loop had %s; a worker without a descriptor cannot send its error either, and the loop may wait for ever",
			words.Count(batches, "batch"))
	}
	return finding.Finding{Certainty: finding.Proven, Title: title, Evidence: list, Cost: cost, Fix: x.fix(), Proof: "hook", Facts: x}
}

// habit is what the number grows by.
func (x *filled) habit() string {
	if x.tensors() {
		return "keeps what each batch brings"
	}
	return "opens more with each batch"
}

// refusedOne is that the kernel refused a process descriptors, of which its program
// may say nothing: a worker sends its batches from a thread of its own.
func (x *filled) refusedOne(certainty finding.Certainty) finding.Finding {
	r := x.refusal
	who := "The training process"
	if r.worker != nil {
		who = fmt.Sprintf("Worker %d", r.worker.Number)
	}
	list := []finding.Evidence{{
		Text: fmt.Sprintf("%s of its system calls failed with EMFILE: it had no descriptor left.", words.Number(r.Refused)),
		Refs: []finding.Ref{{Part: r.part.Name, Table: "descriptor", Seq: r.Seq}},
	}}
	cost := "what it could not open or send is missing"
	if e := x.broken; e != nil {
		list = append(list, finding.Evidence{
			Text: fmt.Sprintf("The loop ended with %s as it waited for a batch (%s).", e.Type, timeline.Place(x.main.Cwd, e.File, e.Line)),
			Refs: []finding.Ref{{Part: x.main.Part.Name, Table: "exception", Seq: e.Seq}},
		})
		cost = fmt.Sprintf("the loop ended after %s", words.Count(x.counts.batches(x.main, e.TsNS), "batch"))
	}
	top := x.top(r)
	if top.Open > 0 {
		list = append(list, finding.Evidence{Text: fmt.Sprintf("It had %s of %s descriptors open when they were counted last.",
			words.Number(top.Open), words.Number(top.Limit))})
	}
	return finding.Finding{
		Certainty: certainty,
		Title:     fmt.Sprintf("%s ran out of descriptors: the kernel refused it %s", who, words.Count(int(r.Refused), "call")),
		Evidence:  list,
		Cost:      cost,
		Fix:       x.raise(top.Open, max(top.Limit, x.last.Limit), top.Hard),
		NotABugIf: note(certainty),
		Proof:     "kernel",
		Facts:     x,
	}
}

func note(c finding.Certainty) string {
	if c == finding.Note {
		return "the program expects to be refused, and goes on."
	}
	return ""
}

// top is the last count of the process that was refused.
func (x *filled) top(r *refusal) (last traces.Descriptor) {
	rows := x.counts.rows[process{r.part, r.Proc}]
	if len(rows) > 0 {
		last = rows[len(rows)-1]
	}
	return last
}

// forecast is that the limit will be reached.
func (x *filled) forecast() finding.Finding {
	g := x.growth
	title := fmt.Sprintf("The training process keeps %.1f descriptors of each batch", g.perBatch())
	switch {
	case x.grower != nil:
		title = fmt.Sprintf("Worker %d keeps %.0f descriptors more after every 100 batches", x.grower.Number, 100*g.perBatch())
	case !x.tensors():
		title = fmt.Sprintf("The training process opens %.1f descriptors more with each batch", g.perBatch())
	}
	return finding.Finding{
		Certainty: finding.Likely,
		Title: fmt.Sprintf("%s: at this pace its limit of %s is reached after %s more", title, words.Number(x.last.Limit),
			words.Count(x.left(), "batch")),
		Evidence: []finding.Evidence{x.rise(), {
			Text: fmt.Sprintf("RLIMIT_NOFILE is %s; %s.", words.Number(x.last.Limit), x.what()),
		}},
		Cost:  fmt.Sprintf("the loop ends by \"too many open files\" after about %s", words.Count(g.last.batches+x.left(), "batch")),
		Fix:   x.fix(),
		Proof: "procfs",
		Facts: x,
	}
}

// elsewhere is that an error speaks of descriptors, of which there were enough.
func (x *filled) elsewhere() finding.Finding {
	f := x.failure
	return finding.Finding{
		Certainty: finding.Note,
		Title:     fmt.Sprintf("%s says %q, and had %s of %s descriptors open", x.who(), message(f), words.Number(f.Open), words.Number(f.Limit)),
		Evidence: []finding.Evidence{{
			Text: fmt.Sprintf("%s: %s (%s).", f.Type, message(f), x.where()),
			Refs: []finding.Ref{{Part: x.process().Part.Name, Table: "exception", Seq: f.Seq}},
		}},
		Cost: "the loop ended",
		Fix: "# \"received 0 items of ancdata\": see whether a worker has died (worker-killed)\n" +
			"# \"too many open files\": of inotify or the machine: sysctl fs.inotify.max_user_instances fs.file-max",
		NotABugIf: "the program raises this error itself.",
		Facts:     x,
	}
}

// nearly is that a process had few descriptors left, or none.
func (x *filled) nearly(u use, certainty finding.Certainty) finding.Finding {
	list := []finding.Evidence{{
		Text: fmt.Sprintf("%s had %s of %s descriptors open (RLIMIT_NOFILE).", words.Upper(u.who()), words.Number(u.Open), words.Number(u.Limit)),
		Refs: []finding.Ref{{Part: u.process.Part.Name, Table: "descriptor", Seq: u.Seq}},
	}}
	cost := "a few more workers, or tensors in a batch, and the loop ends by \"too many open files\""
	if certainty > finding.Note {
		cost = "a worker without a descriptor can send neither its batch nor its error, and the loop did not come to its end"
		if e := x.broken; e != nil {
			list = append(list, finding.Evidence{
				Text: fmt.Sprintf("The loop ended with %s (%s).", e.Type, timeline.Place(x.main.Cwd, e.File, e.Line))})
		}
	}
	return finding.Finding{
		Certainty: certainty,
		Title:     fmt.Sprintf("%s has %s of %s descriptors open", words.Upper(u.who()), words.Number(u.Open), words.Number(u.Limit)),
		Evidence:  list,
		Cost:      cost,
		Fix:       x.raise(u.Open, u.Limit, u.Hard),
		NotABugIf: crowdedIf(certainty),
		Proof:     "procfs",
		Facts:     x,
	}
}

func crowdedIf(c finding.Certainty) string {
	if c == finding.Note {
		return "this is as many as there will be."
	}
	return ""
}

// rise is how the number grew.
func (x *filled) rise() finding.Evidence {
	g := x.growth
	refs := []finding.Ref{g.first.ref, g.last.ref}
	if w := x.grower; w != nil {
		return finding.Evidence{Refs: refs, Text: fmt.Sprintf("The descriptors of worker %d (pid %d) rose from %s to %s in %s of %s: "+
			"%.2f a batch.", w.Number, w.Pid, words.Number(g.first.open), words.Number(g.last.open), words.Count(g.batches(), "batch"),
			words.Count(len(w.Workers), "pass"), g.perBatch())}
	}
	return finding.Evidence{
		Text: fmt.Sprintf("Its descriptors rose from %s to %s in %s: %.1f a batch; no more than %s are under way.", words.Number(g.first.open),
			words.Number(g.last.open), words.Count(g.batches(), "batch"), g.perBatch(), words.Count(x.underWay(), "batch")),
		Refs: refs,
	}
}

// message is the first sentence of an error.
func message(f *failure) string {
	const most = 160
	text := f.Message
	for i, r := range text {
		if r == '\n' || r == '.' && i+1 < len(text) && text[i+1] == ' ' || i >= most {
			return text[:i]
		}
	}
	return text
}

func (x *filled) where() string {
	return timeline.Place(x.main.Cwd, x.failure.File, x.failure.Line)
}

func (x *filled) who() string {
	if w := x.failure.worker; w != nil {
		return fmt.Sprintf("Worker %d", w.Number)
	}
	return "The training process"
}

// tensors reports whether most of the descriptors are tensors that workers sent.
func (x *filled) tensors() bool {
	if f := x.failure; f != nil && f.Open > 0 {
		return 2*f.Shared > f.Open
	}
	return 2*x.last.Shared > x.last.Looked && x.last.Looked > 0
}

// what the descriptors are.
func (x *filled) what() string {
	f, r := x.failure, x.last
	switch {
	case f != nil && f.Open > 0 && 2*f.Shared > f.Open:
		return fmt.Sprintf("%s of them are tensors in shared memory, one each", words.Number(f.Shared))
	case r.Looked == 0:
		return "what they are was not seen"
	case 2*r.Shared > r.Looked:
		return fmt.Sprintf("%s of the %d that came last are tensors in shared memory, one each", words.Number(r.Shared), r.Looked)
	case 2*r.File > r.Looked:
		return fmt.Sprintf("%s of the %d that came last are files, as %s", words.Number(r.File), r.Looked, r.Sample)
	case 2*r.Socket > r.Looked:
		return fmt.Sprintf("%s of the %d that came last are sockets", words.Number(r.Socket), r.Looked)
	}
	return fmt.Sprintf("of the %d that came last %d are tensors in shared memory, %d files, %d sockets, %d pipes", r.Looked, r.Shared, r.File,
		r.Socket, r.Pipe)
}

func (x *filled) fix() string {
	switch {
	case x.tensors() && x.grower != nil:
		return "# in the worker, keep copies: a tensor that was handed to the loop holds a descriptor until it is gone\n" +
			"self.kept[i] = x.clone()"
	case x.tensors() && (x.failure == nil || x.kept() || x.mayKeep()):
		return "# keep copies: a tensor that came from a worker holds a descriptor until it is gone\n" +
			"kept.append(x.clone())                                # not kept.append(x)\n" +
			"kept.append({k: v.clone() for k, v in batch.items()}) # of a batch that is a dict"
	case x.tensors() || x.last.Looked == 0 && x.failure != nil && x.failure.worker == nil:
		return x.raise(x.failure.Open, x.failure.Limit, x.last.Hard)
	}
	if 2*x.last.Socket > x.last.Looked {
		return "# close what is opened for each batch or sample, or open it once\n" +
			"with socket.create_connection(address) as s:\n" +
			"    data = s.recv(size)"
	}
	return "# close what is opened for each sample\n" +
		"with open(path, \"rb\") as f:\n" +
		"    data = f.read()"
}

// raise is the limit that leaves room for twice as many.
func (x *filled) raise(open, limit, hard int64) string {
	const least = 4096
	n := int64(1) << bits.Len64(uint64(max(2*open, 2*limit, least)-1))
	text := fmt.Sprintf("# in the shell that starts the training (docker run --ulimit nofile=%d, LimitNOFILE=%d of a unit)\nulimit -n %d\n\n"+
		"# or at the beginning of the program, under `if __name__ == \"__main__\":`; no descriptor is kept for a tensor then\n"+
		"torch.multiprocessing.set_sharing_strategy(\"file_system\")", n, n, n)
	if hard > 0 && n > hard {
		text = fmt.Sprintf("# the hard limit is %d: the administrator has to raise it, or:\n", hard) + text
	}
	return text
}
