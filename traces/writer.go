package traces

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// A batch is written when it has this many rows or bytes, or is this old.
const (
	maxBatchRows  = 8192
	maxBatchBytes = 1 << 20
	maxBatchAge   = time.Second
	// maxRowBytes is the longest row in strings, bytes and lists; longer ones
	// are lost. Four times what the hook's biggest record can hold.
	maxRowBytes = 4 << 20
	// retryAfter is the pause between attempts to write after one failed.
	retryAfter = time.Second
	// reserveBytes is the room that a Writer keeps for its last words: the
	// segments of lost and meta with their indexes, four pages or blocks of 4 KiB.
	reserveBytes = 32 << 10
)

// Options say how a part is written.
type Options struct {
	RunID  string // the same in all parts of a run
	BootID string // of this host; "" reads it from /proc
	Fsync  bool   // sync each batch to the disk: survives the loss of the node, not only of the process

	create func(name string) (file, error) // a file in the part's folder; tests inject failures
	now    func() time.Time                // time.Now
}

// Writer writes one part of a trace. Its methods may be called from several
// goroutines. It has no goroutine of its own: call Tick about ten times a
// second, or rows wait longer than a second to be written.
type Writer struct {
	mu     sync.Mutex
	dir    string
	root   *os.Root // dir, whatever its name leads to by now
	o      Options
	enc    *encoder
	tables map[reflect.Type]*tableWriter
	order  []*tableWriter   // as first used
	before map[string]place // of a part that goes on
	spare  file             // reserveBytes of an unlinked file; nil where there was no room for it
	err    error            // the last one of any table
	bytes  int64
	closed bool
}

type tableWriter struct {
	buffered *buffered
	since    time.Time // of the first buffered row
	next     uint64    // number of the first buffered row
	segment  *segment
	segments int
	err      error     // of the last attempt to write; nil: it succeeded
	retry    time.Time // after err: no attempt before. Of this table alone: a small batch may find room where a big one does not
	lost     uint64    // ever
	told     uint64    // of them, in a Lost row that was appended
	reason   string
}

// Create makes the folder dir (mode 0700) where it is missing and in it a new
// folder for this recorder's part; where part is taken, part-2, part-3 and so
// on. It fails where that is not possible; nothing later does.
func Create(dir, part string, o Options) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create trace: %w", err)
	}
	in, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("create trace: %w", err)
	}
	defer func() { _ = in.Close() }()
	return CreateIn(in, part, o)
}

// CreateIn is Create in a folder that is open already: no file is made by a path that
// another user could have changed meanwhile.
func CreateIn(in *os.Root, part string, o Options) (*Writer, error) {
	if o.BootID == "" {
		b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // "" elsewhere: unknown
		o.BootID = strings.TrimSpace(string(b))
	}
	name := part
	err := in.Mkdir(name, 0o700)
	for n := 2; errors.Is(err, fs.ErrExist) && n <= 1000; n++ {
		name = part + "-" + strconv.Itoa(n)
		err = in.Mkdir(name, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("create part of trace: %w", err)
	}
	root, err := in.OpenRoot(name)
	if err != nil {
		return nil, fmt.Errorf("create part of trace: %w", err)
	}
	w, err := newWriter(root, filepath.Join(in.Name(), name), o)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create part of trace: %w", err), root.Close())
	}
	return w, nil
}

func newWriter(root *os.Root, path string, o Options) (*Writer, error) {
	if o.now == nil {
		o.now = time.Now
	}
	if o.create == nil {
		o.create = func(name string) (file, error) { return createFile(root, filepath.Base(name)) }
	}
	enc, err := newEncoder()
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: path, root: root, o: o, enc: enc, tables: map[reflect.Type]*tableWriter{}}
	w.spare = w.reserve()
	return w, nil
}

