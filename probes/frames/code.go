package frames

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Frame is a frame as it was walked: the address of its code object, and the address or the
// index of its instruction.
type Frame struct{ Code, Instruction uint64 }

// Place is where a frame is.
type Place struct {
	File, Function string
	Line           int // 0: none, as of what the compiler has added
}

func (p Place) String() string { return fmt.Sprintf("%s:%d %s", p.File, p.Line, p.Function) }

var errNoCode = errors.New("there is no code object")

const (
	mostText  = 4096     // bytes of a name
	mostLines = 1 << 20  // of a table of lines
	tags      = 7        // bits of a pointer to an object that are none of its address
	shim      = "<shim>" // the file of the frame below the first one, since Python 3.12
)

// Place reads where a frame is, out of a process' memory: /proc/PID/mem. What is no code object
// gives an error, or names that mean nothing: the memory may be another object's by now.
func (l *Layout) Place(memory io.ReaderAt, f Frame) (Place, error) {
	r, c := reader{memory: memory}, &l.code
	at := f.Code &^ tags
	p := Place{File: r.text(c, r.word(at+c.file)), Function: r.text(c, r.word(at+c.name))}
	first := int(int32(r.word(at + c.firstLine)))
	table := r.bytes(r.word(at + c.lines))
	if r.err != nil {
		return Place{}, r.err
	}
	if first < 0 || p.Function == "" || !strings.ContainsAny(p.File, "./<") || p.File == shim {
		return Place{}, errNoCode
	}
	index := int(int32(f.Instruction)) * c.unit
	if !l.Index {
		index = int(int64(f.Instruction - at - c.instructions))
	}
	if index < 0 {
		index = 0 // it has not begun
	}
	p.Line = c.decode(table, first, index)
	p.File = filepath.Clean(p.File)
	return p, nil
}

// reader reads until the first error.
type reader struct {
	memory io.ReaderAt
	err    error
}

func (r *reader) read(at uint64, n int) []byte {
	b := make([]byte, n)
	if r.err == nil {
		if at == 0 || int64(at) < 0 {
			r.err = errNoCode
		} else if _, err := r.memory.ReadAt(b, int64(at)); err != nil {
			r.err = fmt.Errorf("read memory at %#x: %w", at, err)
		}
	}
	return b
}

func (r *reader) word(at uint64) uint64 { return binary.LittleEndian.Uint64(r.read(at, 8)) }

// bytes of a PyBytesObject.
func (r *reader) bytes(at uint64) []byte {
	const size, data = 16, 32
	n := r.word(at + size)
	if r.err == nil && n > mostLines {
		r.err = errNoCode
	}
	if r.err != nil {
		return nil
	}
	return r.read(at+data, int(n))
}

// text of a str that is compact, as all are that the compiler makes.
func (r *reader) text(c *codeLayout, at uint64) string {
	const length, state = 16, 32
	n, bits := r.word(at+length), r.word(at+state)
	kind, compact, ascii := int(bits>>2&7), bits>>5&1 == 1, bits>>6&1 == 1
	if r.err == nil && (n > mostText || !compact || kind != 1 && kind != 2 && kind != 4) {
		r.err = errNoCode
	}
	if r.err != nil {
		return ""
	}
	if ascii {
		return string(r.read(at+c.ascii, int(n)))
	}
	raw := r.read(at+c.compact, int(n)*kind)
	var b strings.Builder
	for i := 0; i < len(raw); i += kind {
		switch kind {
		case 1:
			b.WriteRune(rune(raw[i]))
		case 2:
			b.WriteString(string(utf16.Decode([]uint16{binary.LittleEndian.Uint16(raw[i:])})))
		default:
			if x := rune(binary.LittleEndian.Uint32(raw[i:])); utf8.ValidRune(x) {
				b.WriteRune(x)
			}
		}
	}
	return b.String()
}
