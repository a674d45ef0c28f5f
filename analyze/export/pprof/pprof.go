// Package pprof writes the memory that processes of a run have copied from
// their parents, and how they grew, as a profile for `go tool pprof`.
package pprof

import (
	"errors"
	"fmt"
	"io"

	"github.com/google/pprof/profile"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Doc is the exporter in one line.
const Doc = "Memory copied and gained by each worker, as a profile for go tool pprof"

// Long is what is in the file.
const Long = `Writes a profile with three values:

  cow             bytes that a process has copied from its parent by writing to
                  them (copy-on-write)
  cow_faults      write faults on memory that the process inherited; those of a
                  process that has forked itself are counted here only (mapping
                  "parent"): what was copied cannot be told from what was only
                  write-protected
  private_growth  bytes of private memory (smaps_rollup) gained between the first
                  and the last look at the process

Stacks lead from the attribute of the dataset, or the kind of mapping, over the
worker and its loader to the command. Labels: rank, worker, pass, mapping, pid,
and proof: who counted (kernel, hook, procfs). Without the kernel tier cow is
what the workers' page maps say about the containers of their dataset, and there
are no faults.`

// ErrNothing: no process was measured.
var ErrNothing = errors.New("the trace holds no memory measurements: nothing to export")

// The values of a sample.
const (
	cow = iota
	cowFaults
	privateGrowth
	values
)

// Source is what the profile is made of.
var Source = &collect.Source[*measured]{
	Name:   "pprof",
	Tables: []string{"meta", "host", "memory", "cow", "extent", "private"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*measured] { return newMeasured() },
}

// Write writes the profile of a run.
func Write(w io.Writer, r *analyze.Result) error {
	m := collect.Of(r.Evidence, Source)
	p := newProfile(r.Timeline, m)
	for _, process := range places(r.Timeline) {
		m.samples(p, process)
	}
	if len(p.Sample) == 0 {
		return fmt.Errorf("export pprof: %w", ErrNothing)
	}
	if err := p.CheckValid(); err != nil {
		return fmt.Errorf("export pprof: %w", err)
	}
	if err := p.Write(w); err != nil {
		return fmt.Errorf("export pprof: %w", err)
	}
	return nil
}

// builder is a profile in the making.
type builder struct {
	profile.Profile
	program   *profile.Mapping
	locations map[frame]*profile.Location
}

// frame is one line of a stack.
type frame struct {
	name, file string
	line       int64
}

func newProfile(t *timeline.Timeline, m *measured) *builder {
	// Without these pprof would look for the symbols of a program on this disk.
	program := &profile.Mapping{ID: 1, File: command(t), HasFunctions: true, HasFilenames: true, HasLineNumbers: true}
	return &builder{
		Profile: profile.Profile{
			SampleType: []*profile.ValueType{
				cow:           {Type: "cow", Unit: "bytes"},
				cowFaults:     {Type: "cow_faults", Unit: "count"},
				privateGrowth: {Type: "private_growth", Unit: "bytes"},
			},
			DefaultSampleType: "cow",
			PeriodType:        &profile.ValueType{Type: "cow", Unit: "bytes"},
			Period:            1,
			TimeNanos:         m.started,
			DurationNanos:     max(t.End-t.Begin, 0),
			Mapping:           []*profile.Mapping{program},
			Comments:          m.comments(),
		},
		program:   program,
		locations: map[frame]*profile.Location{},
	}
}

func (b *builder) location(f frame) *profile.Location {
	if l := b.locations[f]; l != nil {
		return l
	}
	// No SystemName: pprof would take it for C++ and cut (...) and <...> out of it.
	fn := &profile.Function{ID: uint64(len(b.Function) + 1), Name: f.name, Filename: f.file, StartLine: f.line}
	l := &profile.Location{ID: uint64(len(b.Location) + 1), Mapping: b.program, Line: []profile.Line{{Function: fn, Line: f.line}}}
	b.Function = append(b.Function, fn)
	b.Location = append(b.Location, l)
	b.locations[f] = l
	return l
}

// sample adds values at a leaf of a process's stack.
func (b *builder) sample(p *place, leaf frame, mapping, proof string, v [values]int64) {
	if v == [values]int64{} {
		return
	}
	s := &profile.Sample{Value: v[:], Label: p.labels(), NumLabel: map[string][]int64{"pid": {int64(p.process.Pid)}}}
	if leaf != (frame{}) {
		s.Location = append(s.Location, b.location(leaf))
	}
	for _, f := range p.stack {
		s.Location = append(s.Location, b.location(f))
	}
	s.Label["mapping"] = []string{mapping}
	s.Label["proof"] = []string{proof}
	b.Sample = append(b.Sample, s)
}
