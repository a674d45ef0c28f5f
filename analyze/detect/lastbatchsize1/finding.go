package lastbatchsize1

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// shown is how many batches are shown one by one.
const shown = 4

// finding about batches that a batch norm took by itself.
func (s *seen) finding(list []lone) finding.Finding {
	f := finding.Finding{Certainty: finding.Proven, Title: s.title(list), Cost: cost(list), Fix: fix(list), Facts: list}
	f.Evidence = s.evidence(list)
	for _, l := range list {
		if e := refusal(l.pass); e != nil && l.use == refused {
			f.Evidence = append(f.Evidence, finding.Evidence{Text: "The program ended there: " + e.Type + ": " + e.Message,
				Refs: []finding.Ref{{Part: l.pass.Loader.Process.Part.Name, Table: "exception", Seq: e.Seq}}})
			break
		}
	}
	return f
}

// note about batches that no batch norm took.
func (s *seen) note(list []lone) finding.Finding {
	return finding.Finding{
		Certainty: finding.Note,
		Title:     s.title(list),
		Evidence:  s.evidence(list),
		Cost:      steps(list) + ": noisy, and nothing else is wrong with them. No batch norm in training mode was seen to take such a batch",
		Fix:       fix(list),
	}
}

func (s *seen) evidence(list []lone) (all []finding.Evidence) {
	for i, l := range list {
		if i == shown && len(list) > shown+1 {
			return append(all, finding.Evidence{Text: fmt.Sprintf("%d more batches like these.", len(list)-i)})
		}
		all = append(all, s.describe(l))
	}
	return all
}

// origins tells where some batches came from.
func origins(list []lone) (leftOver, lost bool) {
	for _, l := range list {
		isLost := l.origin == short || l.origin == dropped
		leftOver, lost = leftOver || !isLost, lost || isLost
	}
	return
}

func (s *seen) title(list []lone) string {
	leftOver, lost := origins(list)
	passes := map[*timeline.Pass]bool{}
	for _, l := range list {
		passes[l.pass.Pass] = true
	}
	all := 0
	for _, p := range s.Passes() {
		if !p.Abandoned && p.Delivered > 0 {
			all++
		}
	}
	where := words.Of(len(passes), all, "pass")
	switch {
	case leftOver && lost:
		return fmt.Sprintf("Training on batches of one sample: %s, left over or short of samples, in %s",
			words.Count(len(list), "batch"), where)
	case lost:
		return fmt.Sprintf("Training on batches of one sample: %s lost all other samples in the %s, in %s",
			words.Count(len(list), "batch"), place(list), where)
	case len(list) > len(passes):
		return fmt.Sprintf("Training on batches of one sample: %s left over at the ends of %s", words.Count(len(list), "batch"), where)
	}
	return fmt.Sprintf("Training on one sample: the last batch of %s has no other", where)
}

// place where batches lost their other samples.
func place(list []lone) string {
	if slices.ContainsFunc(list, func(l lone) bool { return l.origin == dropped }) {
		return "collate function"
	}
	return "fetch"
}

func cost(list []lone) string {
	return steps(list) + ". A BatchNorm in training mode normalised it by itself: no signal is left where it has one value per channel " +
		"(torch raises an error there), and its running statistics took it in as a whole batch"
}

// steps on batches of one sample: on nothing else, or on gradients that were
// accumulated over others as well.
func steps(list []lone) string {
	alone, together := 0, 0
	for _, l := range list {
		switch {
		case l.use != normed && l.use != stepped:
		case l.shared():
			together++
		default:
			alone++
		}
	}
	text := words.Count(len(list), "batch") + " of one sample"
	if alone > 0 {
		text = fmt.Sprintf("%s on one sample each, in place of %s", words.Count(alone, "optimizer step"), others(list))
	}
	switch {
	case together == len(list):
		text += ", in place of " + others(list) + ", in steps on the gradients of several batches"
	case together > 0:
		text += fmt.Sprintf(", and %s with the gradients of other batches", words.Count(together, "step"))
	}
	return text
}

// shared reports whether its step used the gradients of other batches as well.
func (l lone) shared() bool {
	at := l.pass.TrainedAt(l.batch)
	if at == 0 {
		return false
	}
	passes := l.pass.Loader.Passes
	for _, p := range passes[max(l.pass.Number-1, 0):min(l.pass.Number+2, len(passes))] { // gradients may be kept over the end of one
		for _, i := range []int{l.batch - 1, l.batch + 1, 0, p.Delivered - 1} {
			if (p != l.pass.Pass || i != l.batch) && i >= 0 && i < p.Delivered && near(p.TrainedAt(i), at) {
				return true
			}
		}
	}
	return false
}

// near reports whether two moments may be one: each pass has its own in units
// of a microsecond from its first.
func near(a, b int64) bool { return a != 0 && max(a-b, b-a) <= 2048 }

