package samples

import (
	"cmp"
	"regexp"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
)

// Read is what one worker read in one pass, of what was looked at.
type Read struct {
	Worker  *timeline.WorkerPass
	Samples int // fetched

	digests []digest // by position: of batches that were delivered
	row     uint64   // the first one in the table
	rows    bool     // there is one
}

// read sorts the digests by worker.
func (j *Attribution) read(t *timeline.Timeline) {
	workers := make([]*timeline.WorkerPass, len(j.ledger.streams))
	for i, s := range j.ledger.streams {
		if s.worker != asked {
			workers[i] = t.Worker(s.part, s.proc, s.loader, s.pass, s.worker)
		}
	}
	for tp, p := range j.ledger.parts {
		for s, n := range p.fetched {
			if w := t.Worker(tp, s.proc, s.loader, s.pass, s.worker); w != nil {
				j.reads[w] = &Read{Worker: w, Samples: n}
			}
		}
	}
	for tp, p := range j.ledger.parts {
		for s, seq := range p.rows {
			if w := t.Worker(tp, s.proc, s.loader, s.pass, s.worker); w != nil {
				if j.reads[w] == nil {
					j.reads[w] = &Read{Worker: w}
				}
				j.reads[w].row, j.reads[w].rows = seq, true
			}
		}
	}
	for i := range j.ledger.digests.rows {
		d := &j.ledger.digests.rows[i]
		w := workers[d.stream]
		if w == nil || !(&Pass{Pass: w.Pass, Object: w.Pass.DataLoader()}).delivered(d.batch) {
			continue
		}
		j.reads[w].digests = append(j.reads[w].digests, *d)
	}
	for _, r := range j.reads {
		slices.SortFunc(r.digests, func(a, b digest) int { return cmp.Compare(a.position, b.position) })
	}
	j.ledger.digests.rows = nil
}

// Read is what a worker read; nil if nothing of it is known.
func (j *Attribution) Read(w *timeline.WorkerPass) *Read { return j.reads[w] }

// Looked is how many of its samples were looked at, and have something in them
// to be compared.
func (r *Read) Looked() (n int) {
	for i := range r.digests {
		for _, by := range []Basis{Whole, Chunks, Texts} {
			if _, ok := r.digests[i].key(by); ok {
				n++
				break
			}
		}
	}
	return n
}

// Fixed reports whether two contents of a loader's samples that differ are two
// samples: random numbers were drawn in none of its fetches, and it is samples
// that the dataset hands out; or the contents of one pass come again in another,
// so that those numbers are for the order alone.
func (j *Attribution) Fixed(l *timeline.Loader) bool {
	return !j.drew(l) && l.First().Batched != "no" || j.recurs(l)
}

// WhyNotFixed says why a loader is not Fixed.
func (j *Attribution) WhyNotFixed(l *timeline.Loader) string {
	if l.First().Batched == "no" && !j.drew(l) {
		return "the dataset hands out batches (batch_size=None), and none of them came again: the samples in them may be put together anew each time"
	}
	return "the fetches draw random numbers: the contents of a sample may differ each time that it is read"
}

