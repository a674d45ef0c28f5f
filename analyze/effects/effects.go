// Package effects says whether what fetches gave depends on what was drawn in
// them: random numbers count only where contents depend on them, and contents
// that vary while nothing was drawn have a source that nobody watched.
package effects

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/evidence/contents"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Effects is what is known of one loader on some ranks.
type Effects struct {
	// Compared is pairs of one sample in two fetches, Alike those with one content.
	Compared, Alike int
	// Hidden is pairs with two contents although no generator that was watched
	// moved in either fetch.
	Hidden int

	streams *draws.Streams
	fetches *contents.Fetches
	of      map[draws.Key]*Effect
	fixed   map[draws.Key]int // samples of a stream that came again although the draws were others
	orders  map[draws.Key]bool
}

// Effect is what is known of the draws from one generator.
type Effect struct {
	// Pairs of one sample in two fetches whose draws have nothing in common, by
	// whether the contents were the same.
	Alike, Other int
	Rows         int // of Alike, those of which the row of the batch was the same too
	// Words drawn, in fetches of Samples in all: data draws only.
	Words, Samples, Fetches int64
	Role                    string // of the slot
	OwnCollate              bool   // the loader's collate function is not one of torch's: it may be what draws
	Stream                  bool   // of an IterableDataset
}

// How many pairs must be alike, with none that is not: an augmentation of one
// sample in ten leaves so many alike with a chance of 1 in 800.
const enoughAlike = 32

// fewWords is below how many 32-bit words for each sample it may be no more than
// a choice among equals: a mirror to read from takes one or two.
const fewWords = 3

// Look at a loader on some ranks.
func Look(s *draws.Streams, f *contents.Fetches, ranks timeline.Ranks) *Effects {
	e := &Effects{streams: s, fetches: f, of: map[draws.Key]*Effect{}, fixed: map[draws.Key]int{}, orders: map[draws.Key]bool{}}
	for _, l := range ranks {
		e.count(l)
		e.compare(l)
		if l.Iterable() {
			e.recur(l)
			e.order(l)
		}
	}
	return e
}

// Of is what is known of a generator's draws.
func (e *Effects) Of(k draws.Key) *Effect {
	if e.of[k] == nil {
		e.of[k] = &Effect{}
	}
	return e.of[k]
}

// count what was drawn for how many samples.
func (e *Effects) count(l *timeline.Loader) {
	for _, d := range e.streams.Of(l) {
		x := e.Of(d.Slot.Key())
		x.Role, x.Stream = d.Slot.Role, l.Iterable()
		x.OwnCollate = x.OwnCollate || !torchs[l.First().Collate]
		if d.Data() {
			x.Words += d.Words
			x.Samples += e.fetches.Fetched(d.Worker)
			x.Fetches += int64(d.Fetches)
		}
	}
}

// torchs is the collate functions that a DataLoader takes where it is given none.
var torchs = map[string]bool{
	"": true,
	"torch.utils.data._utils.collate.default_collate": true,
	"torch.utils.data._utils.collate.default_convert": true,
}

// None reports whether the draws were seen to change no sample, and cannot have
// been made after the samples were: a salt, a choice of mirrors.
func (e *Effects) None(k draws.Key) bool {
	x := e.Of(k)
	if x.Role == "collate" {
		return false
	}
	alike := x.Alike
	if x.OwnCollate { // it may be what draws
		alike = x.Rows
	}
	return alike >= enoughAlike && x.Other == 0 || e.fixed[k] >= enoughAlike || e.orders[k]
}

// Why the draws change no sample.
func (e *Effects) Why(k draws.Key) string {
	if e.orders[k] || e.fixed[k] >= enoughAlike {
		return "what is drawn is the order of the samples, on which the workers agree"
	}
	return "samples were the same whatever was drawn"
}

// Seen reports whether contents depend on the draws: a sample had another content
// where other numbers were drawn; or so much is drawn for each sample that it is
// no choice among equals, and nothing speaks against it.
func (e *Effects) Seen(k draws.Key) bool {
	x := e.Of(k)
	switch {
	case x.Role == "collate", x.Other > 0:
		return true
	case x.Stream:
		return false
	case x.OwnCollate && x.Rows == 0 && x.Role != "dataset" && x.Role != "transform":
		return true // it hangs on neither: the program's collate function draws, as for MixUp
	case x.Alike > 0:
		return false
	}
	return x.Words >= fewWords*x.Samples && x.Samples > 0
}

// Witnessed reports whether contents were seen to be others where other numbers
// were drawn, which no row that is lost can unsay.
func (e *Effects) Witnessed(k draws.Key) bool { return e.Of(k).Other > 0 || e.Of(k).Role == "collate" }

// PerSample reports whether so much is drawn that it is for each sample, not for a
// batch as a whole.
func (e *Effects) PerSample(k draws.Key) bool {
	x := e.Of(k)
	return x.Samples > 0 && x.Words >= x.Samples && x.Words >= perFetch*x.Fetches
}

// perFetch is words that may be drawn for one thing that is for a batch as a
// whole, as its size.
const perFetch = 4

// few reports whether no generator gave so much for each sample that it is no
// mere choice.
func (e *Effects) few() bool {
	for _, x := range e.of {
		if x.Words >= fewWords*x.Samples && x.Words > 0 {
			return false
		}
	}
	return true
}

// Leftover says why contents vary more than what was watched explains; "" they do not.
func (e *Effects) Leftover() string {
	switch {
	case e.Hidden > 0:
		return "samples changed from pass to pass in fetches in which no generator that dptrace watches moved: " +
			"a random source that it does not see, or data that the program changes"
	case e.Compared >= enoughAlike && 10*e.Alike < e.Compared && e.few() && e.drawn():
		return fmt.Sprintf("hardly any random number was drawn for a sample, yet of %d that came again %d had their earlier content: "+
			"where those numbers are for a choice (a flip), there is a random source that dptrace does not see", e.Compared, e.Alike)
	}
	return ""
}

func (e *Effects) drawn() bool {
	for _, x := range e.of {
		if x.Words > 0 {
			return true
		}
	}
	return false
}
