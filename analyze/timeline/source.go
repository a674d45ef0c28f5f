package timeline

import "github.com/dptrace/dptrace/analyze/collect"

// Source is the timeline as a source of evidence: all others are told by it.
var Source = &collect.Source[*Timeline]{
	Name: "timeline",
	Tables: []string{"meta", "host", "process", "exit", "act", "signal", "oom", "limit", "lost", "loader", "pass", "worker", "optimizer",
		"dist", "memory", "batch_put", "batch_fetch", "exception", "batch_next"},
	Proof: []string{"process", "loader", "pass", "worker", "batch_next"},
	New:   func() collect.Collector[*Timeline] { return NewBuilder() },
}
