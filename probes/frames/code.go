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
	return (&Codes{}).Place(l, memory, 0, f)
}

// Codes are code objects that were read, so that those which the workers of a loader have in common
// are read once: reading memory takes a dozen system calls for each.
type Codes struct{ known map[codeKey]code }

const mostCodes = 4096

// codeKey is an address in processes that are forked from one another.
type codeKey struct {
	family uint32
	at     uint64
}

// code is what is known of a code object.
type code struct {
	head
	file, function string
	table          []byte
}

// head is where the parts of a code object are: while they are the same, it is the same one.
type head struct {
	file, name, lines uint64
	first             int32
}

// Place is Layout.Place. family: a number of the processes that this one has its memory in common
// with, as far as none of them has changed it.
func (k *Codes) Place(l *Layout, memory io.ReaderAt, family uint32, f Frame) (Place, error) {
	r, at := reader{memory: memory}, f.Code&^tags
	h := r.head(&l.code, at)
	key := codeKey{family, at}
	c, ok := k.known[key]
	if !ok || c.head != h {
		c = code{h, r.text(&l.code, h.file), r.text(&l.code, h.name), r.bytes(h.lines)}
	}
	if r.err != nil {
		return Place{}, r.err
	}
	if c.first < 0 || c.function == "" || !strings.ContainsAny(c.file, "./<") || c.file == shim {
		return Place{}, errNoCode
	}
	if k.known == nil || len(k.known) >= mostCodes {
		k.known = map[codeKey]code{}
	}
	k.known[key] = c
	index := int(int32(f.Instruction)) * l.code.unit
	if !l.Index {
		index = int(int64(f.Instruction - at - l.code.instructions))
	}
	// It may not have begun: then it is at its first one.
	return Place{filepath.Clean(c.file), c.function, l.code.decode(c.table, int(c.first), max(index, 0))}, nil
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

// head of a code object.
func (r *reader) head(c *codeLayout, at uint64) head {
	b := r.read(at, int(max(c.file, c.name, c.lines, c.firstLine))+8)
	word := func(offset uint64) uint64 { return binary.LittleEndian.Uint64(b[offset:]) }
	return head{word(c.file), word(c.name), word(c.lines), int32(binary.LittleEndian.Uint32(b[c.firstLine:]))}
}

// bytes of a PyBytesObject.
func (r *reader) bytes(at uint64) []byte {
	const size, data = 16, 32
	n := binary.LittleEndian.Uint64(r.read(at, data)[size:])
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
	const length, state, end = 16, 32, 40
	header := r.read(at, end)
	n, bits := binary.LittleEndian.Uint64(header[length:]), header[state]
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
