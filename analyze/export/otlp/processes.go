package otlp

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/dptrace/dptrace/analyze/account"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// member is a process whose memory is told in the name of a source.
type member struct {
	*meter
	attributes attribute.Set
	rss, cow   int64 // the windows that have a point, plus 1
	private    int64
	copied     map[string]int64 // pages, by kind of mapping
	told       int64            // bytes of them in the last point
	old        int64            // rows up to this time were sent already
}

// members are the processes of the sources: they themselves and their workers.
func members(t *timeline.Timeline, meters map[stages.Process]*meter, live *progress) map[stages.Process]*member {
	all := map[stages.Process]*member{}
	add := func(m *meter, p *timeline.Process, more ...attribute.KeyValue) {
		if rank := m.source.process.Rank; rank >= 0 {
			more = append(more, attribute.Int("dptrace.rank", int(rank)))
		}
		more = append(more, semconv.ProcessPID(int(p.Pid)))
		all[stages.Process{Part: p.Part, Proc: p.Proc}] = &member{meter: m, attributes: attribute.NewSet(more...), copied: map[string]int64{},
			old: live.of(m.source.process).memory}
	}
	for _, m := range meters {
		add(m, m.source.process)
	}
	for _, l := range t.Loaders {
		m := meters[stages.Process{Part: l.Process.Part, Proc: l.Process.Proc}]
		for _, w := range l.WorkerProcesses {
			if m != nil && w.Process != nil && w.Number >= 0 {
				add(m, w.Process, attribute.Int("dptrace.worker", w.Number), attribute.Int("dptrace.loader", l.ID))
			}
		}
	}
	return all
}

// point is due once in a window; n is the number of the last one that had it.
func (m *member) due(last *int64, ts int64) bool {
	n := (ts-m.begin)/window + 1
	if n <= *last {
		return false
	}
	*last = n
	m.rows = max(m.rows, ts)
	return ts > m.old
}

func (m *member) memory(ts int64, r *traces.Memory) {
	if r.Rss > 0 && m.due(&m.rss, ts) {
		m.sum(residentBytes, metricdata.DataPoint[int64]{Attributes: m.attributes, Time: m.time(ts), Value: r.Rss}, false)
	}
	if r.Source == "smaps_rollup" && m.due(&m.private, ts) {
		value := r.PrivateDirty + r.PrivateClean
		m.sum(privateBytes, metricdata.DataPoint[int64]{Attributes: m.attributes, Time: m.time(ts), Value: value}, false)
	}
}

// cowOf are the kinds of mapping whose faults were copies.
var cowOf = map[string]bool{"heap": true, "anon": true, "stack": true, "file": true}

func (m *member) cowed(ts int64, r *traces.Cow, page int64) {
	if !cowOf[r.Mapping] {
		return
	}
	m.copied[r.Mapping] = int64(r.User + r.Kernel)
	if !m.due(&m.cow, ts) && (!r.Final || ts <= m.old) {
		return
	}
	bytes := int64(0)
	for _, pages := range m.copied {
		bytes += pages * page
	}
	p := metricdata.DataPoint[int64]{Attributes: m.attributes, StartTime: m.time(m.begin), Time: m.time(ts), Value: bytes}
	if m.delta {
		p.Value = bytes - m.told
	}
	m.told = bytes
	m.sum(copiedBytes, p, true)
}

// lost and found are told once, as the run has ended.
func (t *meter) outcome(end int64, losses []account.Loss, findings []finding.Finding) {
	at, start := t.time(end), t.time(t.begin)
	for _, l := range losses {
		set := attribute.NewSet(attribute.String("dptrace.source", l.Source), attribute.String("dptrace.table", l.Table),
			attribute.String("dptrace.reason", words.Printable(l.Reason)))
		t.sum(lostRecords, metricdata.DataPoint[int64]{Attributes: set, StartTime: start, Time: at, Value: int64(max(l.Count, 1))}, true)
	}
	type kind struct {
		rule, certainty, at string
	}
	counts := map[kind]int64{}
	var order []kind
	for i := range findings {
		f := &findings[i]
		k := kind{f.Rule, f.Certainty.String(), words.Printable(f.Loader.At)}
		if counts[k]++; counts[k] == 1 {
			order = append(order, k)
		}
	}
	for _, k := range order {
		set := attribute.NewSet(attribute.String("dptrace.rule", k.rule), attribute.String("dptrace.certainty", k.certainty),
			attribute.String("dptrace.loader.at", k.at))
		t.sum(findingCount, metricdata.DataPoint[int64]{Attributes: set, Time: at, Value: counts[k]}, false)
	}
}
