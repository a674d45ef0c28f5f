package files

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
)

// pathOf is the path of a file as its process has named it, asked for at once: a
// relative name begins where the process is now. "" if the file is not there:
// the process is gone, or has gone elsewhere.
func (w *watcher) pathOf(e *filesOpenEvent) string {
	name := nameOf(e)
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	link := "cwd"
	if e.Folder != unix.AT_FDCWD {
		link = fmt.Sprintf("fd/%d", e.Folder)
	}
	folder := folderOf(int32(e.Pid), link)
	if folder == "" || !isFile(filepath.Join(folder, name), e) {
		return ""
	}
	if e.Folder == unix.AT_FDCWD {
		w.of(e.Id).folder = folder
	}
	return filepath.Join(folder, name)
}

// search is the path of a file that pathOf has not found, by where its process has
// been before, or began: where its parent is, or, of the target, the recorder.
func (w *watcher) search(e *filesOpenEvent, r probe.Node) string {
	if e.Folder != unix.AT_FDCWD {
		return ""
	}
	folders := []string{w.of(e.Id).folder, w.of(r.Parent).folder}
	if parent, ok := w.Tree.Of(r.Parent); ok {
		folders = append(folders, folderOf(parent.Pid, "cwd"))
	}
	if here, err := os.Getwd(); err == nil {
		folders = append(folders, here)
	}
	for _, folder := range folders {
		if path := filepath.Join(folder, nameOf(e)); folder != "" && isFile(path, e) {
			return path
		}
	}
	return ""
}

func nameOf(e *filesOpenEvent) string {
	name, _, _ := bytes.Cut(e.Path[:], []byte{0})
	return strings.ToValidUTF8(string(name), "?")
}

// isFile reports whether a path leads to the file that was opened. overlayfs and
// btrfs show other numbers than the kernel has: there it is enough that a file
// of this name is there.
func isFile(path string, e *filesOpenEvent) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return false
	}
	const minorBits = 20 // of the kernel's own dev_t, include/linux/kdev_t.h
	if st.Dev == unix.Mkdev(e.Device>>minorBits, e.Device&(1<<minorBits-1)) {
		return st.Ino == e.Number
	}
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && (fs.Type == unix.OVERLAYFS_SUPER_MAGIC || fs.Type == unix.BTRFS_SUPER_MAGIC)
}

// folderOf is where a link of a process leads; "" if the process is gone.
func folderOf(pid int32, name string) string {
	if folder := procfs.Link(pid, name); filepath.IsAbs(folder) {
		return folder
	}
	return ""
}
