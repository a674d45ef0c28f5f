// Package samplers is what is known of samplers, by their classes: one table of
// what torch's and those of libraries promise, and how a loader's is to be read.
package samplers

import (
	"regexp"
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// Order is what is known of the order that a sampler promises.
type Order int

const (
	Own        Order = iota // a class of the program's or of a library's own: nothing is promised
	Sequential              // torch's: 0, 1, 2, ...
	Shuffles                // torch's: a new order in each pass, unless it was told not to shuffle at all
	Within                  // a batch sampler of the program's own around one that shuffles
)

// Sharing is what a sampler promises about the ranks.
type Sharing int

const (
	Custom      Sharing = iota // of the program's or a library's own: nothing is promised
	EachItsOwn                 // torch's, without replacement: it knows of no ranks, and goes through all of its data on each
	Distributed                // torch's DistributedSampler: a share for each rank, padded
	Replacing                  // with replacement: samples come more than once, on one rank and on several
	Repeating                  // by its name it hands out samples several times, on purpose
)

// OrderOf is the order that a loader's sampler promises. Where the program gives
// a batch sampler without a sampler inside, the loader has a SequentialSampler
// that nobody uses.
func OrderOf(l *traces.Loader) Order {
	switch order := table[l.Sampler].order; {
	case PlainBatches(l):
		return order
	case order == Shuffles:
		return Within
	}
	return Own
}

// repeating is names of samplers that repeat samples: GRPO's, repeated
// augmentation, episodes of few shots, P classes of K samples.
var repeating = regexp.MustCompile(`(?i)repeat|group|episod|shot|support|perclass|contrast|triplet|` +
	`resampl|oversampl|RASampler|BatchAug|PKSampler|\bPK`)

// SharingOf is how a loader's sampler shares between ranks. The innermost one
// decides, whatever batches are made of what it says.
func SharingOf(l *traces.Loader) Sharing {
	all := chain(l)
	if repeating.MatchString(strings.Join(all, " ")) {
		return Repeating
	}
	if l.Replacement == "yes" {
		return Replacing
	}
	for _, outer := range all[:len(all)-1] { // Lightning's, around the program's sampler
		if strings.Contains(outer, "DistributedSampler") {
			return Custom
		}
	}
	return table[class(all[len(all)-1])].sharing
}

// Deals reports whether a loader's sampler deals the indices of one dataset out to
// ranks that all have to have the same permutation of it; exact: it is torch's or
// torchdata's own class, not one made from it.
func Deals(l *traces.Loader) (deals, exact bool) {
	if l.SamplerReplicas < 2 || l.Iterable {
		return false, false
	}
	if table[l.Sampler].sharing == Distributed {
		return true, true
	}
	return strings.Contains(l.Samplers, "DistributedSampler"), false
}

// AsksForAll reports whether a loader's sampler is one of torch's that draw from
// all indices below the length of what they were made for, which as a rule is the
// loader's dataset.
func AsksForAll(l *traces.Loader) bool { return table[l.Sampler].all }

// Samples is how many torch's own samplers deal out in one pass, in batches of one
// size; 0 not known.
func Samples(l *traces.Loader) int {
	outer, inner, two := strings.Cut(l.Samplers, " > ")
	samples := table[inner].samples
	if l.Iterable || l.BatchSize <= 0 || !two || outer != torchBatches || samples == nil {
		return 0
	}
	return int(max(samples(l), 0))
}

// Batches is how many they make of these; 0 none, or not known.
func Batches(l *traces.Loader) int {
	n, size := Samples(l), int(l.BatchSize)
	if n == 0 {
		return 0
	}
	if n%size > 0 && !l.DropLast {
		return n/size + 1
	}
	return n / size
}

// PlainBatches reports whether torch's or torchdata's batch sampler makes the
// batches of a loader, or none does.
func PlainBatches(l *traces.Loader) bool {
	return l.BatchSampler == "" || plainBatches[l.BatchSampler]
}

// GivenBatches reports whether the program gave a batch sampler of its own making.
func GivenBatches(l *traces.Loader) bool { return l.BatchSize <= 0 }
