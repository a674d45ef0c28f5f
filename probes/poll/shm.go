package poll

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

const (
	// A change of what is free by less than this share of the capacity is not worth a row.
	noticeableRoom  = 0.01
	mostShmFiles    = 16                     // that are told, the largest ones
	holdersPatience = 100 * time.Millisecond // for asking processes which of them they hold
)

// shm is how full the file systems at /dev/shm are, that the processes of the run see.
type shm struct {
	rooms map[int64]traces.ShmRoom // the last row of each, by device
	of    map[string]int32         // a process of each mount namespace
}

func noShm() shm { return shm{rooms: map[int64]traces.ShmRoom{}, of: map[string]int32{}} }

// lives notes the mount namespace of a process that is new, or runs another program.
func (s *shm) lives(pid int32) {
	if namespace := procfs.Link(pid, "ns/mnt"); namespace != "" {
		s.of[namespace] = pid
	}
}

// lookShm writes how much room there is, where that has changed.
func (w *watcher) lookShm(always bool) {
	for namespace, pid := range w.shm.of {
		p := w.procs[pid]
		if p == nil || !p.gone.IsZero() {
			if pid = w.another(namespace); pid == 0 {
				delete(w.shm.of, namespace)
				continue
			}
			w.shm.of[namespace] = pid
			p = w.procs[pid]
		}
		s, err := procfs.ReadShm(pid)
		if err != nil {
			continue
		}
		row := traces.ShmRoom{Device: s.Device, Type: "other", Capacity: s.Capacity, Free: s.Free, Nodes: s.Nodes}
		if s.Tmpfs {
			row.Type = "tmpfs"
		}
		was, known := w.shm.rooms[s.Device]
		if known && !always && was.Capacity == row.Capacity && math.Abs(float64(row.Free-was.Free)) < noticeableRoom*float64(row.Capacity) {
			continue
		}
		w.shm.rooms[s.Device] = row
		proc, _ := w.Procs.Of(pid, p.start)
		row.Head = traces.Head{TsNS: probe.Now(), Proc: proc.Number}
		w.Rows.Append(row)
	}
}

// another is a process in a mount namespace whose process that was asked so far is gone; 0: there is none.
func (w *watcher) another(namespace string) int32 {
	for pid, p := range w.procs {
		if p.gone.IsZero() && procfs.Link(pid, "ns/mnt") == namespace {
			return pid
		}
	}
	return 0
}

// tellShmFiles writes which files lie in the /dev/shm that we see.
func (w *watcher) tellShmFiles(phase string) {
	self := int32(os.Getpid())
	here, err := procfs.ReadShm(self)
	if err != nil {
		return
	}
	files, more := shmFiles(procfs.ShmPath(self))
	if phase == "end" {
		holders(files)
	}
	for i := range files {
		f := &files[i]
		f.Device, f.Phase = here.Device, phase
		if i == len(files)-1 {
			f.More = uint32(more)
		}
		f.Head = traces.Head{TsNS: probe.Now()}
		if known, ok := w.Procs.ByPid(f.Pid); ok && f.Pid != 0 {
			f.Proc = known.Number
		}
		w.Rows.Append(*f)
	}
}

// shmFiles lists the largest files of a folder, and how many there are besides.
func shmFiles(folder string) (files []traces.ShmFile, more int) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, 0
	}
	for _, e := range entries {
		var st unix.Stat_t
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), "sem.") { // semaphores are a page each, and there are many
			continue
		}
		if unix.Lstat(filepath.Join(folder, e.Name()), &st) != nil || st.Blocks == 0 {
			continue
		}
		const block = 512 // of st_blocks, stat(2)
		f := traces.ShmFile{Name: strings.ToValidUTF8(e.Name(), "?"), Bytes: st.Blocks * block, Pid: makerOf(e.Name()), Links: int32(st.Nlink)}
		if f.Pid != 0 {
			f.Owner = "dead"
			if _, err := procfs.ReadStat(f.Pid); err == nil {
				f.Owner = "alive"
			}
		}
		files = append(files, f)
	}
	slices.SortFunc(files, func(a, b traces.ShmFile) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	n := min(len(files), mostShmFiles)
	return files[:n], len(files) - n
}

// makerOf is the pid that the name of a file of torch's tells; 0: it tells none.
// In a container that shares /dev/shm it may be of another pid namespace.
func makerOf(name string) int32 {
	rest, ok := strings.CutPrefix(name, "torch_")
	if !ok {
		return 0
	}
	number, _, _ := strings.Cut(rest, "_")
	pid, err := strconv.ParseInt(number, 10, 32)
	if err != nil || pid <= 0 {
		return 0
	}
	return int32(pid)
}

// holders finds out whether other processes have mapped files whose maker is dead.
func holders(files []traces.ShmFile) {
	dead := map[string]*traces.ShmFile{}
	for i := range files {
		if files[i].Owner == "dead" {
			dead["/dev/shm/"+files[i].Name] = &files[i]
		}
	}
	until := time.Now().Add(holdersPatience)
	for _, pid := range procfs.Pids() {
		if len(dead) == 0 {
			return
		}
		if time.Now().After(until) {
			for _, f := range dead { // somebody may hold them
				f.Owner = ""
			}
			return
		}
		maps, err := procfs.Read(pid, "maps")
		if err != nil {
			continue
		}
		for path, f := range dead {
			if strings.Contains(string(maps), path+"\n") {
				f.Owner = "held"
				delete(dead, path)
			}
		}
	}
}
