package poll

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

const (
	settled       = 200 * time.Millisecond // after which a fork has become what it will be
	mostInherited = 8                      // open files of one parent whose positions are followed
	mostListed    = 1024                   // descriptors of a process that are looked at
)

// inherited is the open files that children share with their parents, where the
// kernel does not tell who moves their positions.
type inherited struct {
	files map[descriptor]*position
	last  uint32 // number of a file
}

// descriptor is where a parent has an open file.
type descriptor struct {
	pid   int32
	start uint64
	fd    int32
}

// position is that of one open file.
type position struct {
	number             uint32
	path               string
	offset             int64
	looks, moved, back uint64
}

// share is an open file of a child, and what had been seen of it when it began.
type share struct {
	*position
	fd                 int32
	looks, moved, back uint64
}

// inheritance looks once at what each forked child of a hooked process has open,
// and each time at the positions that it shares.
func (w *watcher) inheritance(now time.Time) {
	if w.Tree != nil { // the kernel counts who moves them
		return
	}
	shared := map[*position]descriptor{}
	for _, p := range w.procs {
		if !p.looked.Equal(now) || !p.gone.IsZero() {
			continue
		}
		if !p.listed && now.Sub(p.seen) >= settled {
			w.list(p)
		}
		for _, s := range p.shares {
			if parent := w.procs[p.last.Ppid]; parent != nil {
				shared[s.position] = descriptor{parent.pid, parent.start, s.fd}
			}
		}
	}
	for s, at := range shared {
		if offset, _, ok := fdinfo(at.pid, at.fd); ok {
			s.look(offset)
		}
	}
}

// look counts what became of a position since the last look.
func (p *position) look(offset int64) {
	p.looks++
	if offset != p.offset {
		p.moved++
	}
	if offset < p.offset {
		p.back++
	}
	p.offset = offset
}

// list finds the files that a process has inherited, and says so if there is
// none.
func (w *watcher) list(p *process) {
	parent := w.procs[p.last.Ppid]
	known, _ := w.Procs.Of(p.pid, p.start)
	if parent == nil || !known.Hooked || parent.exe != p.exe {
		return
	}
	p.listed = true
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
	if err != nil {
		return
	}
	for _, e := range entries[:min(len(entries), mostListed)] {
		fd, err := strconv.ParseInt(e.Name(), 10, 32)
		if err != nil || fd <= 2 {
			continue
		}
		path := procfs.Link(p.pid, "fd/"+e.Name())
		if !w.isRead(p.pid, int32(fd), path) || procfs.Link(parent.pid, "fd/"+e.Name()) != path {
			continue
		}
		same, err := sameFile(p.pid, parent.pid, int32(fd))
		if err != nil { // not permitted: nothing can be said
			return
		}
		if same && len(p.shares) < mostInherited {
			s := w.inherited.of(descriptor{parent.pid, parent.start, int32(fd)}, path)
			p.shares = append(p.shares, share{s, int32(fd), s.looks, s.moved, s.back})
		}
	}
	if len(p.shares) == 0 && len(entries) <= mostListed {
		w.Rows.Append(traces.Position{Head: traces.Head{TsNS: probe.Now(), Proc: known.Number}, Looks: 1, Sought: -1, Source: "fdinfo"})
	}
}

// of gives an open file its number.
func (i *inherited) of(at descriptor, path string) *position {
	if i.files == nil {
		i.files = map[descriptor]*position{}
	}
	if s := i.files[at]; s != nil && s.path == path {
		return s
	}
	i.last++
	s := &position{number: i.last, path: path}
	i.files[at] = s
	s.offset, _, _ = fdinfo(at.pid, at.fd)
	return s
}

// parted writes what was seen of the positions that a process shared until it
// ended.
func (w *watcher) parted(p *process) {
	known, _ := w.Procs.Of(p.pid, p.start)
	for _, s := range p.shares {
		w.Rows.Append(traces.Position{
			Head: traces.Head{TsNS: probe.Now(), Proc: known.Number}, File: s.number, Path: s.path, Fd: s.fd, Origin: "inherited", Sought: -1,
			Looks: s.position.looks - s.looks, Moved: s.position.moved - s.moved, Back: s.position.back - s.back,
			Source: "fdinfo", Final: true,
		})
	}
	p.shares = nil
}

// isRead reports whether a descriptor is of a regular file that is open for
// reading, and no log.
func (w *watcher) isRead(pid, fd int32, path string) bool {
	switch {
	case !filepath.IsAbs(path), strings.HasPrefix(path, "/dev/"), strings.HasPrefix(path, "/proc/"), strings.HasPrefix(path, "/sys/"),
		strings.HasPrefix(path, w.Spool+"/"), strings.HasPrefix(path, w.Hook+"/"):
		return false
	}
	var st unix.Stat_t
	if unix.Stat(fmt.Sprintf("/proc/%d/fd/%d", pid, fd), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return false
	}
	_, flags, ok := fdinfo(pid, fd)
	return ok && flags&unix.O_ACCMODE != unix.O_WRONLY && flags&(unix.O_APPEND|unix.O_PATH) == 0
}

// fdinfo is the position and the flags of an open file.
func fdinfo(pid, fd int32) (offset int64, flags int64, ok bool) {
	text, err := procfs.Read(pid, fmt.Sprintf("fdinfo/%d", fd))
	if err != nil {
		return 0, 0, false
	}
	offset, err = strconv.ParseInt(procfs.Field(text, "pos"), 10, 64)
	if err != nil {
		return 0, 0, false
	}
	flags, err = strconv.ParseInt(procfs.Field(text, "flags"), 8, 64)
	return offset, flags, err == nil
}

// sameFile reports whether two processes have one open file description at a
// descriptor: kcmp(2), which asks for what reading /proc/PID/fd asks for.
func sameFile(a, b, fd int32) (bool, error) {
	const kcmpFile = 0 // include/uapi/linux/kcmp.h
	order, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpFile, uintptr(fd), uintptr(fd), 0)
	if errno != 0 {
		return false, fmt.Errorf("kcmp: %w", errno)
	}
	return order == 0, nil
}
