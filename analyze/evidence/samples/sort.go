package samples

import (
	"cmp"
	"slices"
	"sync"
)

// compareEntries is by id, index, pass, batch. Most differ in the first.
func compareEntries(a, b entry) int {
	switch {
	case a.id != b.id:
		return cmp.Compare(a.id, b.id)
	case a.index != b.index:
		return cmp.Compare(a.index, b.index)
	case a.stream != b.stream:
		return cmp.Compare(a.stream, b.stream)
	}
	return cmp.Compare(a.batch, b.batch)
}

// sortedAlone is how many entries one goroutine sorts.
const sortedAlone = 1 << 16

// sortEntries sorts in place, side by side.
func sortEntries(list []entry) {
	var wg sync.WaitGroup
	sortInto(list, &wg)
	wg.Wait()
}

// sortInto divides a list until one goroutine can sort it. Of a list that cannot
// be divided well, as most of it is equal, it sorts what is left alone.
func sortInto(list []entry, wg *sync.WaitGroup) {
	for len(list) > sortedAlone {
		n := divide(list)
		if min(n, len(list)-n) < len(list)/16 {
			break
		}
		less := list[:n]
		wg.Go(func() { sortInto(less, wg) })
		list = list[n:]
	}
	slices.SortFunc(list, compareEntries)
}

// divide puts those below the median of a few before all others, and counts them.
func divide(list []entry) (n int) {
	const few = 63
	var some [few]entry
	for i := range some {
		some[i] = list[i*(len(list)/few)]
	}
	slices.SortFunc(some[:], compareEntries)
	median := some[few/2]
	for i, e := range list {
		if compareEntries(e, median) < 0 {
			list[i], list[n] = list[n], e
			n++
		}
	}
	return n
}
