// Package digests reads what the hook tells of samples' contents
// (shim/PROTOCOL.md, "Digests"): of each its content as it left the dataset, of
// short ones the row of the batch that a collate function of the program's made of
// it, and its parts, each by itself.
package digests

import (
	"encoding/binary"
	"iter"
	"strings"

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
	Brief                     // it has less than 1 KiB: it may be a name of what collate reads
)

// Sum is a BLAKE2b of 16 bytes.
type Sum [16]byte

// Digest stands for one sample.
type Digest struct {
	Content Sum
	Meta    Sum // of its strings and integers alone; zeros: it has none
	Kind    Kind
	Row     Sum    // what it has become in the batch, if Rowed.Known()
	Rowed   Rowed  // whether its row was looked for
	Parts   []Part // of a sample of several leaves: the first of them
}

// Rowed says what is known of the row of the batch that a sample has become.
type Rowed struct {
	Sought bool // the collate function is the program's, and the sample short
	Kind   Kind // of the row; 0: it is not to be seen in the batch
}

// Known reports whether there is a digest of the row, with something in it.
func (r Rowed) Known() bool { return r.Sought && r.Kind&(All|Some) != 0 && r.Kind&(Little|Left) == 0 }

// Part is the digest of one leaf of a sample.
type Part uint64

// What a part is.
const (
	Array   = 0 // or a list of numbers
	Integer = 2
	Text    = 4
	Other   = 6 // a float, a bool, None
)

// Type is what it is: Array, Integer, Text, Other.
func (p Part) Type() int { return int(p & 6) }

// Pieces reports whether only pieces of it were read.
func (p Part) Pieces() bool { return p&1 != 0 }

// Carries reports whether it is of the kind that samples consist of, not of those that
// name them or tell of them.
func (p Part) Carries() bool { return p.Type() == Array }

// Names of the parts of a row's samples; nil: it tells none.
func Names(r *traces.Digest) []string {
	if r.Names == "" {
		return nil
	}
	return strings.Split(r.Names, ",")
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

// Brief reports whether it has so little that it may be the name of what the collate
// function reads: a position, a key, a path.
func (d *Digest) Brief() bool { return d.Kind&Brief != 0 }

// SameRow reports whether the rows of the batch that two samples have become are alike;
// ok is false where that is not known of both.
func (d *Digest) SameRow(o *Digest) (same, ok bool) {
	if !d.Rowed.Known() || !o.Rowed.Known() || d.Rowed.Kind&(All|Some) != o.Rowed.Kind&(All|Some) {
		return false, false
	}
	return d.Row == o.Row, true
}

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
	rowed := len(r.RowKinds) == n && len(r.Rows) == n*len(Sum{})
	parts, counts := parts(r)
	return func(yield func(Sample) bool) {
		for i := range n {
			s := Sample{Position: r.Positions[i], Index: -1}
			at := i * len(Sum{})
			s.Content, s.Meta, s.Kind = Sum(r.Contents[at:]), Sum(r.Metas[at:]), Kind(r.Kinds[i])
			if indexed {
				s.Index = r.Indices[i]
			}
			if rowed {
				s.Row, s.Rowed = Sum(r.Rows[at:]), Rowed{true, Kind(r.RowKinds[i])}
			}
			if counts != nil {
				n := int(counts[i])
				s.Parts, parts = parts[:n:n], parts[n:]
			}
			if !yield(s) {
				return
			}
		}
	}
}

// parts of all samples of a row, and how many each has; nil: none that fit.
func parts(r *traces.Digest) (all []Part, counts []byte) {
	n := 0
	for _, count := range r.Counts {
		n += int(count)
	}
	if n == 0 || len(r.Counts) != len(r.Kinds) || len(r.Parts) != 8*n {
		return nil, nil
	}
	all = make([]Part, n)
	for i := range all {
		all[i] = Part(binary.LittleEndian.Uint64(r.Parts[8*i:]))
	}
	return all, r.Counts
}
