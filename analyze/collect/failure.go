package collect

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// Failure is a panic of our own code: a trace that it was not made for. Whoever
// needed what it was computing cannot tell; the rest of the report stands.
type Failure struct {
	What  string // that failed: a source, a rule, an exporter
	Place string // file:line of our code
	Cause string
}

func (f *Failure) Error() string {
	return fmt.Sprintf("%s failed at %s: %s", f.What, f.Place, f.Cause)
}

// Guard calls do, and turns its panic into a *Failure of what. Errors of the
// runtime that cannot be recovered from (out of memory) still end the program.
func Guard(what string, do func()) (failed *Failure) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Failure: // of what do has called
			failed = r
		default:
			failed = &Failure{What: what, Place: place(), Cause: fmt.Sprint(r)}
		}
	}()
	do()
	return nil
}

const module = "github.com/dptrace/dptrace/"

// place of the panic that is being recovered from: the innermost frame of ours
// below it.
func place() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	below := false
	for {
		f, more := frames.Next()
		if name, ours := strings.CutPrefix(f.Function, module); below && ours {
			slash := strings.LastIndexByte(name, '/') + 1
			folder, _, _ := strings.Cut(name[slash:], ".")
			return fmt.Sprintf("%s%s/%s:%d", name[:slash], strings.TrimSuffix(folder, "_test"), path.Base(f.File), f.Line)
		}
		below = below || f.Function == "runtime.gopanic" || strings.HasPrefix(f.Function, "runtime.panic") || f.Function == "runtime.sigpanic"
		if !more {
			return "an unknown place"
		}
	}
}
