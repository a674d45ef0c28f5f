package timeline

import (
	"cmp"
	"maps"
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// limitKey is what a row of limit is about.
type limitKey struct{ scope, path string }

// limitRows keeps what tells when the out-of-memory killer ran: the rows before
// and after each change of its counter, the first and the last.
type limitRows struct {
	rows []traces.Limit
	tail bool // the last row only continues the one before
}

func (l *limitRows) add(r traces.Limit) {
	n := len(l.rows)
	if l.tail && n >= 2 && l.rows[n-1].OomKills == r.OomKills {
		l.rows[n-1] = r
		return
	}
	l.tail = n > 0 && l.rows[n-1].OomKills == r.OomKills
	l.rows = append(l.rows, r)
}

// OomKills is what the counters of one control group, or of the machine, tell
// about a time.
type OomKills struct {
	Before, After traces.Limit // the rows around it; equal if there is none after it
	Kills         int64        // between them
}

// OomKills reads the counters around a time: those of control groups first,
// the smallest limit first.
func (t *Timeline) OomKills(part *traces.Part, from, to int64) []OomKills {
	var all []OomKills
	for _, key := range slices.SortedFunc(maps.Keys(t.limits[part]), func(a, b limitKey) int {
		return cmp.Or(cmp.Compare(a.scope, b.scope), cmp.Compare(a.path, b.path))
	}) {
		rows := t.limits[part][key].rows
		var o OomKills
		found := false
		for i := range rows {
			if rows[i].OomKills < 0 {
				continue
			}
			if !found || rows[i].TsNS <= from {
				o.Before = rows[i]
			}
			if !found || o.After.TsNS < to {
				o.After = rows[i]
			}
			found = true
		}
		if found {
			o.Kills = o.After.OomKills - o.Before.OomKills
			all = append(all, o)
		}
	}
	slices.SortStableFunc(all, func(a, b OomKills) int {
		return cmp.Or(cmp.Compare(a.Before.Scope, b.Before.Scope), cmp.Compare(a.Before.Limit, b.Before.Limit))
	})
	return all
}
