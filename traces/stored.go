package traces

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
)

// stored is a segment that is being read.
type stored struct {
	data    fs.File
	seen    uint64      // bytes that data is known to have
	bytes   io.ReaderAt // of data
	idx     *bufio.Reader
	close_  []io.Closer
	record  [idxSize]byte
	index   int64  // bytes read of idx
	damaged uint64 // records among them
	offset  uint64
	schema  *storedSchema
	table   *table
	// Why the segment is to be skipped although its bytes are right.
	refused error  // its schema version
	unknown string // its table, or the type of one of its columns
}

func (s *stored) close() {
	for _, c := range s.close_ {
		c.Close()
	}
}

// openStored opens a segment and reads its schema. Without a readable schema
// it returns only the problem.
func openStored(p *Part, table string, files segmentFiles) (*stored, *Problem) {
	s := &stored{}
	problem := func(suffix string, kind ProblemKind, text string) (*stored, *Problem) {
		lost := s.restRows()
		s.close()
		return nil, &Problem{p, table, files.name + suffix, 0, kind, text, lost, 1}
	}
	if files.idx {
		f, err := p.files.Open(files.name + idxSuffix)
		if err != nil {
			return problem(idxSuffix, Damaged, err.Error())
		}
		s.idx, s.close_ = bufio.NewReader(f), append(s.close_, f)
	} else {
		return problem(idxSuffix, Missing, "no index, without it nothing of the segment can be trusted")
	}
	if !files.data {
		_, _ = s.next() // the schema's record, which counts no rows
		return problem(segmentSuffix, Missing, "only its index is there")
	}
	f, err := p.files.Open(files.name + segmentSuffix)
	if err != nil {
		return problem(segmentSuffix, Damaged, err.Error())
	}
	s.data, s.bytes, s.close_ = f, readerAt(f), append(s.close_, f)

	r, err := s.next()
	switch {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return problem(idxSuffix, Torn, "the index ends before the schema")
	case err == nil && (r.offset != 0 || r.length > maxMetaBytes+messagePrefix):
		err = errors.New("the index's first record is not of a schema")
	}
	if err != nil {
		return problem(idxSuffix, Damaged, err.Error())
	}
	message, err := s.message(r, nil)
	if errors.Is(err, errTorn) {
		return problem(segmentSuffix, Torn, "the file ends before the schema does")
	}
	if err == nil {
		s.schema, s.table, err = parseSchema(message)
	}
	switch {
	case errors.Is(err, ErrNewer) || errors.Is(err, ErrOlder):
		s.refused, s.unknown = err, err.Error()
	case errors.Is(err, errUnknownType):
		s.unknown = err.Error()
	case err != nil:
		return problem(segmentSuffix, Damaged, "schema: "+err.Error())
	case s.schema.meta["dptrace.table"] != table:
		return problem(segmentSuffix, Damaged, fmt.Sprintf("holds the table %q", s.schema.meta["dptrace.table"]))
	case s.table == nil:
		s.unknown = "this version has no such table"
	}
	return s, nil
}

// restRows sums the rows of the index records that were not read yet: what is
// lost when reading stops here. -1 where the index does not say.
func (s *stored) restRows() (n int64) {
	for s.idx != nil {
		r, err := s.next()
		switch {
		case err == io.EOF:
			return n
		case err != nil:
			return -1
		}
		n += int64(r.rows)
	}
	return -1
}

var (
	errIdxDamaged = errors.New("an index record does not match its checksum")
	errIdxEndless = errors.New("more index records are damaged than the stream has room for messages")
)

// next reads an index record. io.EOF: there is none left; io.ErrUnexpectedEOF:
// a part of one; errIdxDamaged: its contents are not to be used.
func (s *stored) next() (idxRecord, error) {
	if _, err := io.ReadFull(s.idx, s.record[:]); err != nil {
		return idxRecord{}, err
	}
	s.index += idxSize
	r, ok := parseIdx(s.record[:])
	if !ok {
		// A sparse index is read no further than the stream can explain it.
		if s.damaged++; !s.holds(s.damaged * minMessageBytes) {
			return idxRecord{}, errIdxEndless
		}
		return idxRecord{}, errIdxDamaged
	}
	return r, nil
}

var errTorn = errors.New("the file ends before the message does")

// message reads the bytes that r vouches for, into buf if it is big enough.
func (s *stored) message(r idxRecord, buf []byte) ([]byte, error) {
	if r.length > maxMessageBytes || r.offset > 1<<62 {
		return nil, fmt.Errorf("message of %d bytes at %d", r.length, r.offset)
	}
	// The file's size is asked for first: a hostile index must not make buf
	// bigger than what is there.
	if !s.holds(r.end()) {
		return nil, errTorn
	}
	if cap(buf) < int(r.length) {
		buf = make([]byte, r.length)
	}
	buf = buf[:r.length]
	if _, err := s.bytes.ReadAt(buf, int64(r.offset)); err != nil {
		return nil, err
	}
	s.offset = r.end()
	if crc32.Checksum(buf, castagnoli) != r.crc {
		return nil, errors.New("the bytes do not match their checksum")
	}
	return buf, nil
}

// holds reports whether the data file has so many bytes.
func (s *stored) holds(n uint64) bool {
	if n > s.seen && s.data != nil {
		s.seen = s.size()
	}
	return n <= s.seen
}

// size of the data file, 0 where it cannot be told.
func (s *stored) size() uint64 {
	info, err := s.data.Stat()
	if err != nil {
		return 0
	}
	return uint64(info.Size())
}

// tail is what follows the last message that the index knows: nothing or an
// end mark (nil), or a message that was being written.
func (s *stored) tail() error {
	size := s.size()
	if size <= s.offset {
		return nil
	}
	var b [8]byte
	if size-s.offset == uint64(len(b)) {
		if _, err := s.bytes.ReadAt(b[:], int64(s.offset)); err == nil && string(b[:]) == string(endMark) {
			return nil
		}
	}
	return fmt.Errorf("%d bytes that the index does not know", size-s.offset)
}
