package traces

import (
	"fmt"
	"slices"
	"sync"
)

// EachPart reads the given tables of all parts, several parts side by side: each
// of so many readers takes one part after the other, and calls fn with its own
// number and the part's rows, table by table, in the order of seq. What cannot
// be read is left out and noted as Each does. It ends with an error of fn, or
// when a table does not exist.
func (r *Run) EachPart(names []string, readers int, fn func(reader int, b Batch) error) error {
	wanted := make([]*table, len(names))
	for i, name := range names {
		if wanted[i] = tableOfName[name]; wanted[i] == nil {
			return fmt.Errorf("read trace: no table %q", name)
		}
	}
	for _, p := range r.Parts {
		for _, t := range wanted {
			r.progress.asked.Add(p.stored(t))
		}
	}
	parts := make(chan *Part)
	go func() {
		defer close(parts)
		for _, p := range r.Parts {
			parts <- p
		}
	}()
	noted := len(r.Problems)
	errs := make([]error, readers)
	var wg sync.WaitGroup
	for n := range readers {
		wg.Go(func() {
			for p := range parts { // to its end, or the sender would wait for ever
				for _, t := range wanted {
					if errs[n] == nil {
						errs[n] = r.eachOf(p, t, func(b Batch) error { return fn(n, b) })
					}
				}
			}
		})
	}
	wg.Wait()
	r.sortProblems(noted, wanted)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// sortProblems puts those from n on into the order in which Each would have met
// them.
func (r *Run) sortProblems(n int, order []*table) {
	rank := map[string]int{}
	for i, t := range order {
		rank[t.name] = i
	}
	part := map[*Part]int{}
	for i, p := range r.Parts {
		part[p] = i
	}
	slices.SortStableFunc(r.Problems[n:], func(a, b Problem) int {
		if a.Table != b.Table {
			return rank[a.Table] - rank[b.Table]
		}
		return part[a.Part] - part[b.Part]
	})
}
