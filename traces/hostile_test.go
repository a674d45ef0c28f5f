package traces

import (
	"strings"
	"testing"
)

// Bits of a schema and of a batch message flipped, with a checksum that
// vouches for it: rows or an error, never a panic, not even one that is caught.
func TestHostileContent(t *testing.T) {
	dec, err := newDecoder()
	if err != nil {
		t.Fatal(err)
	}
	defer dec.close()
	for _, name := range []string{"batch_put", "rng_state", "batch_next"} {
		def := tableOfName[name]
		schema, compressed := fuzzSeed(t, def, 100)
		_, plain := fuzzSeedUncompressed(t, def)
		read := func(schema, batch []byte, rows uint32) error {
			s, tab, err := parseSchema(schema)
			if err != nil || tab == nil {
				return err
			}
			tr := &tableReader{def: tab, dec: dec}
			_, err = tr.decode(batch, &stored{schema: s, table: tab}, idxRecord{rows: rows})
			return err
		}
		errs := map[string]int{}
		flip := func(b []byte, read func() error) {
			if err := read(); err != nil {
				t.Fatalf("%s unharmed: %v", name, err)
			}
			for bit := 0; bit < 8*len(b); bit += 5 { // in 5 bytes each place once
				b[bit/8] ^= 1 << (bit % 8)
				if err := read(); err == nil {
					errs["harmless or another value"]++
				} else if errs["refused"]++; strings.Contains(err.Error(), panicked) {
					t.Fatalf("%s bit %d: %v", name, bit, err)
				}
				b[bit/8] ^= 1 << (bit % 8)
			}
		}
		flip(schema, func() error { return read(schema, compressed, 100) })
		flip(compressed, func() error { return read(schema, compressed, 100) })
		flip(plain, func() error { return read(schema, plain, 3) })
		t.Log(name, errs)
	}
}
