package traces

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"testing"
)

// fuzzMemory is what reading one hostile segment of two messages may allocate
// in all, freed or not. A message may be 16 MiB and its rows 16 MiB again.
const fuzzMemory = 64 << 20

// FuzzReader reads segments whose checksums are right and whose contents are
// anything: the schema message and the batch message are mutated, the index
// vouches for both. The reader must not panic (also not inside of decode,
// which would recover), not hang, and not allocate without bound.
//
//	go test ./traces -run xxx -fuzz FuzzReader -fuzztime 10m -parallel 1
func FuzzReader(f *testing.F) {
	for i, def := range tables {
		for _, n := range []int{3, 100} {
			schema, batch := fuzzSeed(f, def, n)
			f.Add(uint8(i), schema, batch, uint32(n), uint64(0))
		}
		schema, batch := fuzzSeedUncompressed(f, def)
		f.Add(uint8(i), schema, batch, uint32(3), uint64(0))
	}
	dir := filepath.Join(f.TempDir(), "x.dptrace")
	part := filepath.Join(dir, "host-1")
	if err := os.MkdirAll(part, 0o700); err != nil {
		f.Fatal(err)
	}
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	allocated := func() uint64 { metrics.Read(sample); return sample[0].Value.Uint64() }
	f.Fuzz(func(t *testing.T, table uint8, schema, batch []byte, rows uint32, seq uint64) {
		def := tables[int(table)%len(tables)]
		o := Options{create: func(name string) (file, error) { return os.Create(name) }}
		s, err := openSegment(nil, part, segmentName(def.name, 0), o, schema, time0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range uint64(2) {
			if err := s.write(batch, idxRecord{rows: rows, seq: seq + i*uint64(rows)}); err != nil {
				t.Fatal(err)
			}
		}
		s.close()
		defer os.Remove(s.path + idxSuffix)
		defer os.Remove(s.path + segmentSuffix)

		before := allocated()
		r, err := Open(dir)
		if err == nil {
			err = r.Each(nil, func(b Batch) error {
				_, err := fmt.Fprintf(io.Discard, "%v", sampleOf(b.Rows)) // reads what the rows point to
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if used := allocated() - before; used > fuzzMemory+uint64(20*(len(schema)+len(batch))) {
			t.Fatalf("%d MiB allocated to read a segment of %d bytes", used>>20, len(schema)+len(batch))
		}
		if err != nil && strings.Contains(err.Error(), panicked) {
			t.Fatal(err)
		}
		if r == nil {
			return
		}
		for _, p := range r.Problems {
			if strings.Contains(p.Text, panicked) {
				t.Fatal(p)
			}
		}
	})
}

func sampleOf(rows any) any {
	switch rows := rows.(type) {
	case []RngState:
		return rows[len(rows)-1]
	case []BatchPut:
		return rows[len(rows)-1]
	case []Dist:
		return rows
	case []Meta:
		return rows
	}
	return nil
}

func fuzzSeed(f testing.TB, def *table, n int) (schema, batch []byte) {
	enc, err := newEncoder()
	if err != nil {
		f.Fatal(err)
	}
	b := newBuffered(def)
	for i := range n {
		row := sampleRow(def, i)
		b.add(rowOf(row), uint64(i))
	}
	w := &Writer{o: Options{RunID: "r"}}
	schema = append(schema, enc.schema(def, w.metadata(def))...)
	return schema, append(batch, enc.batch(b)...)
}

// fuzzSeedUncompressed is the same batch without compression, so that mutations
// reach offsets and values without having to repair a zstd frame.
func fuzzSeedUncompressed(f testing.TB, def *table) (schema, batch []byte) {
	schema, compressed := fuzzSeed(f, def, 3)
	s, _, err := parseSchema(schema)
	if err != nil {
		f.Fatal(err)
	}
	b, err := parseBatch(compressed, s)
	if err != nil {
		f.Fatal(err)
	}
	dec, err := newDecoder()
	if err != nil {
		f.Fatal(err)
	}
	defer dec.close()
	enc, err := newEncoder()
	if err != nil {
		f.Fatal(err)
	}
	var body []byte
	bufs := make([]span, len(b.buffers))
	for i, at := range b.buffers {
		raw, err := dec.buffer(b, at, 0, maxUnpackedBytes)
		if err != nil {
			f.Fatal(err)
		}
		bufs[i] = span{int64(len(body)), int64(len(raw))}
		body = pad(append(body, raw...))
	}
	nodes, buffers := spans(enc.fb, b.nodes), spans(enc.fb, bufs)
	enc.fb.StartObject(5) // RecordBatch, as in encoder.batch, but for its compression
	enc.fb.PrependInt64Slot(0, int64(b.rows), 0)
	enc.fb.PrependUOffsetTSlot(1, nodes, 0)
	enc.fb.PrependUOffsetTSlot(2, buffers, 0)
	return schema, enc.message(headerBatch, enc.fb.EndObject(), body)
}
