package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dptrace/dptrace/traces"
)

// output is the trace being written.
type output struct {
	*traces.Writer
	dir   string // NAME.dptrace
	made  bool   // by us
	runID string
}

// create makes the folder of the trace and our part in it, so that all that
// forbids it is found before the command runs.
func create(o Options) (*output, error) {
	id, given := runID()
	out := &output{dir: o.Output, runID: id}
	if out.dir == "" {
		out.dir = fmt.Sprintf("dptrace-%s-%d.dptrace", time.Now().Format("20060102-150405"), os.Getpid())
	}
	entries, err := os.ReadDir(out.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out.made = true
	case err != nil:
		return nil, fmt.Errorf("output: %w", err)
	case len(entries) > 0 && !(given && sameRun(out.dir, entries, id)):
		return nil, fmt.Errorf("output: %s exists and is not empty; remove it or choose another name with -o", out.dir)
	}
	out.Writer, err = traces.Create(out.dir, partName(), traces.Options{RunID: id, Fsync: o.Fsync})
	if err != nil {
		if out.made {
			_ = os.Remove(out.dir) // only if nothing is in it
		}
		return nil, fmt.Errorf("output: %w", err)
	}
	return out, nil
}

func partName() string {
	host, err := os.Hostname()
	if err != nil || host == "" || strings.ContainsRune(host, filepath.Separator) {
		host = "host"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// discard takes back a trace of a command that never ran.
func (out *output) discard() {
	_ = out.Close()
	_ = os.RemoveAll(out.Writer.Dir())
	if out.made {
		_ = os.Remove(out.dir) // fails where other ranks have written their parts
	}
}
