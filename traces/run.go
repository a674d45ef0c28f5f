package traces

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// What Open can say about a path. Damage inside of a trace is no error but a
// Problem, as long as anything is readable.
var (
	ErrNotATrace  = errors.New("not a dptrace trace")
	ErrEmpty      = errors.New("trace is empty: nothing was recorded")
	ErrNewer      = errors.New("trace was written by a newer dptrace: read it with that one")
	ErrUnreadable = errors.New("nothing in the trace is readable")
)

// Run is one recording: the parts of all its recorders (hosts, ranks).
type Run struct {
	Parts []*Part
	// Problems is what is known to be missing or unreadable. Open notes what it
	// meets, Each adds what it meets in the tables that it reads; each loss is in
	// it once, however often it was met.
	Problems []Problem
	known    map[problemKey]bool
	noting   sync.Mutex // of Problems and known, while parts are read side by side
}

// Part is what one recorder wrote.
type Part struct {
	Name   string // of its folder: <host>-<pid>
	Dir    string // its folder
	Trace  string // the NAME.dptrace that it lies in, as given to Open
	RunID  string // the same in all parts of a run
	BootID string // parts with the same one share a clock
	Sealed bool   // the recorder ended in good order; without it the recording was cut

	// Of the dptrace that wrote it.
	Version string

	// When it was recorded, in nanoseconds since 1970; 0 not known.
	Started, Ended int64

	segments map[string][]segmentFiles // by table, in their order
	rows     map[string]uint64         // of each table, as counted by the writer; nil where it was not sealed
	clock    int64                     // nanoseconds since 1970 at 0 of the monotonic clock, if Started is known
}

// ProblemKind says in one word what is wrong.
type ProblemKind string

const (
	Torn    ProblemKind = "torn"    // a segment ends in the middle: the writer died or is still writing
	Damaged ProblemKind = "damaged" // bytes are not those that were written
	Newer   ProblemKind = "newer"   // a table that this version does not know; nothing else suffers
	Missing ProblemKind = "missing" // rows or files that were written are not there
)

// Problem is one loss, or one thing that this version cannot read.
type Problem struct {
	Part     *Part
	Table    string
	Segment  string // file; "" for rows between segments
	Offset   int64  // in Segment, bytes
	Kind     ProblemKind
	Text     string
	LostRows int64 // -1: unknown
}

func (p Problem) String() string {
	lost := "an unknown number of rows"
	switch p.LostRows {
	case 0:
		lost = "no row"
	case 1:
		lost = "1 row"
	default:
		if p.LostRows > 0 {
			lost = strconv.FormatInt(p.LostRows, 10) + " rows"
		}
	}
	place := p.Part.Name + "/" + p.Table
	if p.Segment != "" {
		place = fmt.Sprintf("%s/%s at byte %d", p.Part.Name, p.Segment, p.Offset)
	}
	return fmt.Sprintf("%s: %s: %s; %s lost", place, p.Kind, p.Text, lost)
}

type problemKey struct {
	part           *Part
	table, segment string
	offset         int64
	kind           ProblemKind
}

func (r *Run) note(problems ...Problem) {
	r.noting.Lock()
	defer r.noting.Unlock()
	for _, p := range problems {
		key := problemKey{p.Part, p.Table, p.Segment, p.Offset, p.Kind}
		if !r.known[key] {
			r.known[key] = true
			r.Problems = append(r.Problems, p)
		}
	}
}

// segmentFiles is a segment on disk; one of its two files may be missing.
type segmentFiles struct {
	name      string // without suffix
	number    int
	data, idx bool
}

// Open opens the folders NAME.dptrace as one run; a part that lies in two of
// them counts once. Errors wrap ErrNotATrace, ErrEmpty, ErrNewer, ErrUnreadable,
// or what the file system says. Of several folders those that are empty or
// unreadable are parts that were cut, unless all are.
func Open(paths ...string) (*Run, error) {
	if len(paths) == 0 {
		return nil, fmt.Errorf("open trace: no path: %w", ErrNotATrace)
	}
	r := &Run{known: map[problemKey]bool{}}
	var bad error
	var blank []*Part
	for _, path := range paths {
		switch err := r.open(path); {
		case errors.Is(err, ErrEmpty) || errors.Is(err, ErrUnreadable):
			bad = fmt.Errorf("open trace %s: %w", path, err)
			blank = append(blank, &Part{Name: filepath.Base(filepath.Clean(path)), Dir: path, Trace: path})
		case err != nil:
			return nil, fmt.Errorf("open trace %s: %w", path, err)
		}
	}
	if len(r.Parts) == 0 {
		return nil, bad
	}
	r.once()
	r.Parts = append(r.Parts, blank...)
	return r, nil
}

