package recorder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dptrace/dptrace/probes/redact"
	"github.com/dptrace/dptrace/traces"
)

// output is the trace being written.
type output struct {
	*traces.Writer
	dir   string   // NAME.dptrace
	root  *os.Root // dir, whatever its name leads to by now
	in    *os.Root // the folder that it lies in
	name  string   // there
	made  bool     // by us
	runID string

	secrets *redact.Rules
}

// Append takes secrets out of what a program says of itself in its own words: command
// lines that came joined, messages of exceptions, values of attributes.
func (out *output) Append(row any) {
	switch r := row.(type) {
	case *traces.Exception:
		clean := *r
		clean.Message = out.secrets.Text(r.Message)
		row = &clean
	case traces.Exception:
		r.Message = out.secrets.Text(r.Message)
		row = r
	case traces.Attribute:
		r.Value = out.secrets.Value(r.Path, r.Value)
		row = r
	}
	out.Writer.Append(row)
}

// create makes the folder of the trace and our part in it, so that all that
// forbids it is found before the command runs.
func create(o Options) (*output, error) {
	id, given := runID()
	out := &output{dir: o.Output, runID: id, secrets: o.Secrets}
	if out.dir == "" {
		out.dir = fmt.Sprintf("dptrace-%s-%d.dptrace", time.Now().Format("20060102-150405"), os.Getpid())
	}
	err := out.open()
	if err == nil && !out.made {
		err = out.mayHoldMore(id, given)
	}
	if err == nil {
		out.Writer, err = traces.CreateIn(out.root, partName(), traces.Options{RunID: id, Fsync: o.Fsync})
	}
	if err != nil {
		out.close()
		return nil, fmt.Errorf("output: %w", err)
	}
	return out, nil
}

// open makes the folder of the trace, or opens the one that is there if it is ours.
// Who may write to a folder above it can put links into our way, at any time: all is
// found from descriptors that are held, below which no link leads out.
func (out *output) open() error {
	if err := out.openAbove(); err != nil {
		return err
	}
	there, err := out.in.Lstat(out.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out.made = true
		err = out.in.MkdirAll(out.name, 0o700)
	case err == nil && !there.IsDir(): // a FIFO would keep us waiting
		err = fmt.Errorf("%s is no folder; choose another name with -o", out.dir)
	}
	if err == nil {
		out.root, err = out.in.OpenRoot(out.name)
	}
	if err != nil {
		return err
	}
	if err := out.isOurs(); err != nil {
		out.made = false // by somebody else, then
		return err
	}
	return nil
}

// openAbove opens the lowest folder that is there above that of the trace.
func (out *output) openAbove() error {
	path, err := filepath.Abs(out.dir)
	if err != nil {
		return err
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if uid := owner(info); uid != 0 && uid != os.Geteuid() {
			return fmt.Errorf("%s is a link that %s has made; choose another name with -o", out.dir, userName(uid))
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return err
		}
	}
	above := filepath.Dir(path)
	for {
		if info, err := os.Stat(above); err == nil && info.IsDir() || above == "/" {
			break
		}
		above = filepath.Dir(above)
	}
	if out.name, err = filepath.Rel(above, path); err != nil {
		return err
	}
	out.in, err = os.OpenRoot(above)
	return err
}

// isOurs reports why the folder that was opened is not the one that was meant, or not
// ours.
func (out *output) isOurs() error {
	info, err := out.root.Stat(".")
	if err != nil {
		return err
	}
	named, err := out.in.Lstat(out.name)
	switch {
	case err != nil:
		return err
	case !os.SameFile(info, named):
		return fmt.Errorf("%s was replaced as it was made", out.dir)
	case owner(info) != os.Geteuid():
		return fmt.Errorf("%s belongs to %s; choose another name with -o", out.dir, userName(owner(info)))
	}
	return nil
}

// mayHoldMore reports why a folder that was there cannot hold our part as well.
func (out *output) mayHoldMore(id string, given bool) error {
	here, err := out.root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = here.Close() }()
	entries, err := here.ReadDir(-1)
	if err != nil {
		return err
	}
	if len(entries) > 0 && !(given && sameRun(out.dir, entries, id)) {
		return fmt.Errorf("%s exists and is not empty; remove it or choose another name with -o", out.dir)
	}
	return nil
}

// owner is the user whose a file is; -1 not known.
func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

func userName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "user " + strconv.Itoa(uid)
}

// close lets go of the folder, and takes it back if it is ours and nothing is in it.
func (out *output) close() {
	if out.root != nil {
		_ = out.root.Close()
	}
	if out.in == nil {
		return
	}
	if out.made {
		_ = out.in.Remove(out.name) // fails where other ranks have written their parts
	}
	_ = out.in.Close()
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
	_ = out.root.RemoveAll(filepath.Base(out.Dir()))
	out.close()
}
