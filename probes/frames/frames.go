// Package frames reads, from outside, which lines a thread of CPython is at: frames
// as eBPF programs have walked them (bpf/python.h) become files, functions and lines.
package frames

import (
	"strconv"
	"strings"
	"sync"
)

// Layout is where a version of CPython keeps the frames of a thread. Offsets in bytes.
type Layout struct {
	First  uint32 // in the PyThreadState: the pointer to the frame that runs, or to what has it
	Second uint32 // in the latter; None: there is no such thing
	// Of a frame: its code object, the frame that called it, and the instruction it is at.
	Code, Previous, Instruction uint32
	Index                       bool // Instruction is an int, an index; else an address
	code                        codeLayout
}

// None is an offset of something that is not there.
const None = ^uint32(0)

// codeLayout is that of a code object, and of the strings in it.
type codeLayout struct {
	firstLine, file, name, lines uint64
	instructions                 uint64 // where they begin; 0: not in it
	ascii, compact               uint64 // bytes before the characters of a string, if they are ASCII, and if not
	decode                       func(table []byte, first, at int) (line int)
	unit                         int // bytes of what Index counts
}

// layouts by minor version of Python 3, of builds of 64 bits that have a global lock. Each is offsetof() with the headers of
// that version: 3.8.18, 3.9.18, 3.10.13, 3.11.7, 3.12.1, 3.13.0, 3.14.8.
var layouts = map[int]Layout{
	8:  {24, None, 32, 24, 104, true, codeLayout{40, 104, 112, 120, 0, 48, 72, lnotab, 1}},
	9:  {24, None, 32, 24, 104, true, codeLayout{40, 104, 112, 120, 0, 48, 72, lnotab, 1}},
	10: {24, None, 32, 24, 96, true, codeLayout{40, 104, 112, 120, 0, 48, 72, lineTable, 2}},
	11: {56, 8, 32, 48, 56, false, codeLayout{72, 112, 128, 136, 184, 48, 72, locations, 1}},
	12: {56, 0, 0, 8, 56, false, codeLayout{68, 112, 128, 136, 192, 40, 56, locations, 1}},
	13: {72, None, 0, 8, 56, false, codeLayout{68, 112, 128, 136, 200, 40, 56, locations, 1}},
	14: {72, None, 0, 8, 56, false, codeLayout{68, 112, 128, 136, 208, 40, 56, locations, 1}},
}

// Indexed is Index, as a number.
func (l *Layout) Indexed() uint32 {
	if l.Index {
		return 1
	}
	return 0
}

// LayoutOf is that of a version, "3.11.2".
func LayoutOf(version string) (Layout, bool) {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	if major != "3" || err != nil {
		return Layout{}, false
	}
	l, ok := layouts[n]
	return l, ok
}

// Process is a Python that has told where it keeps its main thread.
type Process struct {
	Pid    int32
	Thread uint64 // address of the PyThreadState
	Layout Layout
}

// Processes are those of a recording that run. It is safe for several goroutines.
type Processes struct {
	mu       sync.Mutex
	byPid    map[int32]Process
	watchers []Watcher
}

// Watcher is told of processes.
type Watcher struct {
	Begun func(Process)
	Ended func(pid int32)
}

// Watch tells of each process that is known, and of each one as soon as it is.
func (p *Processes) Watch(w Watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watchers = append(p.watchers, w)
	for _, process := range p.byPid {
		w.Begun(process)
	}
}

// Add makes a process known, in place of one that had its pid before.
func (p *Processes) Add(process Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byPid == nil {
		p.byPid = map[int32]Process{}
	}
	p.byPid[process.Pid] = process
	for _, w := range p.watchers {
		w.Begun(process)
	}
}

// Remove forgets a process that has ended.
func (p *Processes) Remove(pid int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.byPid[pid]; !known {
		return
	}
	delete(p.byPid, pid)
	for _, w := range p.watchers {
		w.Ended(pid)
	}
}

// Of is the one of a pid.
func (p *Processes) Of(pid int32) (Process, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	process, ok := p.byPid[pid]
	return process, ok
}
