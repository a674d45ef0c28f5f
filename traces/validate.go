package traces

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// Limits of what a reader accepts; FORMAT.md promises that writers keep them.
const (
	maxMessageBytes  = 16 << 20 // of a message in the stream
	minMessageBytes  = 16       // of its prefix and the least flatbuffer
	maxMetaBytes     = 64 << 10 // of its flatbuffer
	maxColumns       = 256
	maxColumnName    = 128
	maxColumnDepth   = 4        // of lists in lists, in columns that this version does not know
	maxUnpackedBytes = 16 << 20 // of all buffers of a batch, decompressed
)

// Types of columns that a later version may add and this one can skip.
const (
	typeFloat           = 3
	typeDate            = 8
	typeTime            = 9
	typeTimestamp       = 10
	typeFixedSizeBinary = 15
	typeDuration        = 18
	typeLargeBinary     = 19
	typeLargeUtf8       = 20
	typeLargeList       = 21
)

// storedColumn is a column of a stream.
type storedColumn struct {
	name           string
	known          *column // of our table; nil: skipped
	nodes, buffers int
}

// storedSchema is the schema message of a stream.
type storedSchema struct {
	meta           map[string]string
	columns        []storedColumn
	nodes, buffers int
}

// errUnknownType is a column type that a later version may have added.
var errUnknownType = errors.New("column type is not known to this version")

// frame checks the framing of one whole message: prefix, flatbuffer, body.
func frame(message []byte, header byte) (f *flatbuf, head flatTable, body []byte, err error) {
	if len(message) < messagePrefix || binary.LittleEndian.Uint32(message) != continuation {
		return nil, head, nil, errors.New("no Arrow message")
	}
	meta := int(binary.LittleEndian.Uint32(message[4:]))
	if meta < 8 || meta > maxMetaBytes || meta%alignment != 0 || meta > len(message)-messagePrefix {
		return nil, head, nil, fmt.Errorf("length %d of metadata", meta)
	}
	f = &flatbuf{b: message[messagePrefix : messagePrefix+meta]}
	body = message[messagePrefix+meta:]
	m := f.root()
	version, kind, length := f.int16Field(m, 0), f.byteField(m, 1), f.int64Field(m, 3)
	head, ok := f.tableField(m, 2)
	switch {
	case f.err != nil:
		return nil, head, nil, f.err
	case !ok || version != metadataV5 || kind != header:
		return nil, head, nil, fmt.Errorf("message of version %d, kind %d; want %d, %d", version, kind, metadataV5, header)
	case length != int64(len(body)):
		return nil, head, nil, fmt.Errorf("body of %d bytes in place of %d", length, len(body))
	}
	return f, head, body, nil
}

// parseSchema reads a schema message and joins its columns to those of the
// table that it names; t is nil where this version has no such table.
func parseSchema(message []byte) (s *storedSchema, t *table, err error) {
	defer caught(&err)
	f, schema, _, err := frame(message, headerSchema)
	if err != nil {
		return nil, nil, err
	}
	if e := f.int16Field(schema, 0); e != 0 {
		return nil, nil, errors.New("big endian")
	}
	s = &storedSchema{meta: map[string]string{}}
	pos, n := f.vector(schema, 2, 4)
	for i := range min(n, maxColumns) {
		kv := f.element(pos, i)
		s.meta[f.stringField(kv, 0)] = f.stringField(kv, 1)
	}
	if f.err != nil {
		return nil, nil, f.err
	}
	if v, err := strconv.Atoi(s.meta["dptrace.schema_version"]); err != nil || v < 1 {
		return nil, nil, errors.New("no dptrace.schema_version: no table of a trace")
	} else if v > SchemaVersion {
		return s, nil, fmt.Errorf("schema version %d, this dptrace reads up to %d: %w", v, SchemaVersion, ErrNewer)
	} else if v < firstVersion {
		return s, nil, fmt.Errorf("schema version %d, this dptrace reads from %d on: %w", v, firstVersion, ErrOlder)
	}
	t = tableOfName[s.meta["dptrace.table"]]
	if t == nil {
		return s, nil, nil
	}
	pos, n = f.vector(schema, 1, 4)
	if n > maxColumns {
		return nil, nil, fmt.Errorf("%d columns", n)
	}
	seen := map[string]bool{}
	for i := range n {
		c, err := storedColumnOf(f, f.element(pos, i), t)
		if err == nil && seen[c.name] {
			err = errors.New("is there twice")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("column %q: %w", c.name, err)
		}
		seen[c.name] = true
		s.columns = append(s.columns, c)
		s.nodes += c.nodes
		s.buffers += c.buffers
	}
	if f.err != nil {
		return nil, nil, f.err
	}
	if !seen["seq"] || !seen["ts_ns"] {
		return nil, nil, errors.New("no columns seq and ts_ns")
	}
	return s, t, nil
}

