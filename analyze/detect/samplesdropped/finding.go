package samplesdropped

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

func (s *seen) finding(c *detect.Case) finding.Finding {
	if s.worst.sampler > 0 {
		return s.worst.bySampler()
	}
	w, size := s.worst, s.worst.object.BatchSize
	left := detect.Of(c, batches.LeftOver)
	part := w.pass.Loader.Process.Part.Name
	var counts []string
	var refs []finding.Ref
	for _, worker := range w.workers {
		who := fmt.Sprintf("worker %d", worker.Number)
		if worker.Number < 0 {
			who = "the main process"
		}
		n := left.Of(worker)
		refs = append(refs, finding.Ref{Part: part, Table: "leftover", Seq: n.Seq})
		counts = append(counts, fmt.Sprintf("%s %d", who, n.Samples))
	}
	where := "a last batch"
	if len(w.workers) > 1 {
		where = fmt.Sprintf("%d workers with a last batch", len(w.workers))
	}
	all := w.dropped + w.got
	f := finding.Finding{Certainty: w.sure}
	f.Title = fmt.Sprintf("drop_last drops %d of %d samples in pass %d, in %s of its own each", w.dropped, all, w.pass.Number, where)
	f.Evidence = []finding.Evidence{{Refs: refs, Text: fmt.Sprintf(
		"In pass %d the dataset had come to its end with samples that made no batch of %d: %s. They were dropped.",
		w.pass.Number, size, words.List(counts))}}
	if w.sure > finding.Note {
		f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf(
			"Together these are %s of %d and %d more samples.", words.Count(w.batches(), "batch"), size, w.dropped%int(size))})
	}
	f.Cost = fmt.Sprintf("%s (%.1f %% of the pass) that were read and never delivered, in %s",
		words.Count(w.dropped, "sample"), 100*float64(w.dropped)/float64(all), words.Count(s.losing, "pass"))
	f.Fix = w.fix()
	return f
}

func (l *lost) fix() string {
	if l.sure == finding.Note {
		return fmt.Sprintf("# %s: to keep the last samples\nDataLoader(..., drop_last=False)", l.pass.Loader.At())
	}
	return fmt.Sprintf(`# %s: keep each worker's last batch, which has fewer samples
DataLoader(..., drop_last=False)
# or, if every batch has to have %d: one worker has one last batch
DataLoader(..., num_workers=1, drop_last=True)`, l.pass.Loader.At(), l.object.BatchSize)
}

// bySampler is the note on a distributed sampler with drop_last.
func (l *lost) bySampler() finding.Finding {
	o := l.object
	return finding.Finding{
		Certainty: l.sure,
		Title: fmt.Sprintf("The sampler leaves out %d of %s samples in each pass, to give %d ranks as many each",
			l.sampler, words.Number(o.Length), o.SamplerReplicas),
		Evidence: []finding.Evidence{{
			Refs: []finding.Ref{{Part: l.pass.Loader.Process.Part.Name, Table: "loader", Seq: o.Seq}},
			Text: fmt.Sprintf("%s deals out %s samples; the dataset has %s.", o.Sampler, words.Number(o.SamplerTotal), words.Number(o.Length)),
		}},
		Cost: fmt.Sprintf("%s a pass, others in each pass if it shuffles", words.Count(l.sampler, "sample")),
		Fix:  fmt.Sprintf("# %s: repeat some samples instead\nDistributedSampler(dataset, drop_last=False)", l.pass.Loader.At()),
	}
}
