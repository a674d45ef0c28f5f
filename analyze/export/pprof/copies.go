package pprof

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// asked is one kind of copies of a process.
type asked struct {
	process        *timeline.Process
	function, next string
	site           uint32 // traces.CallSite.Site
}

type copied struct{ bytes, ns int64 }

func seenBy(k *asked) string {
	if strings.HasPrefix(k.function, "Tensor.") {
		return "hook"
	}
	return "kernel"
}

// copies adds what the processes have copied, and how long their threads were in the calls and in the waits
// right after them.
func (b *builder) copies(run *traces.Run, all []*place, sites lines) {
	places := byProcess(all)
	sums := map[asked]copied{}
	of := map[*timeline.Process]*place{}
	drivers := stages.Drivers(run)
	for part, r := range traces.Rows[traces.Copy](run) {
		p := places[part][r.Proc]
		if p == nil || r.Capturing || r.Result != 0 || stages.Twice(drivers, part, &r) {
			continue
		}
		of[p.process] = p
		k := asked{p.process, r.Function, "", r.Site}
		if stages.WaitsRightAfter(&r) {
			k.next = r.Next
		}
		sums[k] = copied{sums[k].bytes + max(r.Bytes, 0), sums[k].ns + stages.InCopy(&r)}
	}
	for _, k := range slices.SortedFunc(maps.Keys(sums), func(a, b asked) int {
		return cmp.Or(cmp.Compare(a.process.Part.Name, b.process.Part.Name), cmp.Compare(a.process.Proc, b.process.Proc),
			cmp.Compare(a.function, b.function), cmp.Compare(a.next, b.next), cmp.Compare(a.site, b.site))
	}) {
		leaf := frame{name: k.function}
		if k.next != "" {
			leaf.name += ", then waits: " + k.next
		}
		b.sample(of[k.process].below(sites[k.process.Part][k.site]), leaf, "copy", seenBy(&k),
			[values]int64{copyBytes: sums[k].bytes, copyTime: sums[k].ns})
	}
}
