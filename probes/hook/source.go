package hook

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"
)

const (
	maxSource  = 4 << 20 // bytes of a file of source
	maxSources = 1024    // answers remembered

	// Bytes of source that are searched for one process, and what a search
	// counts at least. The hook asks for 150 attributes of a pass at most.
	maxSearched = 32 << 20
	minSearch   = 16 << 10

	maxSearchedByAll = 128 << 20 // for all processes of a recording
)

// assignment asks where in source (lines first to last; 0: no bound) the name
// attr is assigned.
type assignment struct {
	source, attr string
	first, last  int
}

// sources finds assignments; the answers are remembered, as every worker asks
// the same.
type sources map[assignment]int

var identifier = regexp.MustCompile(`^\w{1,200}$`)

// line is the one line that assigns, 0 if there is none, or more than one: then
// nobody can say which one made the object. searched counts what it costs; from
// maxSearched on only what is remembered is answered.
func (s sources) line(a assignment, searched *int) int {
	if n, ok := s[a]; ok {
		return n
	}
	if *searched >= maxSearched {
		return 0
	}
	n := 0
	text := readSource(a.source)
	if text != nil && identifier.MatchString(a.attr) {
		n = assigningLine(text, a)
	}
	*searched += max(len(text), minSearch)
	if len(s) >= maxSources {
		clear(s)
	}
	s[a] = n
	return n
}

// readSource gives the text of a regular file that is not too large. The path
// comes from the watched program, so it may name anything, a FIFO too.
func readSource(path string) []byte {
	if !filepath.IsAbs(path) {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxSource {
		return nil
	}
	text := make([]byte, st.Size())
	n, err := f.ReadAt(text, 0)
	if err != nil && n == 0 {
		return nil
	}
	return text[:n]
}

// assigningLine looks for statements that assign an attribute or a name; only
// where there is none, for the key of a dict or an argument by keyword.
func assigningLine(text []byte, a assignment) int {
	attr, name := []byte(a.attr), regexp.QuoteMeta(a.attr)
	statement := regexp.MustCompile(`^\s*(?:[\w.\[\]'", ]+=\s*)?(?:[\w.\[\]'", ]+[.,]\s*)?` + name + `\s*(?:,[^=()]*)?(?::[^=]+)?=(?:[^=]|$)`)
	key := regexp.MustCompile(`['"]` + name + `['"]\s*(?::|\]\s*=[^=]|,)|[(,]\s*` + name + `\s*=[^=]`)
	for _, pattern := range []*regexp.Regexp{statement, key} {
		found, count, number := 0, 0, 0
		for line := range bytes.Lines(text) {
			number++
			if number < a.first || a.last > 0 && number > a.last {
				continue
			}
			if !bytes.Contains(line, attr) || bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) || !pattern.Match(line) {
				continue
			}
			found = number
			count++
		}
		if count == 1 {
			return found
		}
		if count > 1 {
			return 0
		}
	}
	return 0
}
