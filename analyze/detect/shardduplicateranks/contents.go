package shardduplicateranks

import (
	"fmt"
	"math"

	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// contents compares what the samples of an IterableDataset contain: of the same
// worker of each rank, as ranks that read the same do so with the same workers.
func (v *verdict) contents() {
	byNumber := map[int][]*timeline.Pass{}
	for _, l := range v.ranks { // by rank
		for _, p := range l.Passes {
			if !p.Abandoned && l.Rank() >= 0 {
				byNumber[p.Number] = append(byNumber[p.Number], p)
			}
		}
	}
	for number, passes := range byNumber {
		for i, a := range passes {
			for _, b := range passes[i+1:] {
				if !timeline.Together(a.Loader.Process, b.Loader.Process) {
					continue
				}
				if v.Relation(a.Loader.Process, b.Loader.Process) == timeline.Apart {
					v.apart = true
					continue
				}
				v.workers(number, a, b)
			}
		}
	}
}

// workers compares two ranks in one pass.
func (v *verdict) workers(number int, a, b *timeline.Pass) {
	found, looked := v.sideBySide(a, b)
	if !looked {
		return
	}
	v.compared[[2]int{a.Loader.Rank(), b.Loader.Rank()}] = true
	v.passes[number] = true
	v.random = v.random || !(v.ledger.Recurs(a.Loader) && v.ledger.Recurs(b.Loader))
	if found == nil {
		found = v.crossed(a, b)
	}
	if found == nil {
		found = v.scattered(a, b)
	}
	if found != nil {
		v.found(a, b, found)
	}
}

// sideBySide compares the workers of two ranks that have one number. One pair that
// agrees is enough: each is a share of the whole. looked: some were compared.
func (v *verdict) sideBySide(a, b *timeline.Pass) (found *samples.Twins, looked bool) {
	theirs := map[int]*samples.Read{}
	for _, x := range v.reads(b) {
		theirs[x.Worker.Number] = x
	}
	for _, r := range v.reads(a) {
		s := theirs[r.Worker.Number]
		if s == nil {
			continue
		}
		if r.Repeats() || s.Repeats() {
			v.excuses["workers read samples more than once themselves"] = true
			continue
		}
		looked = true
		t := samples.Compare(r, s)
		switch {
		case t == nil:
		case t.Overruled():
			v.excuses["samples of several ranks are equal, and what the collate function makes of them is not: they name data of which each "+
				"rank has its own, or it draws random numbers"] = true
		case t.By == samples.Payload && (!t.Payload.Tells() || v.ledger.Recurs(a.Loader)):
			v.excuses[fmt.Sprintf("%s is equal in samples of several ranks, and other parts of them are not", t.Payload.Title())] = true
		case t.Partly: // one file that both were given, or that is listed twice
			v.excuses[some] = true
		case found == nil || t.Sure() > found.Sure():
			found = t
		}
	}
	return found, looked
}

// mostWorkers of a pass are compared with each other.
const mostWorkers = 256

// reads of a pass that can be compared.
func (v *verdict) reads(p *timeline.Pass) (reads []*samples.Read) {
	for _, w := range p.Workers {
		switch r := v.ledger.Read(w); {
		case r == nil || r.Looked() < enough:
		case len(reads) == mostWorkers:
			v.many = true
		default:
			reads = append(reads, r)
		}
	}
	return reads
}

// found twins: a pair, unless what they have in common is meant, or chance.
func (v *verdict) found(a, b *timeline.Pass, twins *samples.Twins) {
	if twins.DrawsShards() && twins.Sure() < samples.Certain {
		v.excuses["workers of several ranks began with the same samples, which they do by chance where they draw their shards at random"] = true
		return
	}
	if name := v.ledger.Resamples(a.Loader); name != "" {
		v.excuses[words.Last(name)+" draws its samples anew on each rank, by its name"] = true
		return
	}
	p := &pair{a: a, b: b, twins: twins, of: twins.Both, cause: "the IterableDataset does not ask which rank it is on"}
	if p.crossed() {
		p.cause = "shares are dealt out by another number than that of rank and worker together (rank * workers + worker)"
	}
	if p.crossed() || twins.Sure() != samples.Certain {
		p.doubts = append(p.doubts, byChance)
	}
	v.grade(p, v.Relation(a.Loader.Process, b.Loader.Process), samples.Same)
}

const some = "workers of several ranks read some of the same samples: files that are given to several, or are listed several times"

// crossed looks for workers of other numbers that read the very same: where a
// share is chosen by rank + worker, say.
func (v *verdict) crossed(a, b *timeline.Pass) *samples.Twins {
	theirs := v.reads(b)
	for _, r := range v.reads(a) {
		for _, s := range theirs {
			if r.Worker.Number == s.Worker.Number || !samples.Even(r, s) {
				continue
			}
			if t := samples.Compare(r, s); t != nil && !t.Overruled() && !t.Partly && !t.Anywhere && t.Every() {
				return t
			}
		}
	}
	return nil
}

// scattered compares all that two ranks read, whichever of their workers did: in
// orders of their own they may have read the same. What comes several times on
// one rank is in the data several times.
func (v *verdict) scattered(a, b *timeline.Pass) *samples.Twins {
	r, s := v.ledger.Together(a), v.ledger.Together(b)
	found := samples.Scattered(r, s)
	v.blind = v.blind || !found.Tells()
	if found.Shared < enough || 10*found.Own > found.Shared { // rows that are equal in the data
		return nil
	}
	seen := float64(min(r.Looked(), s.Looked())) / float64(max(r.Samples, s.Samples, 1))
	if !samples.Even(r, s) || !found.Same() || float64(found.Shared) < 0.8*found.Expected-3*math.Sqrt(found.Expected)*(1-seen) {
		v.excuses[some] = true
		return nil
	}
	return found.Twins(r, s)
}

// crossed reports whether the twins are workers of different numbers.
func (p *pair) crossed() bool {
	return p.twins != nil && !p.twins.Scattered && !p.twins.Anywhere && p.twins.A.Worker.Number != p.twins.B.Worker.Number
}
