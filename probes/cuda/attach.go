package cuda

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf/link"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// attached is a library that is watched, or could not be.
type attached struct {
	library
	row  traces.CudaLibrary // what is said of it
	late map[uint32]bool    // nodes that had it mapped before
}

// watches reports whether a library was tried already.
func (w *watcher) watches(l library) bool {
	return slices.ContainsFunc(w.libraries, func(a *attached) bool { return a.inode == l.inode })
}

// attach watches the functions of one library, in all processes that map it or will.
// That it cannot be watched is told in its row: another one may be.
func (w *watcher) attach(l library) {
	a := &attached{library: l, late: map[uint32]bool{}}
	a.row = traces.CudaLibrary{Library: l.kind, Path: l.named}
	found, missing, err := sites(l)
	if err == nil {
		err = w.place(l, found)
	}
	a.row.TsNS = probe.Now()
	if err != nil {
		a.row.Note = err.Error()
	} else {
		a.row.How, a.row.Watched, a.row.Note = w.how, uint32(len(found)), strings.Join(missing, " ")
		for _, s := range found {
			if s.shifted {
				a.row.Shifted++
			}
		}
		w.findLate(a)
	}
	w.libraries = append(w.libraries, a)
	w.Rows.Append(a.row)
}

// place puts the probes. Returns come first: then no call is seen to begin whose
// end is not.
func (w *watcher) place(l library, found []site) error {
	if len(found) == 0 {
		return fmt.Errorf("%s has none of the functions that are watched", l.named)
	}
	executable, err := link.OpenExecutable(l.path)
	if err != nil {
		return fmt.Errorf("open %s: %w", l.named, err)
	}
	var timed []site
	for _, s := range found {
		if !functions[s.number].entryOnly() {
			timed = append(timed, s)
		}
	}
	if w.how == "multi" {
		err = w.placeAll(executable, timed, found)
	} else {
		err = w.placeEach(executable, timed, found)
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", l.named, err)
	}
	return nil
}

func (w *watcher) placeAll(executable *link.Executable, timed, all []site) error {
	options := func(sites []site) *link.UprobeMultiOptions {
		o := &link.UprobeMultiOptions{}
		for _, s := range sites {
			o.Addresses, o.Cookies = append(o.Addresses, s.offset), append(o.Cookies, cookie(s.number))
		}
		return o
	}
	if len(timed) > 0 {
		leave, err := executable.UretprobeMulti(nil, w.programs.Programs[cudaProgLeaveAll], options(timed))
		if err != nil {
			return fmt.Errorf("returns: %w", err)
		}
		w.programs.Hold(leave)
	}
	enter, err := executable.UprobeMulti(nil, w.programs.Programs[cudaProgEnterAll], options(all))
	if err != nil {
		return err
	}
	w.programs.Hold(enter)
	return nil
}

func (w *watcher) placeEach(executable *link.Executable, timed, all []site) error {
	for _, s := range timed {
		leave, err := executable.Uretprobe("", w.programs.Programs[cudaProgLeaveOne], s.options())
		if err != nil {
			return fmt.Errorf("return of %s: %w", functions[s.number].name, err)
		}
		w.programs.Hold(leave)
	}
	for _, s := range all {
		enter, err := executable.Uprobe("", w.programs.Programs[cudaProgEnterOne], s.options())
		if err != nil {
			return fmt.Errorf("%s: %w", functions[s.number].name, err)
		}
		w.programs.Hold(enter)
	}
	return nil
}

func (s site) options() *link.UprobeOptions {
	return &link.UprobeOptions{Address: s.offset, Cookie: cookie(s.number)}
}

// findLate notes the processes that have a library mapped by now: what they did
// with it before was not seen.
func (w *watcher) findLate(a *attached) {
	for _, n := range w.Tree.All() {
		if !n.Ended.IsZero() {
			continue
		}
		found, err := mapped(n.Pid)
		if err != nil {
			continue
		}
		if slices.ContainsFunc(found, func(l library) bool { return l.inode == a.inode }) {
			a.late[n.ID] = true
		}
	}
}
