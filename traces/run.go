package traces

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
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
	ErrOlder      = errors.New("trace was written by a dptrace from before the format was published: record the run anew")
	ErrUnreadable = errors.New("nothing in the trace is readable")
)

// Run is one recording: the parts of all its recorders (hosts, ranks).
type Run struct {
	Parts []*Part
	// Problems is what is known to be missing or unreadable. Open notes what it
	// meets, Each adds what it meets in the tables that it reads; each loss is in
	// it once, however often it was met.
	Problems []Problem
	noting   sync.Mutex // of Problems, while parts are read side by side
	progress Progress
}

// Part is what one recorder wrote.
type Part struct {
	Name   string // of its folder: <host>-<pid>
	Trace  string // the NAME.dptrace that it lies in, as given to Open
	RunID  string // the same in all parts of a run
	BootID string // parts with the same one share a clock
	Sealed bool   // the recorder ended in good order; without it the recording was cut

	// Of the dptrace that wrote it.
	Version string

	// When it was recorded, in nanoseconds since 1970; 0 not known.
	Started, Ended int64

	files    fs.FS                     // its folder
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

// Problem is all of one kind that is wrong with one table of a part, so that a
// hostile trace has no more of them than one that was cut. Segment, Offset and
// Text are of the first place.
type Problem struct {
	Part     *Part
	Table    string
	Segment  string // file; "" for rows between segments
	Offset   int64  // in Segment, bytes
	Kind     ProblemKind
	Text     string
	LostRows int64 // at all places; -1: unknown
	Places   int64 // where it was met
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
	more := ""
	if p.Places > 1 {
		more = fmt.Sprintf(", and at %d more places", p.Places-1)
	}
	return fmt.Sprintf("%s: %s: %s%s; %s lost", place, p.Kind, p.Text, more, lost)
}

// note adds problems. Of one that is known already, as of a table that was read
// before, the account of the reading that went further stays.
func (r *Run) note(problems ...Problem) {
	r.noting.Lock()
	defer r.noting.Unlock()
	for _, p := range problems {
		i := slices.IndexFunc(r.Problems, func(q Problem) bool { return q.Part == p.Part && q.Table == p.Table && q.Kind == p.Kind })
		switch {
		case i < 0:
			r.Problems = append(r.Problems, p)
		case p.Places > r.Problems[i].Places || p.Places == r.Problems[i].Places && p.LostRows > r.Problems[i].LostRows:
			r.Problems[i] = p
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
// them counts once. Errors wrap ErrNotATrace, ErrEmpty, ErrNewer, ErrOlder,
// ErrUnreadable, or what the file system says. Of several folders those that are
// empty or unreadable are parts that were cut, unless all are.
func Open(paths ...string) (*Run, error) {
	return open(paths, func(path string) (fs.FS, error) {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("a file, not a folder: %w", ErrNotATrace)
		}
		return os.DirFS(path), err
	})
}

// OpenFS is Open for folders of a file system: of an archive, say. "." is the
// file system itself.
func OpenFS(fsys fs.FS, names ...string) (*Run, error) {
	return open(names, func(name string) (fs.FS, error) { return fs.Sub(fsys, name) })
}

func open(paths []string, folder func(path string) (fs.FS, error)) (*Run, error) {
	if len(paths) == 0 {
		return nil, fmt.Errorf("open trace: no path: %w", ErrNotATrace)
	}
	r := &Run{}
	var bad error
	var blank []*Part
	for _, path := range paths {
		trace, err := folder(path)
		if err == nil {
			err = r.open(path, trace)
		}
		switch {
		case errors.Is(err, ErrEmpty) || errors.Is(err, ErrUnreadable):
			bad = fmt.Errorf("open trace %s: %w", path, err)
			blank = append(blank, &Part{Name: filepath.Base(filepath.Clean(path)), Trace: path})
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

func (r *Run) open(name string, trace fs.FS) error {
	entries, err := fs.ReadDir(trace, ".")
	if err != nil {
		return err
	}
	var parts []*Part
	foreign := false
	for _, e := range entries {
		if !isPart(e) {
			foreign = true
			continue
		}
		p, err := newPart(name, trace, e.Name())
		if err != nil {
			return err
		}
		if p != nil {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		if foreign && filepath.Ext(filepath.Clean(name)) != ".dptrace" {
			return fmt.Errorf("no part of a trace in it: %w", ErrNotATrace)
		}
		return ErrEmpty
	}
	var bad error // why the last unreadable segment is so
	readable := false
	for _, p := range parts {
		ok, err := r.openPart(p)
		if errors.Is(err, ErrNewer) || errors.Is(err, ErrOlder) {
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

func isPart(e fs.DirEntry) bool { return e.IsDir() && fs.ValidPath(e.Name()) }

// newPart lists the segments of a part; nil where there are none.
func newPart(name string, trace fs.FS, part string) (*Part, error) {
	files, err := fs.Sub(trace, part)
	if err != nil {
		return nil, err
	}
	p := &Part{Name: part, Trace: name, files: files, segments: map[string][]segmentFiles{}}
	entries, err := fs.ReadDir(files, ".")
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
	ok = err == nil && table != "" && fs.ValidPath(file) && file == segmentName(table, number)+suffix &&
		(suffix == segmentSuffix || suffix == idxSuffix)
	return table, number, suffix, ok
}

// openPart reads the schemas and what the meta table says of the whole part.
// ok reports whether at least one segment is readable; err says why the last
// unreadable one is not, or is ErrNewer or ErrOlder.
func (r *Run) openPart(p *Part) (ok bool, err error) {
	for _, table := range slices.Sorted(maps.Keys(p.segments)) {
		unknown := losses{part: p, table: table}
		for _, files := range p.segments[table] {
			s, problem := openStored(p, table, files)
			if s == nil {
				err = errors.New(problem.Text)
				continue
			}
			if s.refused == nil && s.table == nil && tableOfName[table] == nil { // no Each will meet it
				unknown.add(files.name+segmentSuffix, 0, Newer, s.unknown, s.restRows())
			}
			s.close()
			if s.refused != nil {
				return false, fmt.Errorf("%s: %w", path.Join(p.Name, files.name+segmentSuffix), s.refused)
			}
			ok = true
			if s.schema != nil && p.RunID == "" && p.BootID == "" {
				p.RunID, p.BootID = s.schema.meta["dptrace.run_id"], s.schema.meta["dptrace.boot_id"]
			}
		}
		r.note(unknown.problems()...)
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
