package swallowedcrash

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// broken is a training that an error of its loader ended inside of a process which
// went on to end well.
type broken struct {
	*timeline.Process
	pass   *timeline.Pass
	raised *traces.Exception
}

// inside finds trainings whose last pass an error ended, although their process,
// and the command, ended with 0.
func (r *run) inside() (all []*broken) {
	if r.code != 0 {
		return nil
	}
	for _, p := range r.Processes {
		if p.Part != r.part || p.EndedBadly() || p.Kind == "worker" || uncaught(p) != nil {
			continue
		}
		last := lastPass(p)
		if last == nil || last.How != "error" || last.Role == timeline.Eval || p.Steps == 0 {
			continue
		}
		if raised := ending(p, last); raised != nil {
			all = append(all, &broken{p, last, raised})
		}
	}
	return all
}

// lastPass of a process, of all its loaders.
func lastPass(p *timeline.Process) (last *timeline.Pass) {
	for _, l := range p.Loaders {
		for _, pass := range l.Passes {
			if last == nil || pass.Begin > last.Begin {
				last = pass
			}
		}
	}
	return last
}

// ending is the error that came out of a pass last.
func ending(p *timeline.Process, pass *timeline.Pass) *traces.Exception {
	for _, e := range slices.Backward(p.Raised) {
		of := e.Loader == pass.Object && e.Pass == pass.Recorded && e.Stage != "exit"
		if of && e.Type != "KeyboardInterrupt" && e.Type != "SystemExit" && e.Type != "StopIteration" && e.Type != "GeneratorExit" {
			return &e
		}
	}
	return nil
}

func (r *run) brokenOff(b *broken) finding.Finding {
	e := b.raised
	text := e.Type
	if message, _, _ := strings.Cut(strings.TrimSpace(e.Message), "\n"); message != "" {
		text += ": " + message
	}
	ref := finding.Ref{Part: r.part.Name, Table: "exception", Seq: e.Seq}
	return finding.Finding{
		Certainty: finding.Proven,
		Proof:     "hook",
		Facts:     []doubt{handled},
		Title: fmt.Sprintf("%s ended pass %d of the loader at %s after %s, and the program exited with 0", words.Last(e.Type), b.pass.Number,
			b.pass.Loader.At(), words.Count(b.pass.Delivered, "batch")),
		Evidence: []finding.Evidence{
			{Text: fmt.Sprintf("The loader raised %s, at %s in %s.", text, timeline.Place(b.Cwd, e.File, e.Line), e.Func), Refs: []finding.Ref{ref}},
			{Text: fmt.Sprintf("No pass of any loader came after it; the process (pid %d) went on for %s and ended well.", b.Pid,
				seconds(b.End-e.TsNS))},
		},
		Cost: fmt.Sprintf("the training ended after %s, and the caller was told that all went well",
			words.Count(int(b.Steps), "optimizer step")),
		Fix: "except Exception:                  # where the error of the loop is caught\n    traceback.print_exc()\n    sys.exit(1)" +
			"                    # or raise: the caller has to know",
		Verify: "Record again: " + r.RecordAgain() + " and see that its exit code is not 0, or that the pass comes to its end.",
	}
}
