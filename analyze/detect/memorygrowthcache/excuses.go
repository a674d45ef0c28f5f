package memorygrowthcache

import (
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/growth"
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
		return named && l.line.Path != "" && l.kind == endless && l.line.Bound == "" && !l.line.Stops()
	},
}, {
	Text: "it holds something for each sample or key, once, and all of that fits in memory.",
	Excluded: func(c *detect.Case, f *finding.Finding) bool {
		l, named := f.Facts.(leak)
		if !named || l.kind != endless || l.line.Path == "" || l.keysFit() {
			return false
		}
		return l.again >= revisited && l.fresh <= 1-revisited || c.First().Iterable() && ordered(l.line)
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

// ordered reports whether what is put into it is put at its end, and not under a
// key: of a stream nobody knows which samples come again.
func ordered(line *growth.Line) bool {
	class := line.Class[strings.LastIndexByte(line.Class, '.')+1:]
	return !strings.HasSuffix(line.Path, "[*]") &&
		slices.Contains([]string{"list", "deque", "ndarray", "Tensor", "str", "bytes", "bytearray", "BytesIO"}, class)
}
