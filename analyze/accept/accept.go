// Package accept is dptrace.toml: findings that the user has looked at and wants
// as they are, by rule and place, each with a reason.
package accept

import (
	"cmp"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
)

// FileName is that of the file where nobody has named another one.
const FileName = "dptrace.toml"

// Entry is one [[accept]] of the file.
type Entry struct {
	Rule   string // its id
	At     string // file:line of the loader, as the report prints it; without a line any of the file; "" findings about the run
	Reason string // never empty
	Place  string // of the entry, file:line
}

// Apply writes the reasons into the findings that the entries accept, and gives
// the entries that accept nothing. A relative path of either begins in cwd, the
// working directory of the run.
func Apply(entries []Entry, findings []finding.Finding, cwd string) (unused []Entry) {
	for _, e := range entries {
		used := false
		for i := range findings {
			f := &findings[i]
			if f.Rule != e.Rule || !covers(e.At, f.Loader.At, cwd) {
				continue
			}
			used = true
			f.Accepted = cmp.Or(f.Accepted, e.Reason)
		}
		if !used {
			unused = append(unused, e)
		}
	}
	return unused
}

// covers reports whether a finding's place is the one that is accepted.
func covers(accepted, found, cwd string) bool {
	if accepted == "" || found == "" {
		return accepted == found
	}
	file, line := split(accepted)
	foundFile, foundLine := split(found)
	return absolute(file, cwd) == absolute(foundFile, cwd) && (line == 0 || line == foundLine)
}

// split takes file:line apart; line is 0 where there is none.
func split(place string) (file string, line int) {
	if i := strings.LastIndexByte(place, ':'); i >= 0 {
		if n, err := strconv.Atoi(place[i+1:]); err == nil && n > 0 {
			return place[:i], n
		}
	}
	return place, 0
}

func absolute(file, cwd string) string {
	if filepath.IsAbs(file) {
		return filepath.Clean(file)
	}
	return filepath.Join(cwd, file)
}
