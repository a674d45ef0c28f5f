package timeline

import (
	"fmt"
	"strconv"
	"strings"
)

// Frame is a function of Python that was executing.
type Frame struct {
	File     string
	Line     int32 // 0: not known
	Function string
}

// Frames reads traces.CallSite.Frames: the innermost first.
func Frames(text string) (all []Frame) {
	for line := range strings.SplitSeq(text, "\n") {
		at := strings.LastIndexByte(line, ' ')
		colon := strings.LastIndexByte(line[:max(at, 0)], ':')
		if colon < 0 || line[at+1:] == "" {
			continue
		}
		n, err := strconv.ParseInt(line[colon+1:at], 10, 32)
		if err != nil {
			continue
		}
		all = append(all, Frame{File: line[:colon], Line: int32(n), Function: line[at+1:]})
	}
	return all
}

// libraries are what paths of code have in them that nobody writes for one training.
var libraries = []string{"/site-packages/", "/dist-packages/", "/lib/python3.", "/lib64/python3."}

// Library reports whether the function is of an installed package, or of Python itself.
func (f Frame) Library() bool {
	for _, part := range libraries {
		if strings.Contains(f.File, part) {
			return true
		}
	}
	return strings.HasPrefix(f.File, "<") && f.File != "<stdin>" && f.File != "<string>" // <frozen …>, <__array_function__ internals>
}

// same reports whether it is the line of another one, as of a comprehension and what it stands in.
func (f Frame) same(o Frame) bool { return f.File == o.File && f.Line == o.Line }

// Caller is the innermost function that is of no library, which is the line of the program to change, and those that
// called it: so many in all. "" if there is none.
func Caller(cwd string, frames []Frame, most int) string {
	var parts []string
	var last Frame
	for _, f := range frames {
		if f.Library() || len(parts) == most || len(parts) > 0 && f.same(last) {
			continue
		}
		last = f
		text := Place(cwd, f.File, f.Line)
		if f.Function != "<module>" {
			function, _, _ := strings.Cut(f.Function, ".<locals>.<") // of a comprehension, or of a lambda
			text = fmt.Sprintf("%s (%s)", text, function)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", called from ")
}