// reserve takes reserveBytes of the disk with a file that has no name, so that
// they are given back when the process ends in whatever way. What was lost on a
// disk that is full to its last page could not be told without them.
func (w *Writer) reserve() file {
	const name = "reserve"
	f, err := w.o.create(filepath.Join(w.dir, name))
	if err != nil {
		return nil
	}
	_, err = f.Write(make([]byte, reserveBytes))
	if errors.Join(err, w.root.Remove(name)) != nil {
		f.Close()
		return nil
	}
	return f
}

// Dir is the folder of the part.
func (w *Writer) Dir() string { return w.dir }

// Append adds a row: a struct of tables.go or a pointer to one. Seq is given
// to it in the trace, the caller's value is neither used nor changed. Append
// keeps nothing of row. It never fails: what cannot be written is counted
// (Lost, Err). A row of any other type panics.
func (w *Writer) Append(row any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.append(row)
}

func (w *Writer) append(row any) {
	typ := reflect.TypeOf(row)
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	t := w.tables[typ]
	if t == nil {
		t = w.add(typ)
	}
	p := rowOf(row)
	b := t.buffered
	size := b.size(p)
	switch {
	case w.closed:
		t.lose(1, "the trace was closed")
		return
	case size > maxRowBytes:
		t.lose(1, "row too long")
		return
	case b.rows > 0 && (b.rows == maxBatchRows || b.bytes+size > maxBatchBytes):
		if w.flush(t); b.rows > 0 { // could not be written; the older rows stay for the next attempt
			t.lose(1, t.err.Error())
			return
		}
	}
	if b.rows == 0 {
		t.since = w.o.now()
	}
	b.add(p, t.next+uint64(b.rows))
	if b.rows == maxBatchRows || b.bytes >= maxBatchBytes {
		w.flush(t)
	}
}

// rowOf points to the struct that row holds or points to. The second word of an
// interface is the pointer that it holds, or points to the struct that it holds;
// reading it saves the copy that reflect would make. Only a struct that is itself
// the size and shape of one pointer lies in that word: define refuses such rows,
// all begin with Head.
func rowOf(row any) unsafe.Pointer {
	return (*[2]unsafe.Pointer)(unsafe.Pointer(&row))[1]
}

func (w *Writer) add(typ reflect.Type) *tableWriter {
	def := tableOfType[typ]
	if def == nil {
		panic(fmt.Sprintf("traces: append a row of type %v, which is no table", typ))
	}
	t := w.begin(def)
	w.tables[typ] = t
	w.order = append(w.order, t)
	return t
}

func (t *tableWriter) lose(n uint64, reason string) {
	t.lost += n
	t.reason = reason
}

// Tick writes what has waited for a second.
func (w *Writer) Tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.tellLost(false)
	now := w.o.now()
	for _, t := range w.order {
		if t.buffered.rows > 0 && now.Sub(t.since) >= maxBatchAge {
			w.flush(t)
		}
		if t.segment != nil && t.segment.full(now) {
			w.finish(t)
		}
	}
}

// Waiting reports whether there are rows that are not written yet.
func (w *Writer) Waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.order {
		if t.buffered.rows > 0 || t.lost > t.told {
			return true
		}
	}
	return false
}

// Flush writes all rows, and returns the last error if any could not be
// written; those wait for the next attempt.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.tellLost(false)
	return w.flushAll()
}

func (w *Writer) flushAll() (err error) {
	for _, t := range w.order {
		t.retry = time.Time{}
		if w.flush(t); t.err != nil {
			err = t.err
		}
	}
	return err
}

// flush writes the buffered rows of t as one batch. After a failure they stay.
func (w *Writer) flush(t *tableWriter) {
	b := t.buffered
	now := w.o.now()
	if b.rows == 0 || now.Before(t.retry) {
		return
	}
	if t.segment == nil {
		schema := w.enc.schema(b.table, w.metadata(b.table))
		s, err := openSegment(w.root, w.dir, segmentName(b.table.name, t.segments), w.o, schema, now)
		if err != nil {
			w.failed(t, err, now)
			return
		}
		t.segment = s
		t.segments++
		w.bytes += s.size + s.idxBytes
	}
	message := w.enc.batch(b)
	r := idxRecord{rows: uint32(b.rows), minTS: b.firstTS, maxTS: b.lastTS, seq: t.next}
	if err := t.segment.write(message, r); err != nil {
		w.failed(t, err, now)
		w.finish(t) // what it holds stays readable; the rows go to a new one
		return
	}
	t.err = nil
	w.bytes += int64(len(message)) + idxSize
	t.next += uint64(b.rows)
	b.reset()
	if t.segment.full(now) {
		w.finish(t)
	}
}

