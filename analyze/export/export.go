// Package export writes what a trace holds in the forms of other tools. Each
// exporter is one folder beside this file and one line in List.
package export

import (
	"io"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/export/otlp"
	"github.com/dptrace/dptrace/analyze/export/perfetto"
	"github.com/dptrace/dptrace/analyze/export/pprof"
)

// Exporter is one form that a trace can be written in: `dptrace export NAME`.
type Exporter struct {
	Name   string // its folder, and the name of the command
	Doc    string // one line, no full stop
	Long   string // what is in the file
	Suffix string // of the file
	Open   string // how to look at it; FILE stands for the file
	// Sources is what it writes, besides the timeline.
	Sources []collect.Any
	Write   func(io.Writer, *analyze.Result) error
}

// Senders are those that send to a server in the place of writing a file. Each has
// a command of its own.
var Senders = []Sender{
	{"otlp", otlp.Sources, func(r *analyze.Result) error {
		_, err := otlp.Discard(r, otlp.Options{Sample: 1})
		return err
	}},
}

// Sender is one of Senders.
type Sender struct {
	Name    string // its folder, and the name of the command
	Sources []collect.Any
	Discard func(*analyze.Result) error // makes all that it would send, for tests
}

// List is all exporters that write files.
var List = []Exporter{
	{"perfetto", perfetto.Doc, perfetto.Long, ".pftrace", "https://ui.perfetto.dev (Open trace file: FILE)", perfetto.Sources, perfetto.Write},
	{"pprof", pprof.Doc, pprof.Long, ".pb.gz", "go tool pprof -http=: FILE", pprof.Sources, pprof.Write},
}
