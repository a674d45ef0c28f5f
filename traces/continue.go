package traces

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// place is where a table of a part that was cut goes on.
type place struct {
	segments int    // number of the next one
	next     uint64 // number of the next row
}

// Continue opens a part that was cut, to add rows that were found later: in new
// segments, numbered on. in is the folder of the trace.
func Continue(in *os.Root, p *Part, o Options) (*Writer, error) {
	root, err := in.OpenRoot(p.Name)
	if err != nil {
		return nil, fmt.Errorf("continue part of trace: %w", err)
	}
	o.RunID, o.BootID = p.RunID, p.BootID
	w, err := newWriter(root, filepath.Join(in.Name(), p.Name), o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("continue part of trace: %w", err), root.Close())
	}
	w.before = map[string]place{}
	for table, segments := range p.segments {
		at := place{segments: segments[len(segments)-1].number + 1}
		for _, files := range segments {
			at.next = max(at.next, p.lastRow(table, files))
		}
		w.before[table] = at
	}
	return w, nil
}

// lastRow is the number after that of a segment's last row.
func (p *Part) lastRow(table string, files segmentFiles) (next uint64) {
	s, _ := openStored(p, table, files)
	if s == nil {
		return 0
	}
	defer s.close()
	for {
		rec, err := s.next()
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF || err == errIdxEndless:
			return next
		case err == nil:
			next = max(next, rec.seq+uint64(rec.rows))
		}
	}
}

// begin is the writer of a table, where one before has ended.
func (w *Writer) begin(def *table) *tableWriter {
	at := w.before[def.name]
	return &tableWriter{buffered: newBuffered(def), segments: at.segments, next: at.next}
}
