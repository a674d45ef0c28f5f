package samples

import (
	"encoding/binary"
	"regexp"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/digests"
)

// Basis says what of two samples was compared.
type Basis int

const (
	Nothing Basis = iota
	Texts         // strings in them, which augmentation leaves as they are
	Chunks        // pieces of their contents
	Whole         // their contents
	Rows          // what has become of them in the batch
	Payload       // one part of them, beside others that differ
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

	Brief   bool // they are so short that they may be names of what collate reads
	Became  Fate // in the batch
	Payload Part // of By Payload
}

// Fate is what samples that are equal in two workers have become in their batches.
type Fate struct {
	Same, Other int  // rows that are alike, or are not
	Unseen      bool // collate is the program's, and the rows of its batches could not be told apart
}

// Overruled reports whether samples are equal and what collate has made of them is
// not: they are keys of a worker's own data, or collate draws random numbers.
func (t *Twins) Overruled() bool {
	return t.By != Rows && 10*t.Became.Other > t.Became.Same+t.Became.Other
}

// Compare two reads: nil unless they are twins. The surest kind counts. Twins may be
// overruled by what collate has made of them.
func Compare(a, b *Read) *Twins {
	if a.Repeats() || b.Repeats() {
		return nil
	}
	t := compareBy(a, b, Whole, Chunks, Rows, Texts)
	if t == nil {
		t = stretch(a, b)
	}
	if t == nil {
		t = payload(a, b)
	}
	if t != nil && t.By != Rows {
		t.follow()
	}
	return t
}

func compareBy(a, b *Read, bases ...Basis) *Twins {
	for _, by := range bases {
		if t := aligned(a, b, by); t != nil {
			return t
		}
		if by != Whole && by != Rows {
			continue
		}
		for _, pair := range [][2]*Read{{a, b}, {b, a}} {
			if t := among(pair[0], pair[1], by); t != nil {
				return t
			}
		}
	}
	return nil
}

// follow the samples that are equal into the batches.
func (t *Twins) follow() {
	theirs := map[digests.Sum]*digest{}
	key := func(d *digest) (digests.Sum, bool) {
		if t.By == Payload {
			return digests.Sum(binary.BigEndian.AppendUint64(make([]byte, 8, 16), uint64(d.position))), true
		}
		return d.key(t.By)
	}
	for i := range t.B.digests {
		if k, ok := key(&t.B.digests[i]); ok {
			theirs[k] = &t.B.digests[i]
		}
	}
	for i := range t.A.digests {
		d := &t.A.digests[i]
		k, ok := key(d)
		other := theirs[k]
		if !ok || other == nil {
			continue
		}
		t.Brief = t.Brief || d.Brief()
		same, known := d.SameRow(&other.Digest)
		switch {
		case known && same:
			t.Became.Same++
		case known:
			t.Became.Other++
		case d.Rowed.Sought && d.Rowed.Kind == 0:
			t.Became.Unseen = true
		}
	}
}

// key is what is compared of a sample; false: nothing can be.
func (d *digest) key(by Basis) (digests.Sum, bool) {
	switch {
	case by == Rows:
		return d.Row, d.Rowed.Known()
	case !d.Tells():
	case by == Whole && d.Read() == digests.All, by == Chunks && d.Read() == digests.Some:
		return d.Content, true
	case by == Texts && d.Texts():
		return d.Meta, true
	}
	return digests.Sum{}, false
}

// aligned compares positions that both have.
func aligned(a, b *Read, by Basis) *Twins {
	t := &Twins{A: a, B: b, By: by}
	different, mine := map[digests.Sum]bool{}, map[digests.Sum]int{}
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
func among(a, b *Read, by Basis) *Twins {
	if !a.all(by) || !b.all(by) {
		return nil
	}
	theirs := map[digests.Sum]bool{}
	for i := range b.digests {
		if k, ok := b.digests[i].key(by); ok {
			theirs[k] = true
		}
	}
	t := &Twins{A: a, B: b, By: by, Anywhere: true}
	different := map[digests.Sum]bool{}
	for i := range a.digests {
		if k, ok := a.digests[i].key(by); ok {
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
func (r *Read) all(by Basis) bool {
	if r.Samples == 0 || len(r.digests) != r.Samples {
		return false
	}
	return !slices.ContainsFunc(r.digests, func(d digest) bool {
		return by == Whole && d.Read() != digests.All || by == Rows && d.Rowed.Kind&(digests.All|digests.Some) != digests.All
	})
}

// pieces reports whether rows of the batches were read by pieces.
func (r *Read) pieces() bool {
	return slices.ContainsFunc(r.digests, func(d digest) bool { return d.Rowed.Kind&digests.Some != 0 })
}

// stretch looks for samples in a row that both read in a row: a file that two
// workers were given. Contents that come more than once say nothing.
func stretch(a, b *Read) *Twins {
	once := func(r *Read) map[digests.Sum]int { // position
		at, twice := map[digests.Sum]int{}, map[digests.Sum]bool{}
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
	if t.By != Whole && t.By != Rows || t.By == Rows && (t.A.pieces() || t.B.pieces()) || t.Partly || t.Scattered {
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
