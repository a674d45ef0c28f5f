package traces

import (
	"errors"
	"io"
	"io/fs"
)

// readerAt reads a file at offsets that never fall, which is how a segment is
// read. Files of a folder can do it by themselves; the entries of an archive are
// read from their beginning on.
func readerAt(f fs.File) io.ReaderAt {
	if r, ok := f.(io.ReaderAt); ok {
		return r
	}
	return &forward{r: f}
}

type forward struct {
	r  io.Reader
	at int64
}

func (f *forward) ReadAt(b []byte, offset int64) (int, error) {
	if offset < f.at {
		return 0, errors.New("read backwards")
	}
	skipped, err := io.CopyN(io.Discard, f.r, offset-f.at)
	f.at += skipped
	if err != nil {
		return 0, err
	}
	n, err := io.ReadFull(f.r, b)
	f.at += int64(n)
	return n, err
}
