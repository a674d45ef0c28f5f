// Package pprof writes the memory that processes of a run have copied from
// their parents, how they grew, and where the time of their loops went, as a profile for `go tool pprof`.
package pprof

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/google/pprof/profile"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/evidence/fetches"
	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/traces"
)

// Doc is the exporter in one line.
const Doc = "Memory copied and gained by each worker, and time by stage, as a profile for go tool pprof"

// Long is what is in the file.
const Long = `Writes a profile with seven values:

  cow             bytes that a process has copied from its parent by writing to
                  them (copy-on-write)
  cow_faults      write faults on memory that the process inherited; those of a
                  process that has forked itself are counted here only (mapping
                  "parent"): what was copied cannot be told from what was only
                  write-protected
  private_growth  bytes of private memory (smaps_rollup) gained between the first
                  and the last look at the process
  time            nanoseconds: what each worker did (fetch, with each transform
                  that was timed; collate; idle for want of an index), and what
                  the training loop did: its steps, the start of passes, and what
                  next() waited for, by stage
  copied          bytes of CUDA copies of more than 64 KiB (kernel tier)
  copy_time       nanoseconds that a thread was in the calls that copy, and in the
                  wait that came right after them
  written         faults of cow_faults by the line of Python that made them, as far
                  as one in 64 was looked at: each counts as 64 (kernel tier)

Stacks lead from the line of Python (of copied, copy_time and written), the attribute of the dataset, or the kind of mapping, over the
worker and its loader to the command; those of times begin with the stage.
Labels: rank, worker, pass, loader (of times), mapping, pid (of memory), and
proof: who counted (kernel, hook, procfs). Without the kernel tier cow is what
the workers' page maps say about the containers of their dataset, and there
are no faults.`

// ErrNothing: no process was measured.
var ErrNothing = errors.New("the trace holds no memory measurements and no times of batches: nothing to export")

// The values of a sample.
const (
	cow = iota
	cowFaults
	privateGrowth
	stageTime
	copyBytes
	copyTime
	writtenFaults
	values
)

// Sources is what the profile is made of.
var Sources = []collect.Any{memory.Source, memory.LookSource, looptime.Source}

// Write writes the profile of a run.
func Write(w io.Writer, r *analyze.Result) error {
	p := newProfile(r)
	m, looks := collect.Of(r.Evidence, memory.Source), collect.Of(r.Evidence, memory.LookSource)
	all := places(r.Timeline)
	for _, process := range all {
		if look, ok := looks.Of(process.process); ok {
			p.sample(process, frame{}, "all", "procfs", [values]int64{privateGrowth: look.Last.PrivateDirty - look.First.PrivateDirty})
		}
		if m.Counted(process.process.Part) {
			p.kernel(process, m)
		} else {
			p.hook(process, m)
		}
	}
	p.times(r.Timeline, r.Loops)
	lines := linesOf(r.Run)
	p.copies(r.Run, all, lines)
	p.written(r.Run, all, lines)
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
	fetches   fetches.ByLoader
}

// frame is one line of a stack.
type frame struct {
	name, file string
	line       int64
}

func newProfile(r *analyze.Result) *builder {
	// Without these pprof would look for the symbols of a program on this disk.
	program := &profile.Mapping{ID: 1, File: printable(command(r.Timeline)), HasFunctions: true, HasFilenames: true, HasLineNumbers: true}
	return &builder{
		Profile: profile.Profile{
			SampleType: []*profile.ValueType{
				cow:           {Type: "cow", Unit: "bytes"},
				cowFaults:     {Type: "cow_faults", Unit: "count"},
				privateGrowth: {Type: "private_growth", Unit: "bytes"},
				stageTime:     {Type: "time", Unit: "nanoseconds"},
				copyBytes:     {Type: "copied", Unit: "bytes"},
				copyTime:      {Type: "copy_time", Unit: "nanoseconds"},
				writtenFaults: {Type: "written", Unit: "count"},
			},
			DefaultSampleType: "cow",
			PeriodType:        &profile.ValueType{Type: "cow", Unit: "bytes"},
			Period:            1,
			TimeNanos:         started(r.Run),
			DurationNanos:     max(r.Timeline.End-r.Timeline.Begin, 0),
			Mapping:           []*profile.Mapping{program},
			Comments:          []string{comment(r)},
		},
		program:   program,
		locations: map[frame]*profile.Location{},
		fetches:   r.Fetches,
	}
}

// started is when the first part began, in nanoseconds since 1970; 0 not known.
func started(run *traces.Run) (first int64) {
	for _, p := range run.Parts {
		if p.Started != 0 && (first == 0 || p.Started < first) {
			first = p.Started
		}
	}
	return first
}

// comment stands above what every command of pprof prints.
func comment(r *analyze.Result) string {
	version := ""
	for _, p := range r.Run.Parts {
		version = cmp.Or(version, p.Version)
	}
	return printable("dptrace " + version + ", tier " + r.Tier.Name)
}

func (b *builder) location(f frame) *profile.Location {
	if l := b.locations[f]; l != nil {
		return l
	}
	// No SystemName: pprof would take it for C++ and cut (...) and <...> out of it.
	fn := &profile.Function{ID: uint64(len(b.Function) + 1), Name: printable(f.name), Filename: printable(f.file), StartLine: f.line}
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
	s.Label["mapping"] = []string{printable(mapping)}
	s.Label["proof"] = []string{proof}
	b.Sample = append(b.Sample, s)
}
