package otlp

import (
	"cmp"
	"reflect"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	pb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// proof is a finding and the batches that prove it.
type proof struct {
	*finding.Finding

	at       int64 // of the first row that proves it, on the run's clock; 0: none tells
	process  stages.Process
	trace    traceID // of the first batch that proves it, once that was seen
	seen     bool
	evidence string // its first line
}

func (p *proof) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		attribute.String("dptrace.rule", p.Rule),
		attribute.String("dptrace.certainty", p.Certainty.String()),
		attribute.String("dptrace.title", words.Printable(p.Title)),
		attribute.Int("dptrace.loader", p.Loader.ID),
		attribute.String("dptrace.loader.at", words.Printable(p.Loader.At)),
	}
}

// event is the finding on the batch that proves it.
func (p *proof) event(m *maker) *pb.Span_Event {
	return &pb.Span_Event{Name: "dptrace.finding", TimeUnixNano: m.at(p.at), Attributes: append(keyValues(p.attributes()),
		&common.KeyValue{Key: "dptrace.evidence", Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: p.evidence}}})}
}

// place is what a row says of the batch that it belongs to: which one, or which
// fetch of its worker.
type place struct {
	stages.Process
	loader, pass uint32
	fetched      bool // n is BatchFetch.Fetch, else BatchPut.Batch
	n            uint32
}

// proofs are the findings of a run, and which batches prove them.
type proofs struct {
	all []*proof
	of  map[place][]*proof
	// copies are those rows that are of the step in which they were made, whichever that is.
	copies map[stages.Process][]copyProof
}

type copyProof struct {
	at int64
	*proof
}

// newProofs reads the rows that findings refer to.
func newProofs(r *analyze.Result, c *stages.Clock) (*proofs, error) {
	ps := &proofs{of: map[place][]*proof{}, copies: map[stages.Process][]copyProof{}}
	wanted := map[finding.Ref][]*proof{}
	for i := range r.Findings {
		f := &r.Findings[i]
		p := &proof{Finding: f}
		if len(f.Evidence) > 0 {
			p.evidence = words.Printable(f.Evidence[0].Text)
		}
		ps.all = append(ps.all, p)
		for _, ref := range stages.Refs(f) {
			wanted[ref] = append(wanted[ref], p)
		}
	}
	err := stages.Referred(r.Run, r.Findings, func(ref finding.Ref, part *traces.Part, head traces.Head, row reflect.Value) {
		for _, p := range wanted[ref] {
			ps.add(p, stages.Process{Part: part, Proc: head.Proc}, c.Of(part, head.TsNS), row)
		}
	})
	return ps, err
}

func (ps *proofs) add(p *proof, process stages.Process, at int64, row reflect.Value) {
	if p.at == 0 || at < p.at {
		p.at, p.process = at, process
	}
	if row.Type() == reflect.TypeFor[traces.Copy]() {
		ps.copies[process] = append(ps.copies[process], copyProof{at, p})
		return
	}
	if where, ok := placeOf(process, row); ok && !slices.Contains(ps.of[where], p) {
		ps.of[where] = append(ps.of[where], p)
	}
}

// placeOf reads the columns that name a batch: most tables of what happens in a
// fetch have the number of the fetch, those of batches the number of the batch.
func placeOf(process stages.Process, row reflect.Value) (place, bool) {
	loader, pass := row.FieldByName("Loader"), row.FieldByName("Pass")
	fetch, batch := row.FieldByName("Fetch"), row.FieldByName("Batch")
	if !pass.IsValid() || !fetch.IsValid() && !batch.IsValid() {
		return place{}, false
	}
	where := place{Process: process, pass: uint32(pass.Uint())}
	if loader.IsValid() {
		where.loader = uint32(loader.Uint())
	}
	if where.fetched = fetch.IsValid(); where.fetched {
		where.n = uint32(fetch.Uint())
	} else {
		where.n = uint32(batch.Uint())
	}
	return where, true
}

// on are the findings that a batch proves.
func (ps *proofs) on(b *stages.Batch, id traceID) []*proof {
	if len(ps.of)+len(ps.copies) == 0 {
		return nil
	}
	main := stages.Process{Part: b.Process.Part, Proc: b.Process.Proc}
	found := slices.Clone(ps.of[place{Process: main, loader: b.Object, pass: b.Pass, n: b.Number}])
	if h := b.Stages[stages.H2D]; h.Known() {
		for _, c := range ps.copies[main] {
			if h.Begin <= c.at && c.at <= h.End {
				found = append(found, c.proof)
			}
		}
	}
	if w := b.Worker; w != nil && w.Process != nil {
		who := stages.Process{Part: w.Process.Part, Proc: w.Process.Proc}
		at := place{Process: who, loader: b.Object, pass: b.Pass, fetched: true, n: b.Fetch}
		if w.Number >= 0 { // a worker knows neither its loader nor the passes before its own
			at.loader, at.pass = 0, b.Local
		}
		found = slices.Concat(found, ps.of[at])
		at.fetched, at.n = false, b.Number
		if w.Number >= 0 {
			found = slices.Concat(found, ps.of[at])
		}
	}
	slices.SortStableFunc(found, func(a, b *proof) int { return cmp.Compare(a.Rule, b.Rule) })
	found = slices.Compact(found)
	for _, p := range found {
		if !p.seen {
			p.seen, p.trace = true, id
		}
	}
	return found
}
