package uneven

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

func (v *verdict) finding() finding.Finding {
	s := v.worst
	f := v.group.Finding(v.Timeline, id, dp)
	f.Certainty = s.certainty
	n := s.pass.Delivered
	f.Title = fmt.Sprintf("%s out of data after %s of pass %d, rank %d is left alone with more", words.Upper(v.ended()), words.Count(n, "batch"), s.pass.Number, s.left.Rank())
	f.Cost = fmt.Sprintf("the training stops at step %d; %s", s.left.Process.Steps, v.unused())
	var counts []string
	var refs []finding.Ref
	for _, l := range v.sameTraining() {
		p := v.matching(l)
		how := "was still in the pass"
		if p.Exhausted {
			how = "to the end of its data"
		}
		refs = append(refs, finding.Ref{Part: l.Process.Part.Name, Table: "batch_next", Seq: v.d.Of(p).Last})
		counts = append(counts, fmt.Sprintf("rank %d %d (%s)", l.Rank(), p.Delivered, how))
	}
	f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("Batches delivered in pass %d: %s.", s.pass.Number, words.List(counts)), Refs: refs})
	f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("Optimizer steps in all: rank %d %d, rank %d %d. Rank %d began no other pass; rank %d stopped in pass %d after %s: it %s.",
		s.ended.Rank(), s.ended.Process.Steps, s.left.Rank(), s.left.Process.Steps, s.ended.Rank(), s.left.Rank(), s.last.Number, words.Count(s.last.Delivered, "batch"), s.how)})
	if v.Reduced(s.ended.Process, s.left.Process) {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: "The gradients of these ranks are reduced together (DDP or FSDP): no rank can finish a step alone."})
	} else {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: "It was not seen that the gradients of these ranks are reduced together."})
	}
	f.Fix = v.fix()
	f.NotABugIf = "the ranks agree on when to end, and the failure has another cause."
	return f
}

// ended names the ranks that ended first.
func (v *verdict) ended() string {
	ranks := []int{v.worst.ended.Rank()}
	for _, l := range v.sameTraining() {
		if p := v.matching(l); p.Exhausted && p.Delivered <= v.worst.pass.Delivered {
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
func (v *verdict) sameTraining() (list []*timeline.Loader) {
	for _, l := range v.group.Loaders {
		if l == v.worst.ended || timeline.Together(l.Process, v.worst.ended.Process) && v.Relation(l.Process, v.worst.ended.Process) != timeline.Apart && v.matching(l) != nil {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b *timeline.Loader) int { return cmp.Compare(a.Rank(), b.Rank()) })
	return list
}

// matching is the pass of a rank that is compared with the one that ended first.
func (v *verdict) matching(l *timeline.Loader) *timeline.Pass {
	if l == v.worst.left {
		return v.worst.longer
	}
	at := slices.Index(v.passes[v.worst.ended], v.worst.pass)
	if passes := v.passes[l]; at >= 0 && at < len(passes) {
		return passes[at]
	}
	return nil
}

// unused is what of the data was not trained on.
func (v *verdict) unused() string {
	s := v.worst
	if n := s.longer.Delivered - s.pass.Delivered; n > 1 || s.longer.Exhausted {
		return fmt.Sprintf("rank %d had at least %s more than rank %d in pass %d", s.left.Rank(), words.Count(n, "batch"), s.ended.Rank(), s.pass.Number)
	}
	return fmt.Sprintf("what rank %d has beyond %s is never used", s.left.Rank(), words.Count(s.pass.Delivered, "batch"))
}

func (v *verdict) fix() string {
	l := v.worst.ended
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

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
