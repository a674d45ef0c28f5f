package traces

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"unsafe"
)

// Batch is some rows of one table of one part.
type Batch struct {
	Part  *Part
	Table string
	Rows  any // a slice of the table's struct: []RngState and so on; at most 8192. It may be kept
}

// Each calls fn with all rows of the given tables (nil: of all), table by
// table, part by part, in the order of seq. Rows that cannot be read are left
// out and noted in r.Problems. It ends with fn's first error, or when a table
// does not exist; memory is bounded whatever the files hold.
func (r *Run) Each(names []string, fn func(Batch) error) error {
	wanted := tables
	if names != nil {
		wanted = nil
		for _, name := range names {
			t := tableOfName[name]
			if t == nil {
				return fmt.Errorf("read trace: no table %q", name)
			}
			wanted = append(wanted, t)
		}
	}
	for _, t := range wanted {
		for _, p := range r.Parts {
			r.progress.asked.Add(p.stored(t))
			if err := r.eachOf(p, t, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rows is all rows of T's table, for tables that need no batches. It panics
// where T is no struct of a table.
func Rows[T any](r *Run) iter.Seq2[*Part, T] {
	name := tableOfType[reflect.TypeFor[T]()].name
	return func(yield func(*Part, T) bool) {
		stop := errors.New("stop")
		// The only error is our own: what cannot be read is in r.Problems.
		_ = r.Each([]string{name}, func(b Batch) error {
			for _, row := range b.Rows.([]T) {
				if !yield(b.Part, row) {
					return stop
				}
			}
			return nil
		})
	}
}

// tableReader reads one table of one part.
type tableReader struct {
	losses
	def     *table
	dec     *decoder
	message []byte
	fn      func(Batch) error
	fnErr   error
	read    *atomic.Int64 // bytes
}

func (r *Run) eachOf(p *Part, t *table, fn func(Batch) error) error {
	if p.segments[t.name] == nil && p.rows[t.name] == 0 {
		return nil
	}
	dec, err := newDecoder()
	if err != nil {
		return fmt.Errorf("read trace: %w", err)
	}
	defer dec.close()
	tr := &tableReader{losses: losses{part: p, table: t.name}, def: t, dec: dec, fn: fn, read: &r.progress.read}
	for _, files := range p.segments[t.name] {
		if tr.segment(files); tr.fnErr != nil {
			break
		}
	}
	if tr.fnErr == nil && p.rows != nil {
		tr.account(p.rows[t.name])
	}
	r.note(tr.problems()...)
	return tr.fnErr
}

// segment reads one segment. It returns early only when fn failed.
func (tr *tableReader) segment(files segmentFiles) {
	data, idx := files.name+segmentSuffix, files.name+idxSuffix
	s, problem := openStored(tr.part, tr.table, files)
	if s == nil {
		tr.add(problem.Segment, problem.Offset, problem.Kind, problem.Text, problem.LostRows)
		return
	}
	defer s.close()
	if s.refused != nil || s.unknown != "" {
		tr.add(data, 0, Newer, s.unknown, s.restRows())
		return
	}
	after := false // a damaged index record: the next one need not follow on
	for {
		at := s.index
		rec, err := s.next()
		switch {
		case err == io.EOF:
			if err := s.tail(); err != nil && !after {
				tr.add(data, int64(s.offset), Torn, err.Error(), -1)
			}
			return
		case err == io.ErrUnexpectedEOF:
			tr.add(idx, at, Torn, "the index ends in a record", -1)
			return
		case err == errIdxDamaged:
			after = true
			tr.add(idx, at, Damaged, err.Error(), -1)
			continue
		case err != nil:
			tr.add(idx, at, Damaged, err.Error(), -1)
			return
		}
		if rec.offset < s.offset || rec.offset > s.offset && !after {
			tr.add(idx, at, Damaged, fmt.Sprintf("message at %d in place of %d", rec.offset, s.offset), -1)
			return
		}
		after = false
		err = tr.batch(s, rec)
		switch {
		case errors.Is(err, errTorn):
			rest := s.restRows()
			if rest >= 0 {
				rest += int64(rec.rows)
			}
			tr.add(data, int64(rec.offset), Torn, "the file ends before the last rows of its index", rest)
			return
		case err != nil:
			tr.add(data, int64(rec.offset), Damaged, err.Error(), int64(rec.rows))
		}
		s.offset = rec.end()
		if tr.fnErr != nil {
			return
		}
	}
}

// batch reads one batch and hands it on.
func (tr *tableReader) batch(s *stored, rec idxRecord) error {
	message, err := s.message(rec, tr.message)
	if err != nil {
		return err
	}
	tr.message = message
	tr.read.Add(int64(len(message)))
	rows, err := tr.decode(message, s, rec)
	if err != nil {
		return err
	}
	if rec.seq < tr.next {
		return fmt.Errorf("begins with row %d, which was read already", rec.seq)
	}
	tr.account(rec.seq)
	tr.next += uint64(rec.rows)
	tr.fnErr = tr.fn(Batch{tr.part, tr.table, rows})
	return nil
}

// decode turns a message whose checksum is right to rows.
func (tr *tableReader) decode(message []byte, s *stored, rec idxRecord) (rows any, err error) {
	defer caught(&err)
	b, err := parseBatch(message, s.schema)
	if err != nil {
		return nil, err
	}
	if b.rows != int(rec.rows) {
		return nil, fmt.Errorf("%d rows, the index says %d", b.rows, rec.rows)
	}
	rows, base, err := tr.dec.rows(s.table, s.schema, b)
	if err != nil {
		return nil, err
	}
	for i := range b.rows {
		head := (*Head)(unsafe.Add(base, uintptr(i)*s.table.typ.Size()))
		if head.Seq != rec.seq+uint64(i) {
			return nil, fmt.Errorf("row %d of the batch has number %d, the index says %d", i, head.Seq, rec.seq+uint64(i))
		}
	}
	return rows, nil
}

// caught makes an error of a panic. Every length and offset is checked before
// it is used; should one have been forgotten, a foreign file still must not end
// the program.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%s %v at %s", panicked, p, innermost(debug.Stack()))
	}
}

const panicked = "decoder panicked:"

// innermost is the first frame of ours in a stack, for the text of a problem.
func innermost(stack []byte) string {
	for _, line := range strings.Split(string(stack), "\n") {
		if i := strings.Index(line, "/traces/"); i >= 0 && !strings.Contains(line, "reader.go") {
			return strings.TrimSpace(line[i+1:])
		}
	}
	return "unknown place"
}
