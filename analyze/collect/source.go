// Package collect reads a trace once for all that is to be known of it. A Source
// is one kind of evidence: rules, the report and exporters name the sources that
// they look at, and however many do, its rows are read and what follows from
// them is computed once per run.
package collect

import "github.com/dptrace/dptrace/traces"

// Source is one kind of evidence, E.
type Source[E any] struct {
	Name string
	// Tables that the collector reads, in the order in which Add gets their rows.
	Tables []string
	// Proof is the tables a gap in which is a gap of the evidence; those of
	// Tables without which it is only poorer are not among them.
	Proof []string
	// Inside says that workers write the rows: one that was not watched from
	// inside is a gap.
	Inside bool
	// Shared says that all who read side by side give their rows to one collector,
	// whose Add they may call at the same time: for what is large.
	Shared bool
	// Uses is the sources that Build asks for.
	Uses []Any
	New  func() Collector[E]
}

// Collector takes the rows of some parts of a trace. The rows of one part go to
// one collector, in their order; collectors of different parts are merged in any
// order and grouping, which changes nothing.
type Collector[E any] interface {
	Add(traces.Batch)
	Merge(Collector[E]) // the other one is of the same source, and is not used afterwards
	// Build is called once, when all rows are in.
	Build(*Evidence) E
}

// Any is a source of any kind of evidence: a *Source.
type Any interface {
	tables() []string
	proof() []string
	inside() bool
	shared() bool
	uses() []Any
	new() collector
	name() string
}

// collector is a Collector whose kind of evidence is not looked at.
type collector interface {
	add(traces.Batch)
	merge(collector)
	build(*Evidence) any
}

func (s *Source[E]) tables() []string { return s.Tables }
func (s *Source[E]) proof() []string  { return s.Proof }
func (s *Source[E]) inside() bool     { return s.Inside }
func (s *Source[E]) shared() bool     { return s.Shared }
func (s *Source[E]) uses() []Any      { return s.Uses }
func (s *Source[E]) name() string     { return s.Name }
func (s *Source[E]) new() collector   { return typed[E]{s.New()} }

type typed[E any] struct{ Collector[E] }

func (t typed[E]) add(b traces.Batch)    { t.Add(b) }
func (t typed[E]) merge(o collector)     { t.Merge(o.(typed[E]).Collector) }
func (t typed[E]) build(e *Evidence) any { return t.Build(e) }

// Proof is the tables a gap in which is a gap of some sources, and whether
// workers write any of them.
func Proof(sources []Any) (tables []string, inside bool) {
	for _, s := range closed(sources) {
		tables, inside = append(tables, s.proof()...), inside || s.inside()
	}
	return distinct(tables), inside
}

// closed is some sources and all that they use, those that are used first.
func closed(sources []Any) []Any {
	var all []Any
	seen := map[Any]bool{}
	var add func([]Any)
	add = func(list []Any) {
		for _, s := range list {
			if !seen[s] {
				seen[s] = true
				add(s.uses())
				all = append(all, s)
			}
		}
	}
	add(sources)
	return all
}

// distinct keeps the first of equal names.
func distinct(names []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}
