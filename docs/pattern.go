package docs

import (
	"fmt"
	"sort"
	"strings"
)

// Pattern is an error text in which some parts are left open: "*" is up to 200
// characters, "**" up to 4,000 (the frames of a traceback). "^" at its begin
// and "$" at its end say that a line of the log begins and ends there. Case and white
// space do not count, so that a text is found however it was wrapped.
type Pattern struct {
	Source     string
	pieces     []piece
	begin, end bool // of a line
}

// piece is what has to come, at most so many characters behind the one before.
type piece struct {
	text string
	gap  int
}

const (
	shortGap = 200
	longGap  = 4000
	// shortest first piece of a pattern that is not bound to a line: it is looked for everywhere.
	shortest = 6
)

func newPattern(source string) (Pattern, error) {
	p := Pattern{Source: strings.TrimSpace(source)}
	rest := squeezed(p.Source)
	rest, p.begin = strings.CutPrefix(rest, "^")
	rest, p.end = strings.CutSuffix(rest, "$")
	gap := 0
	for rest != "" {
		at := strings.IndexByte(rest, '*')
		if at < 0 {
			at = len(rest)
		}
		if at > 0 {
			p.pieces = append(p.pieces, piece{rest[:at], gap})
		}
		switch rest = rest[at:]; {
		case strings.HasPrefix(rest, "**"):
			rest, gap = rest[2:], longGap
		case rest != "":
			rest, gap = rest[1:], shortGap
		}
	}
	if len(p.pieces) == 0 || !p.begin && len(p.pieces[0].text) < shortest {
		return p, fmt.Errorf("pattern %q: too short to be looked for", p.Source)
	}
	return p, nil
}

// find is where the last piece of the pattern begins in a squeezed log, the first time; -1 nowhere.
// The line of a source file that raises the error holds its text, too: the error itself
// is taken rather, if it comes.
func (p *Pattern) find(l *squeezedLog) int {
	raised := -1
	for from := 0; ; {
		i := strings.Index(l.text[from:], p.pieces[0].text)
		if i < 0 {
			return raised
		}
		first := from + i
		if at := p.last(l, first); at >= 0 && (!p.begin || l.lineBegins(first)) {
			if !strings.HasPrefix(l.line(at).text, "raise ") {
				return at
			}
			raised = at
		}
		from = first + 1
	}
}

// last is where the last piece begins, if the first one begins at first; -1 if one of them does not
// follow.
func (p *Pattern) last(l *squeezedLog, first int) int {
	at, end := first, first+len(p.pieces[0].text)
	for _, next := range p.pieces[1:] {
		window := l.text[end:min(end+next.gap+len(next.text), len(l.text))]
		i := strings.Index(window, next.text)
		if i < 0 {
			return -1
		}
		at = end + i
		end = at + len(next.text)
	}
	if p.end && end != len(l.text) && !l.lineBegins(end) {
		return -1
	}
	return at
}

// squeezedLog is lines of a log in lower case, without white space and without
// what launchers put before each line.
type squeezedLog struct {
	text  string
	lines []lineAt // those that hold anything
}

// lineAt is where a line of the log begins in the squeezed text.
type lineAt struct {
	at     int
	number int    // from 1
	text   string // as it was
}

// line that holds a place.
func (l *squeezedLog) line(at int) lineAt {
	return l.lines[sort.Search(len(l.lines), func(i int) bool { return l.lines[i].at > at })-1]
}

func (l *squeezedLog) lineBegins(at int) bool {
	i := sort.Search(len(l.lines), func(i int) bool { return l.lines[i].at >= at })
	return i < len(l.lines) && l.lines[i].at == at
}