// drew reports whether random numbers were drawn in fetches of a loader.
func (j *Attribution) drew(l *timeline.Loader) bool {
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

// recurs reports whether contents of one pass come again in another.
func (j *Attribution) recurs(l *timeline.Loader) bool {
	of, again := map[[2]uint64]*timeline.Pass{}, map[[2]uint64]bool{}
	for _, p := range l.Passes {
		for _, w := range p.Workers {
			r := j.reads[w]
			if r == nil {
				continue
			}
			for i := range r.digests {
				d := &r.digests[i]
				if d.kind&low != 0 {
					continue
				}
				if q := of[d.content]; q == nil {
					of[d.content] = p
				} else if q != p {
					again[d.content] = true
				}
			}
		}
	}
	return len(again) >= enoughContents
}

// resampled is names of datasets, or of stages of theirs that hold a generator,
// that draw their shards at random, with replacement, on purpose.
var resampled = regexp.MustCompile(`(?i)resampl`)

// Resamples is the dataset of a loader whose workers draw their shards anew by
// its name, or by that of a stage in it (WebDataset(resampled=True)); else "".
func (j *Attribution) Resamples(l *timeline.Loader) string {
	name := l.First().DatasetClass
	part := j.ledger.parts[l.Process.Part]
	for _, p := range l.Passes {
		for _, w := range p.Workers {
			if resampled.MatchString(name) || part != nil && w.Process != nil && part.resample[w.Process.Proc] {
				return ClassName(name)
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
	n, different := 0, map[[2]uint64]bool{}
	for i := range r.digests {
		if d := &r.digests[i]; d.kind&low == 0 {
			n++
			different[d.content] = true
		}
	}
	return n >= enoughContents && 10*len(different) < 9*n
}

// Basis says what of two samples was compared.
type Basis int

const (
	Nothing Basis = iota
	Texts         // strings in them, which augmentation leaves as they are
	Chunks        // pieces of their contents
	Whole         // their contents
)

// Twins is two workers that read the same samples.
type Twins struct {
	A, B      *Read
	By        Basis
	Both      int  // positions of both that were compared; of A where Anywhere
	Equal     int  // of them
	Anywhere  bool // A's are among B's, at other places
	Partly    bool // a stretch of them
	Scattered bool // some, in other places, of those that were looked at
	First     int  // position of A where that begins
	FirstOfB  int
	Different int // contents among the equal ones
}

// Compare two reads: nil unless they are twins. The surest kind counts.
func Compare(a, b *Read) *Twins {
	if a.Repeats() || b.Repeats() {
		return nil
	}
	for _, by := range []Basis{Whole, Chunks, Texts} {
		if t := aligned(a, b, by); t != nil {
			return t
		}
		if by == Whole {
			for _, pair := range [][2]*Read{{a, b}, {b, a}} {
				if t := among(pair[0], pair[1]); t != nil {
					return t
				}
			}
		}
	}
	return stretch(a, b)
}

// key is what is compared of a sample; false: nothing can be.
func (d *digest) key(by Basis) ([2]uint64, bool) {
	if d.kind&(low|partly) != 0 {
		return [2]uint64{}, false
	}
	switch {
	case by == Whole && d.kind&kindMask == whole, by == Chunks && d.kind&kindMask == spread:
		return d.content, true
	case by == Texts && d.kind&texts != 0 && d.meta != [2]uint64{}:
		return d.meta, true
	}
	return [2]uint64{}, false
}

// aligned compares positions that both have.
func aligned(a, b *Read, by Basis) *Twins {
	t := &Twins{A: a, B: b, By: by}
	different, mine := map[[2]uint64]bool{}, map[[2]uint64]int{}
	for i, k := 0, 0; i < len(a.digests) && k < len(b.digests); {
		x, y := &a.digests[i], &b.digests[k]
		switch {
		case x.position < y.position:
			i++
			continue
		case x.position > y.position:
			k++
			continue
		}
		i, k = i+1, k+1
		p, ok := x.key(by)
		q, too := y.key(by)
		if !ok || !too {
			continue
		}
		t.Both++
		mine[p]++
		if p == q {
			t.Equal++
			different[p] = true
		}
	}
	t.Different = len(different)
	if t.Both < enoughContents || 10*t.Equal < 9*t.Both || 10*t.Different < 9*t.Equal || t.Different < enoughContents {
		return nil
	}
	return t
}

// among looks for all that A read among all that B read.
func among(a, b *Read) *Twins {
	if !a.all() || !b.all() {
		return nil
	}
	theirs := map[[2]uint64]bool{}
	for i := range b.digests {
		if k, ok := b.digests[i].key(Whole); ok {
			theirs[k] = true
		}
	}
	t := &Twins{A: a, B: b, By: Whole, Anywhere: true}
	different := map[[2]uint64]bool{}
	for i := range a.digests {
		if k, ok := a.digests[i].key(Whole); ok {
			t.Both++
			if theirs[k] {
				t.Equal++
				different[k] = true
			}
		}
	}
	t.Different = len(different)
	if t.Different < enoughContents || 10*t.Equal < 9*t.Both || 10*t.Different < 9*t.Equal {
		return nil
	}
	return t
}

// all reports whether everything that was read was looked at, whole.
func (r *Read) all() bool {
	if r.Samples == 0 || len(r.digests) != r.Samples {
		return false
	}
	return !slices.ContainsFunc(r.digests, func(d digest) bool { return d.kind&kindMask != whole })
}

// stretch looks for samples in a row that both read in a row: a file that two
// workers were given. Contents that come more than once say nothing.
func stretch(a, b *Read) *Twins {
	once := func(r *Read) map[[2]uint64]int { // position
		at, twice := map[[2]uint64]int{}, map[[2]uint64]bool{}
		for i := range r.digests {
			if k, ok := r.digests[i].key(Whole); ok {
				if _, ok := at[k]; ok {
					twice[k] = true
				}
				at[k] = int(r.digests[i].position)
			}
		}
		for k := range twice {
			delete(at, k)
		}
		return at
	}
	mine, theirs := once(a), once(b)
	best, run := &Twins{}, &Twins{}
	for i := range a.digests {
		k, ok := a.digests[i].key(Whole)
		p, here := mine[k]
		q, there := theirs[k]
		if !ok || !here || !there {
			run = &Twins{}
			continue
		}
		if run.Equal == 0 || p != run.First+run.Equal || q != run.FirstOfB+run.Equal {
			run = &Twins{A: a, B: b, By: Whole, Partly: true, First: p, FirstOfB: q}
		}
		run.Equal++
		if run.Equal > best.Equal {
			best = run
		}
	}
	if best.Equal < enoughContents {
		return nil
	}
	best.Both, best.Different = best.Equal, best.Equal
	return best
}

// Scatter is what two reads have in common wherever it lies, where only some of
// their samples were looked at.
type Scatter struct {
	Shared   int     // contents that both read
	Own      int     // contents that one of them read more than once: rows that are equal in the data
	Expected float64 // shared contents if both read the same samples, each in an order of its own
}

// Scattered compares what was looked at of two reads, without regard to places.
func Scattered(a, b *Read) (s Scatter) {
	for _, by := range []Basis{Whole, Chunks} {
		mine, theirs := a.contents(by), b.contents(by)
		n, m := 0, 0
		for k, times := range mine {
			n += times
			if theirs[k] > 0 {
				s.Shared++
			}
			if times > 1 {
				s.Own++
			}
		}
		for _, times := range theirs {
			m += times
			if times > 1 {
				s.Own++
			}
		}
		if all := max(a.Samples, b.Samples); all > 0 {
			s.Expected += float64(n) * float64(m) / float64(all)
		}
	}
	return s
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

// certain is how many contents must be expected in common so that none of them
// says that there are none: by chance that is seen once in 20,000 (e^-10).
const certain = 10

// Tells whether so many samples were looked at that nothing in common says that
// the samples are others.
func (s *Scatter) Tells() bool { return s.Expected >= certain }

// Same reports whether the same samples were read, as far as a part of them tells:
// as many in common as that makes likely, and next to none twice in one read, as
// it would be if rows were equal in the data.
func (s *Scatter) Same() bool {
	return s.Shared >= enoughContents && 10*s.Own <= s.Shared && 2*float64(s.Shared) >= s.Expected
}

// Twins are two reads that have so much in common.
func (s *Scatter) Twins(a, b *Read) *Twins {
	return &Twins{A: a, B: b, By: Whole, Scattered: true, Equal: s.Shared, Both: min(a.Looked(), b.Looked()), Different: s.Shared}
}

// contents are how often each was read.
func (r *Read) contents(by Basis) map[[2]uint64]int {
	times := map[[2]uint64]int{}
	for i := range r.digests {
		if k, ok := r.digests[i].key(by); ok {
			times[k]++
		}
	}
	return times
}

// Even reports whether two workers came to the end of as many samples.
func Even(a, b *Read) bool {
	return a.Samples == b.Samples && a.Worker.Pass.Exhausted && b.Worker.Pass.Exhausted
}

// Surety is how much twins prove.
type Surety int

const (
	Faint   Surety = iota // a stretch of samples, texts, or pieces of contents
	Certain               // nearly all contents, bit by bit, all the way
)

// Sure is how much it proves that two workers read the same. That the first
// samples agree is not enough where workers draw their files at random, or do
// not come to an end together.
func (t *Twins) Sure() Surety {
	if t.By != Whole || t.Partly || t.Scattered {
		return Faint
	}
	if t.Anywhere || t.far() || Even(t.A, t.B) && !t.DrawsShards() {
		return Certain
	}
	return Faint
}

// drawsShards is libraries whose datasets may draw files with replacement: two
// workers may begin with the same one.
var drawsShards = regexp.MustCompile(`^(webdataset|wids|torchdata|torch\.utils\.data\.datapipes)\b`)

// DrawsShards reports whether the dataset is of such a library.
func (t *Twins) DrawsShards() bool {
	return drawsShards.MatchString(t.A.Worker.Pass.DataLoader().DatasetClass)
}

// far reports whether positions from half of the samples on were compared.
func (t *Twins) far() bool {
	for _, r := range []*Read{t.A, t.B} {
		if n := len(r.digests); n == 0 || r.Samples == 0 || 2*int(r.digests[n-1].position) < r.Samples {
			return false
		}
	}
	return true
}

// Every reports whether two workers read the same from their beginnings to their
// ends, as far as was looked at.
func (t *Twins) Every() bool {
	return t.Sure() == Certain && !t.Anywhere && t.A.Samples == t.B.Samples && t.Equal == t.Both
}
