package lastbatchsize1

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// shown is how many batches are shown one by one.
const shown = 4

func (s *seen) finding() finding.Finding {
	list := s.surest()
	f := finding.Finding{Certainty: s.certainty, Title: s.title(list), Cost: cost(list), Fix: fix(list)}
	for i, l := range list {
		if i == shown && len(list) > shown+1 {
			f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("%d more batches like these.", len(list)-i)})
			break
		}
		f.Evidence = append(f.Evidence, s.describe(l))
	}
	for _, l := range list {
		if e := refused(l.pass); e != nil && l.use == batches.Unseen {
			f.Evidence = append(f.Evidence, finding.Evidence{Text: "The program ended there: " + e.Type + ": " + e.Message,
				Refs: []finding.Ref{{Part: l.pass.Loader.Process.Part.Name, Table: "exception", Seq: e.Seq}}})
			break
		}
	}
	f.NotABugIf = "the model computes nothing over the samples of a batch (no BatchNorm in training mode, no contrastive loss): " +
		"then this is one noisy step a pass. dptrace does not know the layers of the model."
	if slices.ContainsFunc(list, func(l lone) bool { return l.sure == finding.Likely && l.pass.object.BatchSize < 0 }) {
		f.NotABugIf = "the batch sampler makes batches of one sample on purpose; or " + f.NotABugIf
	}
	return f
}

// origins tells where some batches came from.
func origins(list []lone) (leftOver, dropped bool) {
	for _, l := range list {
		leftOver = leftOver || l.origin != short
		dropped = dropped || l.origin == short
	}
	return
}

func (s *seen) title(list []lone) string {
	leftOver, dropped := origins(list)
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
	case leftOver && dropped:
		return fmt.Sprintf("Training on batches of one sample: %s, left over or short of samples, in %s",
			words.Count(len(list), "batch"), where)
	case dropped:
		return fmt.Sprintf("Training on batches of one sample: %s lost all other samples in the fetch, in %s",
			words.Count(len(list), "batch"), where)
	case len(list) > len(passes):
		return fmt.Sprintf("Training on batches of one sample: %s left over at the ends of %s", words.Count(len(list), "batch"), where)
	}
	return fmt.Sprintf("Training on one sample: the last batch of %s has no other", where)
}

func cost(list []lone) string {
	steps := 0
	for _, l := range list {
		if l.use == batches.Stepped {
			steps++
		}
	}
	cost := words.Count(len(list), "batch") + " of one sample"
	if steps > 0 {
		cost = fmt.Sprintf("%s on one sample each, in place of %s", words.Count(steps, "optimizer step"), others(list))
	}
	return cost + ". A BatchNorm in training mode normalises it by itself: no signal is left where it has one value per channel " +
		"(torch raises an error there), " +
		"and its running statistics take it in as a whole batch"
}

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
	q := l.pass.requests
	where := fmt.Sprintf("In pass %d", l.pass.Number)
	if r := l.pass.Loader.Rank(); r > 0 || r == 0 && len(s.Loaders) > 1 {
		where += fmt.Sprintf(" of rank %d", r)
	}
	var text string
	switch {
	case l.origin == short && l.of > 0:
		text = fmt.Sprintf("%s the sampler asked for up to %d samples in batch %d, and the fetch of %s brought one: the others were "+
			"dropped there",
			where, l.of, l.Batch, who(l.worker))
	case l.origin == short:
		text = fmt.Sprintf("%s batch %d of %s had one sample, in the midst of its share", where, l.Batch, who(l.worker))
	case l.table == "batch_fetch" && l.worker >= 0:
		text = fmt.Sprintf("%s batch %d, the last one of worker %d, had one sample: its share is 1 more than a multiple of %d",
			where, l.Batch, l.worker, full(l.pass))
	case l.origin == asked:
		text = fmt.Sprintf("%s the batch sampler asked for one sample in batch %d, in the midst of the pass", where, l.Batch)
	case q.Batches > 1 && q.Others == 0 && q.OnesInAll == 1:
		n := q.Batches - 1
		text = fmt.Sprintf("%s the sampler gave %d samples, %d × %d + 1, so batch %d had one", where, n*q.Most+1, n, q.Most, l.Batch)
	default:
		text = fmt.Sprintf("%s the last of %d batches, %d, had one sample", where, l.pass.delivered.Count, l.Batch)
	}
	switch l.use {
	case batches.Stepped:
		text += ". It was delivered, and an optimizer stepped before the loop asked for the next one."
	case batches.Unseen:
		text += ". It was delivered, and the loop asked for no other."
	default:
		text += ". It was delivered; an optimizer does not step after each batch here."
	}
	return finding.Evidence{Text: text, Refs: []finding.Ref{{Part: l.part, Table: l.table, Seq: l.Seq}}}
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
	leftOver, dropped := origins(list)
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
		default:
			code = append(code, fmt.Sprintf("# %s, in __iter__ of %s: leave out a batch of one sample\nif len(batch) > 1:\n    yield batch",
				at, o.BatchSampler))
		}
	}
	if dropped {
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
