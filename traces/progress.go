package traces

import (
	"io/fs"
	"sync/atomic"
)

// Progress is how far the reading of a run has come; it may be looked at while
// others read.
type Progress struct {
	asked, read atomic.Int64
}

// Bytes of rows that were read so far, as they are stored, and of all that was asked to be read.
func (p *Progress) Bytes() (read, asked int64) { return p.read.Load(), p.asked.Load() }

// Progress of all reading of the run since it was opened.
func (r *Run) Progress() *Progress { return &r.progress }

// stored is the size of a table of a part, in bytes; what cannot be told is not in it.
func (p *Part) stored(t *table) (size int64) {
	for _, files := range p.segments[t.name] {
		if info, err := fs.Stat(p.files, files.name+segmentSuffix); err == nil {
			size += info.Size()
		}
	}
	return size
}
