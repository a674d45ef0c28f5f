// Package cpuoversubscribed is the rule cpu-oversubscribed: the run has more threads
// at work than processors, and the training process waits for one.
// docs/rules/cpu-oversubscribed.md explains it.
package cpuoversubscribed

import (
	"fmt"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "cpu-oversubscribed",
	Title:   "More threads are at work than there are processors",
	Sources: []collect.Any{looptime.Source},
	Excuses: []detect.Excuse{{
		Text:     "other programs on the machine took the processors.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool { return f.Facts.(*share).own() },
	}},
	Judge: judge,
}

// From when on waiting for processors is worth a word.
const (
	shortest = 10 * time.Second // of the loop
	least    = 3 * time.Second  // waited
	matters  = 0.10             // of the loop's time
	stopped  = 0.25             // of the periods of a quota
	full     = 0.75             // of the processors that the run may use
)

// share is what one rank got of the processors.
type share struct {
	*detect.Case
	rank *looptime.Rank
	held float64 // of its loop's time the training process waited for a processor
	used float64 // processors that its processes used, in the loop
}

func judge(c *detect.Case) detect.Verdict {
	l := detect.Of(c, looptime.Source).Of(c.Loaders)
	if l == nil {
		return detect.CannotTell("nothing was delivered")
	}
	var w *share
	for _, r := range l.Ranks {
		if s := shareOf(c, r); w == nil || s.held > w.held {
			w = s
		}
	}
	p := w.rank.Processors
	switch {
	case c.Loaders.Role() == timeline.Eval:
		return detect.NotApplicable("an evaluation")
	case w.rank.Total < shortest:
		return detect.CannotTell(fmt.Sprintf("the loop ran for %s, which is too short", words.Seconds(w.rank.Total.Seconds())))
	case p.Count <= 0 || !w.rank.Main.Timed || w.rank.Main.Wall == 0:
		return detect.CannotTell("how long the training process waited for processors is not in the trace")
	case p.Stopped >= stopped && time.Duration(p.StoppedNS) >= least:
		return detect.Found(w.amount(), w.finding())
	case w.held < matters:
		return detect.Clean(w.amount())
	case w.waited() < least:
		return detect.Clean(w.amount())
	case w.used < full*p.Count || p.Others < 0:
		return detect.CannotTell(w.amount() + ", but its own processes did not fill what it may use: other programs took them")
	}
	return detect.Found(w.amount(), w.finding())
}

func shareOf(c *detect.Case, r *looptime.Rank) *share {
	s := &share{Case: c, rank: r}
	if r.Main.Wall > 0 {
		s.held = float64(r.Main.Delay) / float64(r.Main.Wall)
		s.used = float64(r.Main.CPU) / float64(r.Main.Wall)
	}
	if r.Fetchers.Wall > 0 {
		s.used += float64(len(r.Workers)) * float64(r.Fetchers.CPU) / float64(r.Fetchers.Wall)
	}
	return s
}

// own reports whether it is the run's own threads that fill the processors: a quota
// stopped it, or others found room beside what the run may use.
func (s *share) own() bool {
	p := s.rank.Processors
	return p.Stopped >= stopped || p.Others >= 0 && p.Others-(float64(p.Online)-p.Count) < 0.1*p.Count
}

// waited is how long the training process waited for a processor.
func (s *share) waited() time.Duration { return time.Duration(s.held * float64(s.rank.Total)) }

func (s *share) amount() string {
	return fmt.Sprintf("the training process waited for a processor for %s of the loop's time (%s); the run used %.1f of %.3g",
		words.Percent(s.held), words.Seconds(s.waited().Seconds()), s.used, s.rank.Processors.Count)
}

func (s *share) finding() finding.Finding {
	p := s.rank.Processors
	part := s.rank.Part().Name
	var refs []finding.Ref
	for _, seq := range p.Rows {
		refs = append(refs, finding.Ref{Part: part, Table: "cpu", Seq: seq})
	}
	title := fmt.Sprintf("The training process waits for a processor for %s of its loop: its workers and threads share %.3g",
		words.Percent(s.held), p.Count)
	list := []finding.Evidence{{Text: words.Upper(s.amount()) + ".", Refs: refs}}
	if p.Stopped >= stopped {
		title = fmt.Sprintf("The quota of %.3g processors was used up in %s of its periods: the run stood still for %s", p.Count,
			words.Percent(p.Stopped), words.Seconds(time.Duration(p.StoppedNS).Seconds()))
		text := fmt.Sprintf("Control group %s was stopped in %s of the periods of its quota (cpu.stat), for %s in all, its processors added up.",
			p.Group, words.Percent(p.Stopped), words.Seconds(time.Duration(p.StoppedNS).Seconds()))
		list = append(list, finding.Evidence{Text: text, Refs: refs})
	}
	if n := len(s.rank.Workers); n > 0 {
		held, _ := s.rank.Held()
		used := float64(n) * float64(s.rank.Fetchers.CPU) / float64(max(s.rank.Fetchers.Wall, 1))
		text := fmt.Sprintf("%s used %.1f processors together; each waited for one for %s of its time.", words.Count(n, "worker"), used,
			words.Percent(held))
		list = append(list, finding.Evidence{Text: text})
	}
	return finding.Finding{
		Certainty: finding.Proven,
		Title:     title,
		Evidence:  list,
		Cost:      fmt.Sprintf("%s of %s in the loop", words.Seconds(s.waited().Seconds()), words.Seconds(s.rank.Total.Seconds())),
		Fix:       s.fix(),
		Facts:     s,
	}
}

// fix leaves the training process what it used.
func (s *share) fix() string {
	main := float64(s.rank.Main.CPU) / float64(max(s.rank.Main.Wall, 1))
	left := int(max(s.rank.Processors.Count-main, 1))
	return fmt.Sprintf("# %s: no more busy threads than processors\nDataLoader(..., num_workers=%d)"+
		"  # or a larger quota (--cpus-per-task, resources.limits.cpu)\n\n"+
		"# at the top of the program, and in worker_init_fn for libraries with threads of their own (OpenCV, NumPy, Arrow)\n"+
		"torch.set_num_threads(%d)\ncv2.setNumThreads(0)", s.First().At(), left, max(int(main), 1))
}
