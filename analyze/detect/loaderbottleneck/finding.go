package loaderbottleneck

import (
	"fmt"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/evidence/offcpu"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

func (w *waits) finding(certainty finding.Certainty) finding.Finding {
	return finding.Finding{
		Certainty: certainty,
		Title: fmt.Sprintf("The loop waits for data for %s of its time: for the %s", words.Percent(w.worst.Share()),
			title(w.limits().Name)),
		Evidence: w.evidence(),
		Cost:     w.cost(),
		Fix:      w.fix(),
		Facts:    w,
	}
}

// title of a stage, in a sentence.
func title(stage string) string {
	if stage == looptime.Fetch {
		return "fetch (dataset and transforms)"
	}
	return stage
}

func (w *waits) evidence() []finding.Evidence {
	short, _ := w.worst.Without(longest)
	list := []finding.Evidence{{
		Text: fmt.Sprintf("In %s the loop took %s from the first delivery to the last; %s of it were in next(), "+
			"%s without the longest %s of the waits.",
			words.Count(len(w.worst.Passes), "pass"), words.Seconds(w.worst.Total.Seconds()), words.Seconds(w.worst.Waited.Seconds()),
			words.Percent(short), words.Percent(longest)),
		Refs: w.worst.Refs,
	}, {Text: w.stages()}}
	for _, text := range []string{w.processors(), w.blocked()} {
		if text != "" {
			list = append(list, finding.Evidence{Text: text})
		}
	}
	for _, s := range w.Stragglers() {
		list = append(list, finding.Evidence{Text: straggler(s)})
	}
	if n := w.worst.Repeat; len(n) > 0 {
		list = append(list, finding.Evidence{Text: words.Upper(words.Ints("sample", n)) + " was in slow batches of several passes."})
	}
	for i, s := range w.worst.Slow {
		if i == 3 {
			break
		}
		list = append(list, finding.Evidence{Text: slow(s), Detail: true,
			Refs: []finding.Ref{{Part: w.worst.Part().Name, Table: "batch_fetch", Seq: s.Seq}}})
	}
	return list
}

func slow(s looptime.Slow) string {
	text := fmt.Sprintf("Batch %d of pass %d took %s to fetch", s.Batch, s.Pass, milli(time.Duration(s.NS)))
	if s.Worker >= 0 {
		text += fmt.Sprintf(" in worker %d", s.Worker)
	}
	if len(s.Indices) > 0 {
		text += ": " + words.Ints("sample", s.Indices)
	}
	return text + "."
}

func straggler(s looptime.Straggler) string {
	who := fmt.Sprintf("Worker %d", s.Worker)
	switch {
	case s.Worker < 0:
		who = fmt.Sprintf("Rank %d", s.Rank)
	case s.Rank >= 0:
		who += fmt.Sprintf(" of rank %d", s.Rank)
	}
	return fmt.Sprintf("%s takes %s for a batch, the others %s: the loop takes the batches in order, and waits for it.", who,
		milli(s.Mean), milli(s.Others))
}

// stages says what the waiting was for, and what one batch takes.
func (w *waits) stages() string {
	var parts []string
	for _, s := range w.worst.Stages {
		if share := s.Waited.Seconds() / w.worst.Waited.Seconds(); share >= 0.01 {
			parts = append(parts, fmt.Sprintf("%s %s (%s a batch)", s.Name, words.Percent(share), milli(s.Mean())))
		}
	}
	who := "the training process fetches itself"
	if n := len(w.worst.Workers); n > 0 {
		who = words.Count(n, "worker")
	}
	step := w.worst.Step() / time.Duration(w.worst.Delivered)
	return fmt.Sprintf("Of the waiting: %s; %s; a step takes %s.", strings.Join(parts, ", "), who, milli(step))
}

// processors says what the fetches did with their time.
func (w *waits) processors() string {
	r := w.worst
	busy, ok := r.Computing()
	if !ok || r.Processors.Count == 0 {
		return ""
	}
	text := fmt.Sprintf("A fetch has a processor for %s of its time", words.Percent(min(busy, 1)))
	if held, ok := r.Held(); ok && len(r.Workers) > 0 {
		text += fmt.Sprintf(" and waits for one for %s", words.Percent(held))
	}
	text += fmt.Sprintf("; the run may use %.3g", r.Processors.Count)
	if r.Processors.Group != "" {
		text += " (the quota of control group " + r.Processors.Group + ")"
	}
	if r.Processors.Others >= 0.5 {
		text += fmt.Sprintf(", and other programs take %.1f", r.Processors.Others)
	}
	return text + "."
}

// blocked says what the fetches of workers wait for, as far as it is much.
func (w *waits) blocked() string {
	const told = 0.05
	var parts []string
	for _, part := range w.in.Parts() {
		if part.Share >= told {
			parts = append(parts, fmt.Sprintf("%s (%s of its time)", part.Kind, words.Percent(part.Share)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "A fetch is blocked in: " + strings.Join(parts, ", ") + "."
}

func milli(d time.Duration) string {
	if d >= 10*time.Second {
		return words.Seconds(d.Seconds())
	}
	return fmt.Sprintf("%.3g ms", float64(d)/1e6)
}

func (w *waits) cost() string {
	free := w.Free()
	text := fmt.Sprintf("%s of %s: %s a batch; if data were free %s", words.Seconds(w.worst.Waited.Seconds()),
		words.Seconds(w.worst.Total.Seconds()), milli(free.Now), milli(free.Batch))
	if a := w.worst.Accelerators(); a != "none" {
		text += " at least (what an accelerator does meanwhile is not counted)"
	}
	return text
}

// A change is worth it from so much gain on; of numbers of workers the smallest
// counts that gives nearly the most.
const (
	worth  = 1.08
	nearly = 0.95
)

// fix is what a replay of the recorded times says of other settings.
func (w *waits) fix() string {
	lines := []string{"# " + w.First().At() + ", by replaying the recorded times through torch's queues:"}
	var most, best looptime.Forecast
	unknown := ""
	for _, c := range w.Changes() {
		f, why := w.Predict(c)
		if why != "" {
			unknown = why
			continue
		}
		if c.Workers > 0 && f.Gain() > most.Gain() {
			most = f
		}
		if c.Prefetch > 0 && f.Gain() > max(worth, best.Gain()) {
			best = f
		}
	}
	for _, c := range w.Changes() {
		if f, why := w.Predict(c); why == "" && c.Workers > 0 && f.Gain() >= nearly*most.Gain() {
			most = f
			break
		}
	}
	switch {
	case most.Gain() >= worth:
		lines = append(lines, fmt.Sprintf("DataLoader(..., num_workers=%d)  # %s in place of %s a batch, %.2g times as fast",
			most.Workers, milli(most.Batch), milli(most.Now), most.Gain()))
	case unknown != "":
		lines = append(lines, "# what more workers would give cannot be told: "+unknown)
	default:
		lines = append(lines, "# more workers give next to nothing: the processors are used up, or it is not the workers that limit")
	}
	if best.Gain() >= worth {
		lines = append(lines, fmt.Sprintf("DataLoader(..., prefetch_factor=%d)  # %s in place of %s a batch", best.Prefetch,
			milli(best.Batch), milli(best.Now)))
	}
	stage := w.limits()
	if share := w.in.Files(); stage.Name == looptime.Fetch && share >= computes {
		how := "keep them on a faster disk, or in fewer and larger ones"
		if w.in.Share(w.in.In[offcpu.Pages]) > share/2 {
			how = "they are mapped, or memory was swapped out: a faster disk, or more memory"
		}
		lines = append(lines, fmt.Sprintf("# a fetch waits for files for %s of its time: %s", words.Percent(share), how))
	}
	if f, why := w.Predict(looptime.Change{Faster: stage.Name, Times: 2}); why == "" {
		lines = append(lines, fmt.Sprintf("# %s in half the time: %s a batch", stage.Name, milli(f.Batch)))
	}
	return strings.Join(lines, "\n")
}
