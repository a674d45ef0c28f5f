// Package export writes what a trace holds in the forms of other tools. Each
// exporter is one folder beside this file and one line in List.
package export

import (
	"io"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
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

// List is all exporters.
var List = []Exporter{
	{"perfetto", perfetto.Doc, perfetto.Long, ".pftrace", "https://ui.perfetto.dev (Open trace file: FILE)", perfetto.Sources, perfetto.Write},
	{"pprof", pprof.Doc, pprof.Long, ".pb.gz", "go tool pprof -http=: FILE", pprof.Sources, pprof.Write},
}
