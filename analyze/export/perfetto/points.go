package perfetto

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sort"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// memory draws what processes hold, as it was sampled.
func (e *exporter) memory() {
	unit := message(nil, trackCounter, number(nil, counterUnit, unitBytes))
	for part, r := range traces.Rows[traces.Memory](e.Run) {
		p := e.of(part, r.Proc)
		if p == nil || r.Rss == 0 {
			continue
		}
		at := e.clock.of(part, r.TsNS)
		if p.rss == 0 {
			p.rss = e.child(p, "resident memory", unit)
		}
		e.packets.event(event{kind: counter, track: p.rss, at: at, value: r.Rss})
		if r.Source != "smaps_rollup" {
			continue
		}
		if p.private == 0 {
			p.private = e.child(p, "private memory", unit)
		}
		e.packets.event(event{kind: counter, track: p.private, at: at, value: r.PrivateDirty + r.PrivateClean})
	}
}

// signals draws those that were sent to processes of the run.
func (e *exporter) signals() {
	for part, r := range traces.Rows[traces.Signal](e.Run) {
		if p := e.of(part, r.Proc); p != nil {
			sender := cmp.Or(words.Printable(cmp.Or(r.SenderCmdline, r.SenderComm)), "the kernel")
			e.packets.event(event{kind: instant, track: p.track, at: e.clock.of(part, r.TsNS), name: timeline.SignalName(r.Signal),
				notes: []note{{name: "from", text: sender}, {name: "pid", n: int64(r.SenderPid)}}})
		}
	}
}

// ends draws how processes ended.
func (e *exporter) ends() {
	for _, of := range e.Timeline.Processes {
		p := e.of(of.Part, of.Proc)
		if p == nil || of.Exit == nil {
			continue
		}
		name := "ended"
		switch x := of.Exit; {
		case x.Signal != 0:
			name = "killed by " + timeline.SignalName(x.Signal)
		case x.ExitCode >= 0:
			name = fmt.Sprintf("exit code %d", x.ExitCode)
		}
		e.packets.event(event{kind: instant, track: p.track, at: e.clock.of(of.Part, of.Exit.TsNS), name: name})
	}
}

// findings draws each at the first row that its evidence refers to.
func (e *exporter) findings() error {
	if len(e.Findings) == 0 {
		return nil
	}
	times, err := e.times()
	if err != nil {
		return err
	}
	track := e.child(&process{}, "findings", nil)
	for i := range e.Findings {
		f := &e.Findings[i]
		at := int64(0)
		for _, ref := range refs(f) {
			if t := times[ref]; t != 0 && (at == 0 || t < at) {
				at = t
			}
		}
		e.packets.event(event{kind: instant, track: track, at: max(at, e.clock.begin, 1), name: f.Rule, notes: []note{
			{name: "certainty", text: f.Certainty.String()},
			{name: "title", text: words.Printable(f.Title)},
			{name: "loader", text: words.Printable(cmp.Or(f.Loader.At, "the run"))},
		}})
	}
	return nil
}

func refs(f *finding.Finding) (all []finding.Ref) {
	for _, e := range f.Evidence {
		all = append(all, e.Refs...)
	}
	return all
}

// times is when the rows came that findings refer to, on the trace's clock.
func (e *exporter) times() (map[finding.Ref]int64, error) {
	wanted, tables := map[string][]finding.Ref{}, []string{}
	for i := range e.Findings {
		for _, r := range refs(&e.Findings[i]) {
			if len(wanted[r.Table]) == 0 {
				tables = append(tables, r.Table)
			}
			wanted[r.Table] = append(wanted[r.Table], r)
		}
	}
	found := map[finding.Ref]int64{}
	if len(tables) == 0 {
		return found, nil
	}
	for _, list := range wanted {
		slices.SortFunc(list, func(a, b finding.Ref) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	err := e.Run.Each(tables, func(b traces.Batch) error {
		rows := reflect.ValueOf(b.Rows)
		if rows.Len() == 0 {
			return nil
		}
		list := wanted[b.Table]
		from := sort.Search(len(list), func(i int) bool { return list[i].Seq >= head(rows, 0).Seq })
		for _, r := range list[from:] {
			i := sort.Search(rows.Len(), func(i int) bool { return head(rows, i).Seq >= r.Seq })
			if i == rows.Len() {
				break
			}
			if h := head(rows, i); h.Seq == r.Seq && (r.Part == "" || r.Part == b.Part.Name) {
				found[r] = e.clock.of(b.Part, h.TsNS)
			}
		}
		return nil
	})
	return found, err
}

// head is what begins each row of each table.
func head(rows reflect.Value, i int) traces.Head {
	return rows.Index(i).FieldByName("Head").Interface().(traces.Head)
}