// others is the size of the other batches.
func others(list []lone) string {
	if n := full(list[0].pass); n > 0 {
		return fmt.Sprint(n)
	}
	return "a full batch"
}

func full(p pass) int {
	if n := int(p.object.BatchSize); n > 1 {
		return n
	}
	return p.requests.Most
}

func (s *seen) describe(l lone) finding.Evidence {
	where := fmt.Sprintf("In pass %d", l.pass.Number)
	if r := l.pass.Loader.Rank(); r > 0 || r == 0 && len(s.Loaders) > 1 {
		where += fmt.Sprintf(" of rank %d", r)
	}
	text := where + " " + howMade(l)
	switch l.use {
	case normed:
		text += ". A batch norm in training mode took it, and an optimizer stepped on its gradients."
	case stepped:
		text += ". An optimizer stepped on its gradients."
	default:
		text += ". A batch norm in training mode took it, and the loop asked for no other."
	}
	return finding.Evidence{Text: text, Refs: l.refs}
}

// howMade says where a batch of one row came from.
func howMade(l lone) string {
	q := l.pass.requests
	switch {
	case l.origin == dropped:
		return fmt.Sprintf("the sampler asked for up to %d samples in batch %d, and the batch that was delivered had one row: %s dropped "+
			"the others", l.asked, l.batch, collates(l.pass))
	case l.origin == short && l.asked > 0:
		return fmt.Sprintf("the sampler asked for up to %d samples in batch %d, and the fetch of %s brought one: the others were dropped "+
			"there", l.asked, l.batch, who(l.worker))
	case l.origin == short:
		return fmt.Sprintf("batch %d of %s had one sample, in the midst of its share", l.batch, who(l.worker))
	case l.origin == left && l.worker >= 0:
		return fmt.Sprintf("batch %d, the last one of worker %d, had one sample: its share is 1 more than a multiple of %d", l.batch, l.worker,
			full(l.pass))
	case l.origin == asked:
		return fmt.Sprintf("the batch sampler asked for one sample in batch %d, in the midst of the pass", l.batch)
	case q.Batches > 1 && q.Others == 0 && q.OnesInAll == 1:
		n := q.Batches - 1
		return fmt.Sprintf("the sampler gave %d samples, %d × %d + 1, so batch %d had one", n*q.Most+1, n, q.Most, l.batch)
	case l.origin == left:
		return fmt.Sprintf("the last of %d batches, %d, had one sample", l.pass.Delivered, l.batch)
	}
	return fmt.Sprintf("batch %d of %d had one row", l.batch, l.pass.Delivered)
}

// collates is the function that makes the batches.
func collates(p pass) string {
	if p.object.Collate == "" {
		return "the collate function"
	}
	return p.object.Collate
}

func who(worker int) string {
	if worker < 0 {
		return "the main process"
	}
	return fmt.Sprintf("worker %d", worker)
}

func fix(list []lone) string {
	l := list[0]
	o, at := l.pass.object, l.pass.Loader.At()
	leftOver, lost := origins(list)
	var code []string
	if leftOver {
		switch {
		case o.Iterable:
			code = append(code, fmt.Sprintf("# in the training loop over the loader of %s: pass over a batch of one. (drop_last=True would "+
				"drop the last, smaller batch of each worker.)\nif len(batch) < 2:  # of a tuple: batch[0]\n    continue",
				at))
		case o.BatchSize > 1:
			code = append(code, fmt.Sprintf("# %s: leave out the last, smaller batch%s\nDataLoader(..., batch_size=%d, drop_last=True)",
				at, another(o.Sampler), o.BatchSize))
		case o.BatchSampler == batchSampler:
			code = append(code, fmt.Sprintf("# %s: leave out the last, smaller batch%s\nBatchSampler(sampler, batch_size=%d, drop_last=True)",
				at, another(o.Sampler), full(l.pass)))
		case o.BatchSampler != "":
			code = append(code, fmt.Sprintf("# %s, in __iter__ of %s: leave out a batch of one sample\nif len(batch) > 1:\n    yield batch",
				at, o.BatchSampler))
		default:
			code = append(code, fmt.Sprintf("# in the training loop over the loader of %s: pass over a batch of one\nif len(batch) < 2:  # of a "+
				"tuple: batch[0]\n    continue", at))
		}
	}
	if lost {
		code = append(code, fmt.Sprintf("# %s: take out what cannot be used once, before the training, so that each batch gets all its "+
			"samples\nusable = [i for i in range(len(dataset)) if is_usable(dataset, i)]\nDataLoader(torch.utils.data.Subset(dataset, "+
			"usable), ...)",
			at))
	}
	return strings.Join(code, "\n\n")
}

// another says which samples drop_last leaves out.
func another(sampler string) string {
	switch {
	case strings.HasSuffix(sampler, ".RandomSampler"):
		return ": another sample in each pass, as the loader shuffles"
	case strings.HasSuffix(sampler, ".SequentialSampler"):
		return ". Without shuffle=True it is the same sample in each pass"
	}
	return ""
}
