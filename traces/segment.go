package traces

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	segmentSuffix = ".arrows"
	idxSuffix     = ".idx"
	// A segment is closed at this size or age.
	maxSegmentBytes = 64 << 20
	maxSegmentAge   = 10 * time.Minute
)

func segmentName(table string, n int) string { return fmt.Sprintf("%s.%04d", table, n) }

// file is what a segment needs of *os.File; tests put failing ones in its place.
type file interface {
	io.WriteCloser
	Truncate(size int64) error
	Seek(offset int64, whence int) (int64, error)
	Sync() error
}

func createFile(root *os.Root, name string) (file, error) {
	return root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

// segment is one stream file and its index, while they are written.
type segment struct {
	path      string // without suffix
	data, idx file
	size      int64 // of data: whole messages only
	idxBytes  int64
	opened    time.Time
	fsync     bool
	scratch   []byte
}

// openSegment makes both files and writes the schema message. Where that
// fails, nothing remains.
func openSegment(root *os.Root, dir, name string, o Options, schema []byte, now time.Time) (*segment, error) {
	s := &segment{path: filepath.Join(dir, name), opened: now, fsync: o.Fsync}
	var err error
	if s.data, err = o.create(s.path + segmentSuffix); err != nil {
		return nil, err
	}
	if s.idx, err = o.create(s.path + idxSuffix); err == nil {
		err = s.write(schema, idxRecord{})
	}
	if err != nil {
		s.abandon(root)
		return nil, err
	}
	return s, nil
}

func (s *segment) abandon(root *os.Root) {
	name := filepath.Base(s.path)
	s.data.Close()
	_ = root.Remove(name + segmentSuffix) // what stays is no whole segment
	if s.idx != nil {
		s.idx.Close()
		_ = root.Remove(name + idxSuffix)
	}
}

// write appends a message, then its index record: without the record the
// message is a torn tail. After an error the segment ends where it ended
// before, or, where it cannot even be cut, in a torn tail; write no more to it.
func (s *segment) write(message []byte, r idxRecord) error {
	r.offset, r.length, r.crc = uint64(s.size), uint32(len(message)), crc32.Checksum(message, castagnoli)
	s.scratch = r.append(s.scratch[:0])
	err := writeSync(s.data, message, s.fsync)
	if err == nil {
		err = writeSync(s.idx, s.scratch, s.fsync)
	}
	if err != nil {
		return errors.Join(err, cut(s.idx, s.idxBytes), cut(s.data, s.size))
	}
	s.size += int64(len(message))
	s.idxBytes += idxSize
	return nil
}

func writeSync(f file, b []byte, fsync bool) error {
	if _, err := f.Write(b); err != nil {
		return err
	}
	if fsync {
		return f.Sync()
	}
	return nil
}

func cut(f file, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err := f.Seek(size, io.SeekStart)
	return err
}

// close ends the stream, so that Arrow readers see a whole one.
func (s *segment) close() error {
	err := writeSync(s.data, endMark, s.fsync)
	if err != nil {
		err = errors.Join(err, cut(s.data, s.size))
	}
	return errors.Join(err, s.data.Close(), s.idx.Close())
}

func (s *segment) full(now time.Time) bool {
	return s.size >= maxSegmentBytes || now.Sub(s.opened) >= maxSegmentAge
}
