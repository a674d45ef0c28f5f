package splitleak

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/samplers"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

func (v *verdict) finding() (f finding.Finding) {
	e := v.worst
	train := v.ledger.Passes[e.shown[0].trained.Pass] // the pass in which the first of them was trained on
	f.Certainty, f.Facts = v.certainty(e), v
	f.Loader.At = e.pass.Loader.At()
	scale := v.ledger.Scale()
	leaked, all, evaluations := v.union()
	n, of := int64(leaked*scale), int64(all*scale)
	f.Title = fmt.Sprintf("%s of %s samples that are evaluated have been trained on", words.Number(n), words.Number(of))
	if scale > 1 {
		f.Title = "About " + f.Title
	}
	f.Cost = fmt.Sprintf("%.0f %% of what is evaluated the model has seen: its error there says nothing about new samples",
		100*float64(n)/float64(of))
	f.Evidence = append(f.Evidence, e.example(train), finding.Evidence{Text: fmt.Sprintf("Their indices: %s.", e.indices())},
		finding.Evidence{Text: e.cause(train)})
	if leaked != e.leaked || all != e.samples {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("These are the samples of %s; in pass %d they are %s.",
			words.Count(evaluations, "evaluation"), e.pass.Number, words.Share(e.leaked, e.samples))})
	}
	if compared := e.compared(); compared != "" {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: compared})
	}
	if left := v.left(); left != "" {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: words.Upper(left) + "."})
	}
	f.Fix = e.fix(train)
	switch {
	case f.Certainty > finding.Note:
	case e.leaked == e.samples:
		f.Title = "All samples that are evaluated have been trained on: this is the error in training"
	case e.leaked+e.dealt == e.samples:
		f.Title = "All samples that are evaluated are dealt to the training: this is the error in training"
	default:
		f.Title = "All samples that were trained on are evaluated, and others"
	}
	return f
}

// union counts the different samples of all evaluations that are like the one that
// is told about.
func (v *verdict) union() (leaked, all, evaluations int) {
	asked, leaks := map[uint32]bool{}, map[uint32]bool{}
	for _, e := range v.evals {
		if v.certainty(e) != v.certainty(v.worst) {
			continue
		}
		evaluations++
		for _, n := range e.asked {
			asked[n] = true
		}
		for _, n := range e.leaks {
			leaks[n] = true
		}
	}
	return len(leaks), len(asked), evaluations
}

// compared says what came of the contents of the samples.
func (e *evaluation) compared() string {
	switch {
	case e.other() && e.alike == 0:
		return fmt.Sprintf("What they contained in training was compared %s times with the evaluation, and was another each time; "+
			"the fetches draw random numbers.", words.Number(int64(e.unlike)))
	case e.confirmed():
		return fmt.Sprintf("What they contain was compared %s times with what training had at their indices: it was the same, "+
			"bit for bit, %s times.",
			words.Number(int64(e.alike+e.unlike)), words.Number(int64(e.alike)))
	}
	return ""
}

// example is one of the samples, and who was given it.
func (e *evaluation) example(train *samples.Pass) finding.Evidence {
	x := e.shown[0]
	return finding.Evidence{
		Text: fmt.Sprintf("Sample %d, for example: the loader of %s was given it in batch %d of its pass %d%s, and this loader in batch %d "+
			"of pass %d%s.",
			x.index, train.Loader.At(), x.trained.Batch, train.Number, onRank(train.Loader), x.eval.Batch, e.pass.Number, onRank(e.pass.Loader)),
		Refs: []finding.Ref{made(e.pass), made(train)},
	}
}

// made is the row of the DataLoader object that a pass is of.
func made(p *samples.Pass) finding.Ref {
	return finding.Ref{Part: p.Loader.Process.Part.Name, Table: "loader", Seq: p.Object.Seq}
}

// fix is one split: across ranks with loaders and samplers as they are.
func (e *evaluation) fix(train *samples.Pass) string {
	where := train.Loader.At()
	if at := e.pass.Loader.At(); at != where {
		where += " and " + at
	}
	if e.across() {
		return fmt.Sprintf(`# for %s: one split on all ranks, by a generator of its own, with one seed `+
			`(random_split draws from torch's, which seed + rank sets apart)
train, val = torch.utils.data.random_split(dataset, [len(dataset) - n_val, n_val], generator=torch.Generator().manual_seed(0))`, where)
	}
	return fmt.Sprintf(`# one split, made once, for %s
generator = torch.Generator().manual_seed(0)
train, val = torch.utils.data.random_split(dataset, [len(dataset) - n_val, n_val], generator=generator)
train_loader = DataLoader(train, batch_size=%s, %s)
val_loader = DataLoader(val, batch_size=%s)`, where, size(train), dealt(train), size(e.pass))
}

// dealt is how the training loader hands out a part of the split.
func dealt(train *samples.Pass) string {
	if samplers.SharingOf(train.Object) == samplers.Distributed {
		return "sampler=torch.utils.data.DistributedSampler(train)"
	}
	return "shuffle=True"
}

func size(p *samples.Pass) string {
	if p.Object.BatchSize > 0 {
		return fmt.Sprint(p.Object.BatchSize)
	}
	return "..."
}

func onRank(l *timeline.Loader) string {
	if l.Rank() < 0 {
		return ""
	}
	return fmt.Sprintf(" on rank %d", l.Rank())
}

// indices of the first of them.
func (e *evaluation) indices() string {
	var all []string
	for _, x := range e.shown {
		all = append(all, strconv.FormatInt(x.index, 10))
	}
	if e.leaked > len(e.shown) {
		all = append(all, "...")
	}
	return strings.Join(all, ", ")
}

const subset = "torch.utils.data.dataset.Subset"

// cause says how the two came to have samples in common, as far as it is seen.
func (e *evaluation) cause(train *samples.Pass) string {
	a, b := train.Object.DatasetClass, e.pass.Object.DatasetClass
	switch {
	case e.across():
		here, there := e.pass.Loader.Rank(), train.Loader.Rank()
		return fmt.Sprintf("Rank %d trains on none of them itself: what it holds back, rank %d trains on. Each rank has divided the samples "+
			"in a way of its own, and the gradients of both make one model.", here, there)
	case a == subset && b == subset:
		return "Both loaders are over a Subset of one and the same dataset object, and these were not made by one split: two calls of " +
			"random_split draw two different ones."
	case train.Object.DatasetID == e.pass.Object.DatasetID && train.Object.DatasetID != 0:
		return "Both loaders are over one and the same dataset object; what each of them takes of it, its sampler says."
	}
	return "The samples of both loaders come from one and the same dataset object in the end."
}
