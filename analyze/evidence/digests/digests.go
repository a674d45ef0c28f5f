// Package digests reads what the hook tells of samples' contents
// (shim/PROTOCOL.md, "Digests").
package digests

import (
	"iter"

	"github.com/dptrace/dptrace/traces"
)

// Kind is what a digest stands for, in the hook's names for the bits.
type Kind byte

const (
	All      Kind = 1 << iota // of its content went in
	Some                      // chunks of it did
	Little                    // there is next to nothing in it: all bytes are equal
	Strings                   // Meta is of strings too
	Integers                  // Meta is of integers only
	Left                      // some of it could not be read, and was left out
	Follows                   // it is the sample before it in the fetch, some steps on: a window of a series
)

// Sum is a BLAKE2b of 16 bytes.
type Sum [16]byte

// Digest stands for one sample.
type Digest struct {
	Content Sum
	Meta    Sum // of its strings and integers alone; zeros: it has none
	Kind    Kind
}

// Tells reports whether it stands for the sample: there is something in that, and
// all of it could be read.
func (d *Digest) Tells() bool { return d.Kind&(Little|Left) == 0 && d.Kind&(All|Some) != 0 }

// Whole reports whether it tells, and all of the content went in.
func (d *Digest) Whole() bool { return d.Tells() && d.Read() == All }

// Read is how the content was read: All of it, Some of it.
func (d *Digest) Read() Kind { return d.Kind & (All | Some) }

// Empty reports whether next to nothing is in the sample: None, or zeros.
func (d *Digest) Empty() bool { return d.Kind&Little != 0 }

// Follows reports whether the sample is a window of a series: the one of the index
// before it, some steps on.
func (d *Digest) Follows() bool { return d.Kind&Follows != 0 }

// Labelled reports whether the sample has strings or integers.
func (d *Digest) Labelled() bool { return d.Meta != Sum{} }

// Texts reports whether it has strings.
func (d *Digest) Texts() bool { return d.Kind&Strings != 0 && d.Labelled() }

// Same reports whether two samples are alike bit for bit, as far as they were
// read; ok is false where that was not done in the same way.
func (d *Digest) Same(o *Digest) (same, ok bool) {
	if !d.Tells() || !o.Tells() || d.Read() != o.Read() {
		return false, false
	}
	return d.Content == o.Content, true
}

// Sample is the digest of one sample of a fetch.
type Sample struct {
	Digest
	Position int64 // among those of its worker in this pass, from 0
	Index    int64 // in the dataset; -1: of an IterableDataset, or a key that is no integer
}

// Of a row: one of each sample. A row whose columns do not fit together has none.
func Of(r *traces.Digest) iter.Seq[Sample] {
	n := len(r.Kinds)
	indexed := len(r.Indices) > 0
	if len(r.Positions) != n || indexed && len(r.Indices) != n || len(r.Contents) != n*len(Sum{}) || len(r.Metas) != n*len(Sum{}) {
		n = 0
	}
	return func(yield func(Sample) bool) {
		for i := range n {
			s := Sample{Position: r.Positions[i], Index: -1}
			at := i * len(Sum{})
			s.Content, s.Meta, s.Kind = Sum(r.Contents[at:]), Sum(r.Metas[at:]), Kind(r.Kinds[i])
			if indexed {
				s.Index = r.Indices[i]
			}
			if !yield(s) {
				return
			}
		}
	}
}
