package looptime

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Slow is a batch that took long.
type Slow struct {
	Batch   uint32
	NS      int64
	At      int64 // when it began
	Seq     uint64
	Pass    int      // Timeline's number of it
	Worker  int      // -1: the main process
	Indices []int64  // of its samples; empty: not known
	Files   []string // that its process opened meanwhile, for the first time, in that order; empty: none, or not known
}

const mostSlow = 4 // of one worker and pass

// slowest keeps the longest.
func slowest(list []Slow, s Slow, most int) []Slow {
	if len(list) == most && s.NS <= list[most-1].NS {
		return list
	}
	i, _ := slices.BinarySearchFunc(list, s, func(a, b Slow) int { return cmp.Compare(b.NS, a.NS) })
	list = slices.Insert(list, i, s)
	return list[:min(len(list), most)]
}

// slow finds the batches that took longest, and what they have in common.
func (p *partRows) slow(r *Rank) {
	const most = 8
	samples, files := map[int64]int{}, map[string]int{}
	var n, sum int64
	for _, x := range r.Passes {
		for _, s := range x.share {
			n += int64(s.n)
			sum += s.fetch + s.collate
		}
	}
	for _, x := range r.Passes {
		seen, opened := map[int64]bool{}, map[string]bool{}
		for _, s := range x.share {
			for _, one := range s.slowest {
				one.Pass, one.Worker = x.Number, s.worker.Number
				one.Indices = p.indices[batchKey{passKey{r.Loader.Process.Proc, x.Object, x.Recorded}, one.Batch}]
				if one.NS*n < 2*sum {
					continue
				}
				one.Files = p.filesOf(s.worker.Process, one.At, one.At+one.NS)
				r.Slow = slowest(r.Slow, one, most)
				count(samples, seen, one.Indices)
				count(files, opened, one.Files)
			}
		}
	}
	r.Repeat, r.Files = often(samples, len(r.Passes)), often(files, len(r.Passes))
}

// count adds one for each of what a slow batch has, once for a pass.
func count[T comparable](all map[T]int, seen map[T]bool, what []T) {
	for _, one := range what {
		if !seen[one] {
			seen[one] = true
			all[one]++
		}
	}
}

// often is what is counted for more than a half of the passes, and for two.
func often[T cmp.Ordered](all map[T]int, passes int) (found []T) {
	for one, times := range all {
		if times >= 2 && 2*times > passes {
			found = append(found, one)
		}
	}
	if slices.Sort(found); len(found) > mostRepeated {
		return nil // too many to mean anything
	}
	return found
}

const mostRepeated = 8

// opening is the first time that a process opened a file.
type opening struct {
	at   int64
	path string
}

// Of each part so many are kept, of the first ones.
const mostOpenings = 1 << 16

// open takes what the kernel saw opened; the hook tells when it looked, not when a file was opened.
func (p *partRows) open(r *traces.Opened) {
	if r.Source != "kernel" || r.Path == "" || r.Count != 1 || p.keptOpenings == mostOpenings {
		return
	}
	p.openings[r.Proc] = append(p.openings[r.Proc], opening{r.TsNS, r.Path})
	p.keptOpenings++
}

// filesOf are those that a process opened in a stretch of time, for the first time; the process may be nil.
func (p *partRows) filesOf(process *timeline.Process, from, to int64) (files []string) {
	if process == nil {
		return nil
	}
	for _, o := range p.openings[process.Proc] {
		if from <= o.at && o.at <= to && len(files) < mostIndices {
			files = append(files, o.path)
		}
	}
	return files
}
