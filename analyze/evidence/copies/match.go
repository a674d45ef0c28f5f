package copies

import (
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// tensors of a batch whose bytes are known.
type tensors struct {
	name  string // dtype; "pinned": those that were pinned, "left": those that were not
	bytes int64
	pages int64 // of bytes, that may be empty: they are counted in whole pages
	slack int64 // and those that may be of tensors which are too small to be seen
	width int64 // bytes of an element; 0 not known
}

// Match of a copy with tensors of the batch.
type Match struct {
	Tensor string // as in tensors; "" none
	Bytes  int64  // of these tensors
	// Of each element of theirs, and as it is copied, in bytes: another number where the
	// dtype was changed on the way.
	From, To int64
}

// Cast reports whether the dtype is another one, or the copy is of each second, fourth or eighth element.
func (m Match) Cast() bool { return m.Tensor != "" && m.From != m.To }

const (
	page        = 4096
	significant = 64 << 10 // smaller copies are not in the table
	// loosest is the share of the bytes that may be missing, so that no other tensor fits.
	loosest = 100
)

var widths = map[string]int64{"float64": 8, "int64": 8, "complex64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2,
	"uint8": 1, "int8": 1, "bool": 1}

// tensors of a loader's batches, as its workers and its pin step have seen them.
func (c *collector) tensors(t *timeline.Timeline, part *traces.Part, l *timeline.Loader) (all []tensors) {
	rows := c.parts[part]
	for _, w := range l.WorkerProcesses {
		if w.Process == nil || w.Process.Part != part || rows.procs[w.Process.Proc] == nil {
			continue
		}
		for _, b := range rows.procs[w.Process.Proc].batches {
			if at := t.Worker(part, b.Proc, b.Loader, b.Pass, b.Worker); at != nil && at.Pass.Loader == l {
				all = append(all, byDtype(&b)...)
			}
		}
	}
	for i := range l.Objects {
		for _, p := range rows.proc(l.Process.Proc).pins {
			if p.Loader != l.Objects[i].Loader {
				continue
			}
			all = append(all, some("pinned", p.ReachedBytes, int64(p.Reached))...)
			all = append(all, some("left", p.LeftBytes, int64(p.Left))...)
			all = append(all, some("left", p.LargestBytes, int64(min(p.Left, 1)))...) // the loop may take the largest alone
		}
	}
	return distinct(all)
}

func byDtype(b *traces.BatchBytes) (all []tensors) {
	for item := range strings.SplitSeq(b.Dtypes, ",") {
		name, text, _ := strings.Cut(item, "=")
		if bytes, err := strconv.ParseInt(text, 10, 64); err == nil && bytes > significant {
			n := int64(max(b.Tensors, 1))
			all = append(all, tensors{name, bytes, min(n*page, bytes/loosest), min((n-1)*significant, bytes/loosest), widths[name]})
		}
	}
	return all
}

// some tensors, of which the small ones are not copied where it is seen.
func some(name string, bytes, count int64) []tensors {
	if count == 0 || bytes <= significant {
		return nil
	}
	return []tensors{{name, bytes, 0, min((count-1)*significant, bytes/loosest), 0}}
}

func distinct(all []tensors) (once []tensors) {
	const most = 32
	seen := map[tensors]bool{}
	for _, t := range all {
		if !seen[t] && len(once) < most {
			seen[t] = true
			once = append(once, t)
		}
	}
	return once
}

// match says of copies of a batch, by their sizes, which tensors they are: those that
// have the same bytes first, then those that have so many elements of another dtype.
func match(sizes []int64, known []tensors) []Match {
	all := make([]Match, len(sizes))
	for _, cast := range []bool{false, true} {
		for _, t := range known {
			if cast && t.copied(all) {
				continue
			}
			for _, r := range ratios(t.width, cast) {
				for _, s := range subset(sizes, all, t, r) {
					all[s] = Match{t.name, t.bytes, r[0], r[1]}
				}
			}
		}
	}
	return all
}

// copied reports whether such tensors, or as many bytes, are among the copies as they are.
func (t tensors) copied(all []Match) bool {
	for _, m := range all {
		if m.Tensor != "" && !m.Cast() && max(m.Bytes-t.bytes, t.bytes-m.Bytes) <= t.pages+t.slack+page {
			return true
		}
	}
	return false
}

// ratios of the bytes of an element before and after.
func ratios(width int64, cast bool) (all [][2]int64) {
	if !cast {
		width = max(width, 1)
		return [][2]int64{{width, width}}
	}
	for _, from := range []int64{1, 2, 4, 8} {
		for _, to := range []int64{1, 2, 4, 8} {
			if from != to && (width == from || width == 0 && min(from, to) == 1) {
				all = append(all, [2]int64{from, to})
			}
		}
	}
	return all
}

// subset of the copies that are no other tensor's, whose bytes together are these
// tensors' after a cast: the one with the fewest copies. Of very many copies only
// single ones are tried.
func subset(sizes []int64, taken []Match, t tensors, ratio [2]int64) (found []int) {
	least := t.bytes - t.pages
	if ratio[0] == ratio[1] { // a cast is told by its bytes alone
		least -= t.slack
	}
	bytes := t.bytes * ratio[1] / ratio[0]
	least = least * ratio[1] / ratio[0]
	if bytes <= significant {
		return nil
	}
	if len(sizes) > mostTensors {
		for s, size := range sizes {
			if taken[s].Tensor == "" && least <= size && size <= bytes {
				found = append(found, s)
				break
			}
		}
		return found
	}
	for set := 1; set < 1<<len(sizes); set++ {
		var sum int64
		var list []int
		for s, size := range sizes {
			if set&(1<<s) != 0 {
				sum += size
				list = append(list, s)
				if taken[s].Tensor != "" {
					sum = -1 << 60
				}
			}
		}
		if least <= sum && sum <= bytes && (found == nil || len(list) < len(found)) {
			found = list
		}
	}
	return found
}
