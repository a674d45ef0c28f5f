package samples

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/digests"
)

// Part is one leaf of the samples that two workers have in common, while others of
// their leaves differ: the payload beside a time stamp, the label beside an image
// that was augmented.
type Part struct {
	Name    string // "" it is not told
	Type    int    // digests.Array and the others
	Counts  bool   // all are different: it may number the samples of a worker
	Labels  bool   // few different ones, in an order without a period
	Apart   []string
	Numbers bool // the parts that differ are one value for each worker: its number
}

// How many labels in a row make a word, and how many must be equal: of words that
// hardly ever come again there is no period.
const (
	word         = 16
	enoughLabels = 48
)

// payload looks for a part that two reads have in common, sample by sample; nil:
// there is none. An array or a list of numbers says more than a label or a name.
func payload(a, b *Read) *Twins {
	var best *Twins
	for i := 0; ; i++ {
		mine, theirs := positions(a, b, i)
		if mine == nil {
			break
		}
		t := inCommon(a, b, mine, theirs)
		if t == nil {
			continue
		}
		t.Payload.Name = a.name(i)
		if best == nil || t.Payload.rank() > best.Payload.rank() {
			best = t
		}
	}
	if best != nil {
		best.Payload.apart(a, b)
	}
	return best
}

// rank of what a part says of the sample.
func (p *Part) rank() int {
	switch {
	case p.Type == digests.Array && !p.Labels:
		return 3
	case p.Labels:
		return 2
	case p.Type == digests.Text:
		return 1
	}
	return 0
}

// Tells reports whether the part says that the samples are the same: a number that
// counts them may be a worker's own.
func (p *Part) Tells() bool { return p.rank() > 0 }

func (r *Read) name(i int) string {
	if i < len(r.names) {
		return r.names[i]
	}
	return ""
}

// positions that both have, and their part of one number; nil: they have none.
func positions(a, b *Read, part int) (mine, theirs []digests.Part) {
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
		if part < len(x.Parts) && part < len(y.Parts) && x.Parts[part].Pieces() == y.Parts[part].Pieces() {
			mine, theirs = append(mine, x.Parts[part]), append(theirs, y.Parts[part])
		}
	}
	return mine, theirs
}

func inCommon(a, b *Read, mine, theirs []digests.Part) *Twins {
	t := &Twins{A: a, B: b, By: Payload, Both: len(mine)}
	different := map[digests.Part]bool{}
	for i, p := range mine {
		if p == theirs[i] {
			t.Equal++
			different[p] = true
		}
	}
	t.Different = len(different)
	t.Payload.Type = mine[0].Type()
	t.Payload.Counts = t.Different == t.Both
	if t.Both < enoughContents || 10*t.Equal < 9*t.Both {
		return nil
	}
	if t.Different >= enoughContents && 10*t.Different >= 9*t.Equal {
		return t
	}
	t.Payload.Labels = t.Equal == t.Both && Irregular(mine)
	if !t.Payload.Labels {
		return nil
	}
	return t
}

// Irregular reports whether a sequence of few different values has no period, and is
// not sorted: words of it hardly ever come again. So much in common is no chance.
func Irregular[T comparable](values []T) bool {
	if len(values) < enoughLabels {
		return false
	}
	// A word is a sequence of numbers, of which there are few.
	number := map[T]byte{}
	text := make([]byte, len(values))
	for i, v := range values {
		if _, ok := number[v]; !ok {
			number[v] = byte(len(number))
		}
		text[i] = number[v]
	}
	words := map[string]bool{}
	for i := 0; i+word <= len(text); i++ {
		words[string(text[i:i+word])] = true
	}
	return 10*len(words) >= 9*(len(text)-word+1)
}

// apart finds the parts that differ.
func (p *Part) apart(a, b *Read) {
	p.Numbers = true
	for i := 0; ; i++ {
		mine, theirs := positions(a, b, i)
		if mine == nil {
			break
		}
		if slices.Equal(mine, theirs) || 10*equal(mine, theirs) >= 9*len(mine) {
			continue
		}
		p.Apart = append(p.Apart, a.name(i))
		p.Numbers = p.Numbers && len(slices.Compact(slices.Clone(mine))) == 1 && len(slices.Compact(slices.Clone(theirs))) == 1
	}
	p.Numbers = p.Numbers && len(p.Apart) > 0
}

func equal(a, b []digests.Part) (n int) {
	for i := range a {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}

// Title is what the part is called in a sentence.
func (p *Part) Title() string { return called(p.Name, "part") }

// Others is the same of the parts that differ.
func (p *Part) Others() (names []string) {
	for _, name := range p.Apart {
		names = append(names, called(name, "another part"))
	}
	return slices.Compact(names)
}

func called(name, unknown string) string {
	if name == "" {
		return unknown
	}
	return "`" + name + "`"
}