// storedColumnOf reads one field of a schema.
func storedColumnOf(f *flatbuf, at flatTable, t *table) (c storedColumn, err error) {
	if c.name = f.stringField(at, 0); len(c.name) > maxColumnName {
		return storedColumn{}, fmt.Errorf("name of %d bytes", len(c.name))
	}
	i, known := t.byName[c.name]
	if !known {
		c.nodes, c.buffers, err = skipLayout(f, at, 0)
		return c, err
	}
	c.known = &t.columns[i]
	c.nodes, c.buffers = c.known.kind.nodes(), c.known.kind.buffers()
	if !hasKind(f, at, c.known.kind) {
		return c, fmt.Errorf("is no %v", c.known.kind)
	}
	return c, f.err
}

func hasKind(f *flatbuf, at flatTable, k columnKind) bool {
	if f.field(at, 4) != 0 { // dictionary
		return false
	}
	typ, _ := f.tableField(at, 3)
	children, n := f.vector(at, 5, 4)
	id := f.byteField(at, 2)
	switch k {
	case kindBool:
		return id == typeBool
	case kindString:
		return id == typeUtf8
	case kindBytes:
		return id == typeBinary
	case kindInts:
		return id == typeList && n == 1 && hasKind(f, f.element(children, 0), kindInt64)
	}
	signed := k == kindInt32 || k == kindInt64
	return id == typeInt && f.int32Field(typ, 0) == 8*k.width() && (f.byteField(typ, 1) != 0) == signed
}

// skipLayout counts the nodes and buffers of a column that this version does
// not know.
func skipLayout(f *flatbuf, at flatTable, depth int) (nodes, buffers int, err error) {
	if depth > maxColumnDepth || f.field(at, 4) != 0 {
		return 0, 0, errUnknownType
	}
	switch f.byteField(at, 2) {
	case typeInt, typeFloat, typeBool, typeDate, typeTime, typeTimestamp, typeDuration, typeFixedSizeBinary:
		return 1, 2, f.err
	case typeUtf8, typeBinary, typeLargeUtf8, typeLargeBinary:
		return 1, 3, f.err
	case typeList, typeLargeList:
		if children, n := f.vector(at, 5, 4); n == 1 {
			nodes, buffers, err = skipLayout(f, f.element(children, 0), depth+1)
			return nodes + 1, buffers + 2, err
		}
	}
	return 0, 0, errUnknownType
}

// storedBatch is a record batch message whose every node and buffer was found
// inside of its message.
type storedBatch struct {
	rows       int
	nodes      []span // length, null count
	buffers    []span // offset, length in body
	body       []byte
	compressed bool
}

// parseBatch checks a record batch message against the schema of its stream.
// What it returns points only into message.
func parseBatch(message []byte, s *storedSchema) (*storedBatch, error) {
	f, head, body, err := frame(message, headerBatch)
	if err != nil {
		return nil, err
	}
	rows := f.int64Field(head, 0)
	if rows < 1 || rows > maxBatchRows {
		return nil, fmt.Errorf("%d rows", rows)
	}
	b := &storedBatch{rows: int(rows), body: body}
	if b.nodes, err = spansAt(f, head, 1, s.nodes); err != nil {
		return nil, fmt.Errorf("nodes: %w", err)
	}
	if b.buffers, err = spansAt(f, head, 2, s.buffers); err != nil {
		return nil, fmt.Errorf("buffers: %w", err)
	}
	for i, x := range b.buffers {
		if x.a < 0 || x.b < 0 || x.a > int64(len(body)) || x.b > int64(len(body))-x.a {
			return nil, fmt.Errorf("buffer %d at %d with %d bytes in a body of %d", i, x.a, x.b, len(body))
		}
	}
	if c, ok := f.tableField(head, 3); ok {
		b.compressed = true
		if codec, method := f.byteField(c, 0), f.byteField(c, 1); codec != codecZstd || method != 0 {
			return nil, fmt.Errorf("compression codec %d, method %d", codec, method)
		}
	}
	return b, f.err
}

func spansAt(f *flatbuf, t flatTable, slot, want int) ([]span, error) {
	pos, n := f.vector(t, slot, structWidth)
	if f.err == nil && n != want {
		return nil, fmt.Errorf("there are %d, the schema needs %d", n, want)
	}
	s := make([]span, n)
	for i := range s {
		s[i] = span{f.i64(pos + structWidth*i), f.i64(pos + structWidth*i + 8)}
	}
	return s, f.err
}