func (r *Run) open(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("a file, not a folder: %w", ErrNotATrace)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	var parts []*Part
	foreign := false
	for _, e := range entries {
		if !e.IsDir() {
			foreign = true
			continue
		}
		p, err := newPart(path, e.Name())
		if err != nil {
			return err
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		if foreign && filepath.Ext(filepath.Clean(path)) != ".dptrace" {
			return fmt.Errorf("no part of a trace in it: %w", ErrNotATrace)
		}
		return ErrEmpty
	}
	var bad error // why the last unreadable segment is so
	readable := false
	for _, p := range parts {
		ok, err := r.openPart(p)
		if errors.Is(err, ErrNewer) {
			return err
		}
		if err != nil {
			bad = err
		}
		readable = readable || ok
	}
	if !readable {
		return fmt.Errorf("%w: %w", ErrUnreadable, bad)
	}
	r.Parts = append(r.Parts, parts...)
	return nil
}

// newPart lists the segments of a part; nil where there are none.
func newPart(trace, name string) (*Part, error) {
	p := &Part{Name: name, Trace: trace, Dir: filepath.Join(trace, name), segments: map[string][]segmentFiles{}}
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		table, number, suffix, ok := parseSegmentName(e.Name())
		if !ok || !e.Type().IsRegular() { // opening a pipe would hang
			continue
		}
		list := p.segments[table]
		i := slices.IndexFunc(list, func(s segmentFiles) bool { return s.number == number })
		if i < 0 {
			i = len(list)
			list = append(list, segmentFiles{name: segmentName(table, number), number: number})
		}
		list[i].data = list[i].data || suffix == segmentSuffix
		list[i].idx = list[i].idx || suffix == idxSuffix
		p.segments[table] = list
	}
	if len(p.segments) == 0 {
		return nil, nil
	}
	for _, list := range p.segments {
		slices.SortFunc(list, func(a, b segmentFiles) int { return a.number - b.number })
	}
	return p, nil
}

// parseSegmentName splits batch_next.0012.arrows.
func parseSegmentName(file string) (table string, number int, suffix string, ok bool) {
	suffix = filepath.Ext(file)
	table, digits, _ := strings.Cut(strings.TrimSuffix(file, suffix), ".")
	number, err := strconv.Atoi(digits)
	ok = err == nil && table != "" && file == segmentName(table, number)+suffix &&
		(suffix == segmentSuffix || suffix == idxSuffix)
	return table, number, suffix, ok
}

// openPart reads the schemas and what the meta table says of the whole part.
// ok: at least one segment is readable; err: why the last unreadable one is
// not, or ErrNewer.
func (r *Run) openPart(p *Part) (ok bool, err error) {
	for _, table := range slices.Sorted(maps.Keys(p.segments)) {
		for _, files := range p.segments[table] {
			s, problem := openStored(p, table, files)
			if s == nil {
				err = errors.New(problem.Text)
				continue
			}
			if s.newer == nil && s.table == nil && tableOfName[table] == nil { // no Each will meet it
				r.note(Problem{p, table, files.name + segmentSuffix, 0, Newer, s.unknown, s.restRows()})
			}
			s.close()
			if s.newer != nil {
				return false, fmt.Errorf("%s: %w", filepath.Join(p.Dir, files.name+segmentSuffix), s.newer)
			}
			ok = true
			if s.schema != nil && p.RunID == "" && p.BootID == "" {
				p.RunID, p.BootID = s.schema.meta["dptrace.run_id"], s.schema.meta["dptrace.boot_id"]
			}
		}
	}
	if !ok {
		return false, err
	}
	readErr := r.eachOf(p, tableOfName["meta"], func(b Batch) error {
		for _, m := range b.Rows.([]Meta) {
			p.note(m)
		}
		return nil
	})
	if !p.Sealed && p.Started > 0 {
		p.Ended = r.lastSign(p)
	}
	return true, errors.Join(err, readErr)
}
