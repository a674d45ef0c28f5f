package unevenshards

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

func (r *ranks) finding() finding.Finding {
	s := r.worst
	together := "It was not seen that the gradients of these ranks are reduced together."
	if r.Reduced(s.ended.Process, s.left.Process) {
		together = "The gradients of these ranks are reduced together (DDP or FSDP): no rank can finish a step alone."
	}
	return finding.Finding{
		Certainty: finding.Proven,
		Title: fmt.Sprintf("%s out of data after %s of pass %d, rank %d is left alone with more",
			words.Upper(r.ended()), words.Count(s.pass.Delivered, "batch"), s.pass.Number, s.left.Rank()),
		Evidence: []finding.Evidence{r.counts(), r.steps(), {Text: together}},
		Cost:     fmt.Sprintf("the training stops at step %d; %s", s.left.Process.Steps, r.unused()),
		Fix:      fix(s.ended),
		Facts:    s.doubts,
	}
}

// counts is the batches of each rank in the pass that is told about.
func (r *ranks) counts() finding.Evidence {
	var counts []string
	var refs []finding.Ref
	delivered := detect.Of(r.Case, batches.Delivered)
	for _, l := range r.sameTraining() {
		p := r.matching(l)
		how := "was still in the pass"
		if p.Exhausted {
			how = "to the end of its data"
		}
		refs = append(refs, finding.Ref{Part: l.Process.Part.Name, Table: "batch_next", Seq: delivered.Of(p).Seq})
		counts = append(counts, fmt.Sprintf("rank %d %d (%s)", l.Rank(), p.Delivered, how))
	}
	return finding.Evidence{Text: fmt.Sprintf("Batches delivered in pass %d: %s.", r.worst.pass.Number, words.List(counts)), Refs: refs}
}

// steps is how often the two ranks stepped, and where the longer one stopped.
func (r *ranks) steps() finding.Evidence {
	s := r.worst
	a, b := s.ended.Rank(), s.left.Rank()
	return finding.Evidence{Text: fmt.Sprintf(
		"Optimizer steps in all: rank %d %d, rank %d %d. Rank %d began no other pass; rank %d stopped in pass %d after %s: it %s.",
		a, s.ended.Process.Steps, b, s.left.Process.Steps, a, b, s.last.Number, words.Count(s.last.Delivered, "batch"), s.how)}
}

// ended names the ranks that ended first.
func (r *ranks) ended() string {
	ranks := []int{r.worst.ended.Rank()}
	for _, l := range r.sameTraining() {
		if p := r.matching(l); p.Exhausted && p.Delivered <= r.worst.pass.Delivered {
			ranks = append(ranks, l.Rank())
		}
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	verb := " is"
	if len(ranks) > 1 {
		verb = " are"
	}
	return words.Ints("rank", ranks) + verb
}

// sameTraining is the ranks that run together with the one that ended, and have
// a pass of the number that is told about.
func (r *ranks) sameTraining() (list []*timeline.Loader) {
	ended := r.worst.ended
	for _, l := range r.Loaders {
		with := timeline.Together(l.Process, ended.Process) && r.Relation(l.Process, ended.Process) != timeline.Apart
		if l == ended || with && r.matching(l) != nil {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b *timeline.Loader) int { return cmp.Compare(a.Rank(), b.Rank()) })
	return list
}

// matching is the pass of a rank that is compared with the one that ended first.
func (r *ranks) matching(l *timeline.Loader) *timeline.Pass {
	if l == r.worst.left {
		return r.worst.longer
	}
	at := slices.Index(r.passes[r.worst.ended], r.worst.pass)
	if passes := r.passes[l]; at >= 0 && at < len(passes) {
		return passes[at]
	}
	return nil
}

// unused is what of the data was not trained on.
func (r *ranks) unused() string {
	s := r.worst
	if n := s.longer.Delivered - s.pass.Delivered; n > 1 || s.longer.Exhausted {
		return fmt.Sprintf("rank %d had at least %s more than rank %d in pass %d",
			s.left.Rank(), words.Count(n, "batch"), s.ended.Rank(), s.pass.Number)
	}
	return fmt.Sprintf("what rank %d has beyond %s is never used", s.left.Rank(), words.Count(s.pass.Delivered, "batch"))
}

func fix(l *timeline.Loader) string {
	o := l.First()
	if o.Iterable {
		return fmt.Sprintf(`# %s: deal out samples, not files: the shares differ by one at most. In __iter__ of %s:
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
shard, shards = rank, world
info = torch.utils.data.get_worker_info()
if info is not None:
    shard, shards = rank * info.num_workers + info.id, world * info.num_workers
even = len(samples) // shards * shards  # samples: all there are, on every rank and worker; what is left over is not used
for sample in itertools.islice(samples, shard, even, shards):
    yield sample`, l.At(), o.DatasetClass)
	}
	batch := "..."
	if o.BatchSize > 0 {
		batch = strconv.Itoa(int(o.BatchSize))
	}
	return fmt.Sprintf(`# %s: as many samples on each rank (the sampler repeats up to world size - 1 of them)
sampler = torch.utils.data.DistributedSampler(dataset, shuffle=True)  # the whole dataset, not a part of it for each rank
loader = DataLoader(dataset, batch_size=%s, sampler=sampler)
for epoch in range(epochs):
    sampler.set_epoch(epoch)`, l.At(), batch)
}