func (w *Writer) failed(t *tableWriter, err error, now time.Time) {
	t.err = fmt.Errorf("write trace: %w", err)
	t.retry = now.Add(retryAfter)
	w.err = t.err
}

func (w *Writer) finish(t *tableWriter) {
	if err := t.segment.close(); err != nil {
		w.err = fmt.Errorf("close segment of trace: %w", err)
	}
	t.segment = nil
}

// tellLost appends a Lost row for each table that lost rows since its last
// one; unless all, only for those that can be written again, so that a disk
// that stays full makes one row and not one per tick.
func (w *Writer) tellLost(all bool) {
	for _, t := range w.order {
		if t.lost == t.told || t.err != nil && !all {
			continue
		}
		n := t.lost - t.told
		t.told = t.lost
		w.append(Lost{
			Head:   Head{TsNS: t.buffered.lastTS},
			Source: "writer", Table: t.buffered.table.name, Count: n, Reason: t.reason,
		})
	}
}

func (w *Writer) metadata(t *table) [][2]string {
	return [][2]string{
		{"dptrace.table", t.name},
		{"dptrace.schema_version", strconv.Itoa(SchemaVersion)},
		{"dptrace.run_id", w.o.RunID},
		{"dptrace.boot_id", w.o.BootID},
	}
}

// Seal says in the trace that nothing is missing at its end (meta: rows, with
// the number of rows of each table, then sealed) and closes it.
func (w *Writer) Seal() error { return w.end(true) }

// Close writes what is left and closes the files. Rows that cannot be written
// now are lost. A trace that was closed and not sealed counts as cut.
func (w *Writer) Close() error { return w.end(false) }

func (w *Writer) end(seal bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	err := w.flushAll()
	for _, t := range w.order {
		if n := t.buffered.rows; n > 0 {
			t.lose(uint64(n), t.err.Error())
			t.buffered.reset()
		}
	}
	if w.spare != nil {
		w.spare.Close() // only rows about the trace itself are written from here on
	}
	w.tellLost(true)
	if seal {
		w.appendSeal()
	}
	err = errors.Join(err, w.flushAll())
	for _, t := range w.order {
		t.lost += uint64(t.buffered.rows)
		if t.segment != nil {
			w.finish(t)
		}
	}
	w.closed = true
	return errors.Join(err, w.enc.zstd.Close(), w.root.Close())
}

func (w *Writer) appendSeal() {
	rows := map[string]uint64{}
	var ts int64
	for _, t := range w.order {
		b := t.buffered
		ts = max(ts, b.lastTS)
		if b.table.name != "meta" {
			rows[b.table.name] = t.next + uint64(b.rows) // lost may have rows in its buffer, no other table
		}
	}
	text, _ := json.Marshal(rows) // a map of numbers always marshals
	w.append(Meta{Head{TsNS: ts}, "rows", string(text)})
	w.append(Meta{Head{TsNS: ts}, "sealed", "yes"})
}

// Lost counts the rows of each table that were never written.
func (w *Writer) Lost() map[string]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := map[string]uint64{}
	for _, t := range w.order {
		if t.lost > 0 {
			m[t.buffered.table.name] = t.lost
		}
	}
	return m
}

// Rows counts the rows of each table that were written.
func (w *Writer) Rows() map[string]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := map[string]uint64{}
	for _, t := range w.order {
		m[t.buffered.table.name] = t.next
	}
	return m
}

// Bytes is the size of what was written so far.
func (w *Writer) Bytes() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes
}

// Err is the last error of writing, nil if there never was one.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
