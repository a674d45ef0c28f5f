package conformance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/dptrace/dptrace/traces"
)

const foreignRows = 10

// TestForeignWriter: a stream that arrow-go wrote (padding, frames of its own
// making, validity bitmaps, types that we never write) is read like ours, or
// refused whole.
func TestForeignWriter(t *testing.T) {
	for name, c := range map[string]struct {
		extra   arrow.DataType
		codec   []ipc.Option
		refused bool
	}{
		"zstd":         {arrow.PrimitiveTypes.Float64, []ipc.Option{ipc.WithZstd()}, false},
		"uncompressed": {arrow.BinaryTypes.LargeString, nil, false},
		"lz4":          {arrow.PrimitiveTypes.Float64, []ipc.Option{ipc.WithLZ4()}, true},
		"list":         {arrow.ListOf(arrow.ListOf(arrow.PrimitiveTypes.Uint8)), []ipc.Option{ipc.WithZstd()}, false},
		"struct": {arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8}),
			[]ipc.Option{ipc.WithZstd()}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "x.dptrace")
			w, err := traces.Create(dir, "host-1", traces.Options{})
			if err != nil {
				t.Fatal(err)
			}
			w.Append(traces.Meta{Key: "version", Value: "devel"})
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			writeClock(t, w.Dir(), c.extra, c.codec)
			r, err := traces.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			var got []traces.Clock
			for _, row := range traces.Rows[traces.Clock](r) {
				got = append(got, row)
			}
			if c.refused {
				if len(got) != 0 || len(r.Problems) != 1 || r.Problems[0].LostRows != foreignRows {
					t.Errorf("%v %v", got, r.Problems)
				}
				return
			}
			if len(r.Problems) > 0 || len(got) != foreignRows {
				t.Fatalf("%d rows, %v", len(got), r.Problems)
			}
			for i, row := range got {
				if want := (traces.Clock{Head: traces.Head{Seq: uint64(i), TsNS: int64(i * 5)}, RealNS: int64(i * 7)}); row != want {
					t.Errorf("row %d: %+v, want %+v", i, row, want)
				}
			}
		})
	}
}

// writeClock lets arrow-go write a segment of the table clock, with a column more
// and one less, and gives it an index.
func writeClock(t *testing.T, part string, extra arrow.DataType, options []ipc.Option) {
	t.Helper()
	meta := arrow.NewMetadata([]string{"dptrace.table", "dptrace.schema_version"}, []string{"clock", strconv.Itoa(traces.SchemaVersion)})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "extra", Type: extra, Nullable: true},
		{Name: "seq", Type: arrow.PrimitiveTypes.Uint64}, {Name: "ts_ns", Type: arrow.PrimitiveTypes.Int64},
		{Name: "real_ns", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	}, &meta)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	for i := range foreignRows {
		b.Field(0).AppendNull()
		b.Field(1).(*array.Uint64Builder).Append(uint64(i))
		b.Field(2).(*array.Int64Builder).Append(int64(i * 5))
		b.Field(3).(*array.Int64Builder).Append(int64(i * 7))
	}
	var stream bytes.Buffer
	w := ipc.NewWriter(&stream, append(options, ipc.WithSchema(schema))...)
	if err := w.Write(b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	// Two messages: the schema, which ends where its metadata does, and the batch.
	first := 8 + int(binary.LittleEndian.Uint32(stream.Bytes()[4:]))
	index := record(nil, 0, stream.Bytes()[:first], 0)
	index = record(index, first, stream.Bytes()[first:], foreignRows)
	if err := errors.Join(
		os.WriteFile(filepath.Join(part, "clock.0000.arrows"), stream.Bytes(), 0o600),
		os.WriteFile(filepath.Join(part, "clock.0000.idx"), index, 0o600),
	); err != nil {
		t.Fatal(err)
	}
}

// record is an index record as FORMAT.md has it.
func record(index []byte, offset int, message []byte, rows uint32) []byte {
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	le, start := binary.LittleEndian, len(index)
	index = le.AppendUint64(index, uint64(offset))
	index = le.AppendUint32(index, uint32(len(message)))
	index = le.AppendUint32(index, rows)
	index = append(index, make([]byte, 24)...) // times, number of the first row
	index = le.AppendUint32(index, crc32.Checksum(message, castagnoli))
	return le.AppendUint32(index, crc32.Checksum(index[start:], castagnoli))
}
