package samples

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/digests"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Read is what one worker read in one pass, of what was looked at.
type Read struct {
	Worker  *timeline.WorkerPass
	Samples int // fetched

	digests []digest // by position: of batches that were delivered
	names   []string // of the parts of its samples; nil: not told
	row     uint64   // the first one in the table
	rows    bool     // there is one
}

// read sorts the digests by worker.
func (j *Attribution) read(t *timeline.Timeline) {
	for tp, p := range j.ledger.parts {
		for s, n := range p.fetched {
			if w := t.Worker(tp, s.proc, s.loader, s.pass, s.worker); w != nil {
				j.readOf(w).Samples = n
			}
		}
		for s, seq := range p.rows {
			if w := t.Worker(tp, s.proc, s.loader, s.pass, s.worker); w != nil {
				r := j.readOf(w)
				r.row, r.rows, r.names = seq, true, p.names[s]
			}
		}
	}
	workers := make([]*timeline.WorkerPass, len(j.ledger.streams))
	for i, s := range j.ledger.streams {
		if s.worker != asked {
			workers[i] = t.Worker(s.part, s.proc, s.loader, s.pass, s.worker)
		}
	}
	for _, d := range j.ledger.digests.Release() {
		if w := workers[d.stream]; w != nil && delivered(w.Pass, d.batch) {
			r := j.readOf(w)
			r.digests = append(r.digests, d)
		}
	}
	for _, r := range j.reads {
		slices.SortStableFunc(r.digests, func(a, b digest) int { return cmp.Compare(a.position, b.position) })
	}
}

func (j *Attribution) readOf(w *timeline.WorkerPass) *Read {
	if j.reads[w] == nil {
		j.reads[w] = &Read{Worker: w}
	}
	return j.reads[w]
}

// Read is what a worker read; nil if nothing of it is known.
func (j *Attribution) Read(w *timeline.WorkerPass) *Read { return j.reads[w] }

// Looked is how many of its samples were looked at, and have something in them
// to be compared.
func (r *Read) Looked() (n int) {
	for i := range r.digests {
		if r.digests[i].Tells() {
			n++
		}
	}
	return n
}

// Fixed reports whether two contents of a loader's samples that differ are two
// samples, as far as generators can be seen: random numbers were drawn in none of
// its fetches, and it is samples that the dataset hands out; or the contents of one
// pass come again in another, so that those numbers are for the order alone.
func (j *Attribution) Fixed(l *timeline.Loader) bool {
	return !j.Drew(l) && !HandsOutBatches(l) || j.Recurs(l)
}

// Recurs reports whether two contents of a loader's samples that differ are two
// samples: those of one pass come again in another. That no random numbers were
// seen to be drawn says less: a generator may be out of reach. Of what collate
// reads by key it is the rows of the batch that come again.
func (j *Attribution) Recurs(l *timeline.Loader) bool {
	again, ok := j.again[l]
	if !ok {
		again = j.recurs(l)
		j.again[l] = again
	}
	return again
}

// Unfixed says why contents of a loader that does not recur may differ and be one
// sample's.
func (j *Attribution) Unfixed(l *timeline.Loader) string {
	switch {
	case j.Drew(l):
		return words.ContentsDiffer
	case HandsOutBatches(l):
		return words.BatchesDiffer
	case len(l.Passes) < 2:
		return words.OnePassOfContents
	}
	return words.ContentsNeverAgain
}

// HandsOutBatches reports whether the dataset of a loader hands out batches
// (batch_size=None), not samples.
func HandsOutBatches(l *timeline.Loader) bool { return l.First().Batched == "no" }

// Drew reports whether random numbers were drawn in fetches of a loader.
func (j *Attribution) Drew(l *timeline.Loader) bool {
	part := j.ledger.parts[l.Process.Part]
	for _, p := range l.Passes {
		for _, w := range p.Workers {
			if w.Process != nil && part != nil && part.drew[w.Process.Proc] {
				return true
			}
		}
	}
	return false
}

// recurs reports whether nearly all that a pass of several delivered, as far as it
// was looked at, came in another pass as well.
func (j *Attribution) recurs(l *timeline.Loader) bool {
	in := map[digests.Sum]*timeline.Pass{} // the only pass so far; nil: several
	of := map[*timeline.Pass][]digests.Sum{}
	for _, p := range l.Passes {
		for _, w := range p.Workers {
			r := j.reads[w]
			if r == nil {
				continue
			}
			by := r.basis()
			for i := range r.digests {
				k, ok := r.digests[i].key(by)
				if !ok {
					continue
				}
				of[p] = append(of[p], k)
				if first, seen := in[k]; !seen {
					in[k] = p
				} else if first != p {
					in[k] = nil
				}
			}
		}
	}
	for _, keys := range of {
		again := map[digests.Sum]bool{}
		n := 0
		for _, k := range keys {
			if in[k] == nil {
				again[k] = true
				n++
			}
		}
		if len(again) >= enoughContents && 10*n >= 9*len(keys) {
			return true
		}
	}
	return false
}

// basis is what stands for the samples of a read: themselves, or what has become of
// them in the batch, where collate may read by what they hold.
func (r *Read) basis() Basis {
	some := false
	for i := range r.digests {
		switch d := &r.digests[i]; {
		case d.Rowed.Known():
			return Rows
		case d.Read() == digests.Some:
			some = true
		}
	}
	if some && !slices.ContainsFunc(r.digests, func(d digest) bool { return d.Whole() }) {
		return Chunks
	}
	return Whole
}

// Resamples is the class of a loader's dataset if its workers draw their shards
// anew by its name, or by that of a stage in it (WebDataset(resampled=True)); else
// "".
func (j *Attribution) Resamples(l *timeline.Loader) string {
	name := l.First().DatasetClass
	part := j.ledger.parts[l.Process.Part]
	for _, p := range l.Passes {
		for _, w := range p.Workers {
			if resampled.MatchString(name) || part != nil && w.Process != nil && part.resample[w.Process.Proc] {
				return name
			}
		}
	}
	return ""
}

// Seq is its first row in the table of digests.
func (r *Read) Seq() (uint64, bool) { return r.row, r.rows }

// Repeats reports whether a worker reads samples more than once itself: by
// repeat(), by draws with replacement, or because its samples are alike.
func (r *Read) Repeats() bool {
	n, different := 0, map[digests.Sum]bool{}
	for i := range r.digests {
		if d := &r.digests[i]; !d.Empty() {
			n++
			different[d.Content] = true
		}
	}
	return n >= enoughContents && 10*len(different) < 9*n
}

// Contents is what was looked at of the samples that a pass was given, by their
// index in the dataset of its loader: as they were first.
func (j *Attribution) Contents(p *timeline.Pass) map[int64]digests.Digest {
	found := map[int64]digests.Digest{}
	for _, w := range p.Workers {
		r := j.reads[w]
		if r == nil {
			continue
		}
		for i := range r.digests {
			d := &r.digests[i]
			if _, ok := found[d.index]; !ok && d.index >= 0 {
				found[d.index] = d.Digest
			}
		}
	}
	return found
}

// Together is what all workers of a pass read, as if it was the first one.
func (j *Attribution) Together(p *timeline.Pass) *Read {
	all := &Read{}
	for _, w := range p.Workers {
		r := j.reads[w]
		if r == nil {
			continue
		}
		if all.Worker == nil {
			all.Worker, all.row, all.rows = w, r.row, r.rows
		}
		all.Samples += r.Samples
		all.digests = append(all.digests, r.digests...)
	}
	return all
}
