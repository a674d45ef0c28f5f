package memorygrowthcache

import (
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
)

// revisited is the share of a pass's samples that its process must have been
// asked for before, so that what holds something for each sample would have
// grown by clearly less than in the first pass.
const revisited = 0.4

// excuses are the programs in which such growth is no bug.
var excuses = []detect.Excuse{{
	Text: "it stops at a length that it has not reached yet, or is emptied later than this recording goes, and that fits.",
	Excluded: func(_ *detect.Case, f *finding.Finding) bool {
		l, named := f.Facts.(leak)
		return named && l.line.Path != "" && l.kind == endless && l.line.Bound == ""
	},
}, {
	Text: "it holds something for each sample or key, once, and all of that fits in memory.",
	Excluded: func(c *detect.Case, f *finding.Finding) bool {
		l, named := f.Facts.(leak)
		return named && l.kind == endless && (l.again >= revisited || c.First().Iterable())
	},
}, {
	Text: "it is what the program wants to have in the end, and has room for.",
	Excluded: func(_ *detect.Case, f *finding.Finding) bool {
		l, named := f.Facts.(leak)
		return named && l.line.InWorkers() // whose memory nobody can ask for, and which goes with them
	},
}, {
	Text: "the memory allocator keeps what was freed, and will use it again.",
	Excluded: func(_ *detect.Case, f *finding.Finding) bool {
		l, named := f.Facts.(leak)
		return named && l.line.Path != "" && !l.line.Graph
	},
}}
