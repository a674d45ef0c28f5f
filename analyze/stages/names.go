package stages

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// Process is a process of a part, as rows name it.
type Process struct {
	Part *traces.Part
	Proc uint32
}

// Object is a DataLoader object of a process.
type Object struct {
	Process
	Loader uint32
}

// Loaders is the loader of each DataLoader object of a run.
func Loaders(t *timeline.Timeline) map[Object]*timeline.Loader {
	all := map[Object]*timeline.Loader{}
	for _, l := range t.Loaders {
		for i := range l.Objects {
			all[Object{Process{l.Process.Part, l.Process.Proc}, l.Objects[i].Loader}] = l
		}
	}
	return all
}

// Title is a loader in a few words.
func Title(l *timeline.Loader) string {
	return words.Printable(fmt.Sprintf("loader #%d at %s", l.ID, l.At()))
}

// sorted are the batches of a loop in the order in which they were asked for.
func sorted(open map[id]*Batch) []id {
	return slices.SortedFunc(maps.Keys(open), func(a, b id) int {
		return cmp.Or(cmp.Compare(a.object, b.object), cmp.Compare(a.pass, b.pass), cmp.Compare(a.number, b.number))
	})
}
