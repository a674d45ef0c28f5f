package perfetto

import (
	"cmp"
	"fmt"
	"reflect"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/stages"
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
		at := e.clock.Of(part, r.TsNS)
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
			e.packets.event(event{kind: instant, track: p.track, at: e.clock.Of(part, r.TsNS), name: timeline.SignalName(r.Signal),
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
		e.packets.event(event{kind: instant, track: p.track, at: e.clock.Of(of.Part, of.Exit.TsNS), name: name})
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
		for _, ref := range stages.Refs(f) {
			if t := times[ref]; t != 0 && (at == 0 || t < at) {
				at = t
			}
		}
		e.packets.event(event{kind: instant, track: track, at: max(at, e.clock.Begin, 1), name: f.Rule, notes: []note{
			{name: "certainty", text: f.Certainty.String()},
			{name: "title", text: words.Printable(f.Title)},
			{name: "loader", text: words.Printable(cmp.Or(f.Loader.At, "the run"))},
		}})
	}
	return nil
}

// times is when the rows came that findings refer to, on the trace's clock.
func (e *exporter) times() (map[finding.Ref]int64, error) {
	found := map[finding.Ref]int64{}
	err := stages.Referred(e.Run, e.Findings, func(ref finding.Ref, part *traces.Part, head traces.Head, _ reflect.Value) {
		found[ref] = e.clock.Of(part, head.TsNS)
	})
	return found, err
}
