package stages

import (
	"cmp"
	"reflect"
	"slices"
	"sort"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

// Refs are all rows that a finding rests on.
func Refs(f *finding.Finding) (all []finding.Ref) {
	for _, e := range f.Evidence {
		all = append(all, e.Refs...)
	}
	return all
}

// Row takes a row that a finding refers to.
type Row func(ref finding.Ref, part *traces.Part, head traces.Head, row reflect.Value)

// Referred calls fn with each row that findings refer to, as far as it is there.
func Referred(run *traces.Run, findings []finding.Finding, fn Row) error {
	wanted, tables := map[string][]finding.Ref{}, []string{}
	for i := range findings {
		for _, r := range Refs(&findings[i]) {
			if len(wanted[r.Table]) == 0 {
				tables = append(tables, r.Table)
			}
			wanted[r.Table] = append(wanted[r.Table], r)
		}
	}
	if len(tables) == 0 {
		return nil
	}
	for table, list := range wanted {
		slices.SortFunc(list, func(a, b finding.Ref) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Part, b.Part)) })
		wanted[table] = slices.Compact(list)
	}
	return run.Each(tables, func(b traces.Batch) error {
		rows := reflect.ValueOf(b.Rows)
		if rows.Len() == 0 {
			return nil
		}
		list := wanted[b.Table]
		from := sort.Search(len(list), func(i int) bool { return list[i].Seq >= headAt(rows, 0).Seq })
		for _, r := range list[from:] {
			i := sort.Search(rows.Len(), func(i int) bool { return headAt(rows, i).Seq >= r.Seq })
			if i == rows.Len() {
				break
			}
			if h := headAt(rows, i); h.Seq == r.Seq && (r.Part == "" || r.Part == b.Part.Name) {
				fn(r, b.Part, h, rows.Index(i))
			}
		}
		return nil
	})
}

// headAt is what begins each row of each table.
func headAt(rows reflect.Value, i int) traces.Head {
	return rows.Index(i).FieldByName("Head").Interface().(traces.Head)
}
