package traces

import (
	"encoding/binary"
	"io"
	"time"
)

var time0 = time.Unix(0, 0)

// messages collects what an Arrow writer writes and splits it at the end of
// the schema message.
type messages struct{ b []byte }

func (m *messages) Write(p []byte) (int, error) {
	m.b = append(m.b, p...)
	return len(p), nil
}

func (m *messages) Read(p []byte) (int, error) {
	if len(m.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, m.b)
	m.b = m.b[n:]
	return n, nil
}

func (m *messages) schemaLen() int { return messagePrefix + int(binary.LittleEndian.Uint32(m.b[4:])) }
func (m *messages) schema() []byte { return m.b[:m.schemaLen()] }
func (m *messages) rest() []byte   { return m.b[m.schemaLen():] }
