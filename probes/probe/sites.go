package probe

import (
	"fmt"
	"iter"
	"os"
	"strings"
	"structs"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/frames"
	"github.com/dptrace/dptrace/traces"
)

// Sites are what processes of the run were executing: stacks that the programs have
// walked (bpf/python.h), and the lines that they are of.
type Sites struct {
	*Recording
	Map    *ebpf.Map       // pythons of bpf/python.h
	Stacks iter.Seq[Stack] // all that the programs hold; nil: only TellStack is called
	told   map[uint32]bool // numbers that were looked up
	codes  frames.Codes
}

// PyProcess is struct py_process of bpf/events.h; tests hold what bpf2go makes of it, in each of its probes, against this.
type PyProcess struct {
	_                                          structs.HostLayout
	Thread                                     uint64
	First, Second, Code, Previous, Instruction uint32
	Index                                      uint32
}

// Stack is of struct py_stack and struct py_site of bpf/events.h.
type Stack struct {
	Number uint32
	Frames []frames.Frame
}

// FramesOf puts together what py_stack holds.
func FramesOf(code, instruction []uint64) (all []frames.Frame) {
	for i := range code {
		if code[i] == 0 {
			break
		}
		all = append(all, frames.Frame{Code: code[i], Instruction: instruction[i]})
	}
	return all
}

// Follow begins to tell the programs of processes, as the hook tells of them. There is room for a thousand at
// a time; of others nothing is walked.
func (s *Sites) Follow() {
	s.told = map[uint32]bool{}
	s.Pythons.Watch(frames.Watcher{
		Begun: func(p frames.Process) {
			l := &p.Layout
			_ = s.Map.Put(uint32(p.Pid), PyProcess{Thread: p.Thread, First: l.First, Second: l.Second, Code: l.Code,
				Previous: l.Previous, Instruction: l.Instruction, Index: l.Indexed()})
		},
		Ended: func(pid int32) { _ = s.Map.Delete(uint32(pid)) },
	})
}

// Tell writes, the first time, the lines that a number of a process stands for. There is no row if they cannot
// be known: the process has ended, and what it was forked from, or what it executed was no Python.
func (s *Sites) Tell(number uint32, n Node) {
	if s.told[number] || number == 0 {
		return
	}
	for stack := range s.Stacks { // there are few of them, and each is asked for once
		if stack.Number == number {
			s.TellStack(stack, n)
			return
		}
	}
}

// TellStack is Tell of a stack that is at hand.
func (s *Sites) TellStack(stack Stack, n Node) {
	if !s.told[stack.Number] {
		s.told[stack.Number] = true
		s.write(stack, n)
	}
}

// Forget a number that no stack will have again.
func (s *Sites) Forget(number uint32) { delete(s.told, number) }

func (s *Sites) write(stack Stack, n Node) {
	layout, memory := s.memory(n)
	if memory == nil {
		return
	}
	defer memory.Close()
	family := s.family(n)
	var lines []string
	for _, f := range stack.Frames {
		if p, err := s.codes.Place(&layout, memory, family, f); err == nil {
			lines = append(lines, p.String())
		}
	}
	if len(lines) == 0 {
		return
	}
	s.Rows.Append(traces.CallSite{Head: traces.Head{TsNS: Now(), Proc: s.Number(n)}, Site: stack.Number, Frames: strings.Join(lines, "\n")})
}

// family is the process that this one and others were forked from: code that they all had then lies at the same places.
func (s *Sites) family(n Node) uint32 {
	for n.Inherit {
		parent, ok := s.Tree.Of(n.Parent)
		if !ok || parent.ID == n.ID {
			break
		}
		n = parent
	}
	return n.ID
}

// memory is that of a process, or of the one that it was forked from if it has ended: code lies at the same places there.
func (s *Sites) memory(n Node) (frames.Layout, *os.File) {
	for {
		if n.Ended.IsZero() {
			if p, ok := s.Pythons.Of(n.Pid); ok {
				if f, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.Pid)); err == nil {
					return p.Layout, f
				}
			}
		}
		parent, ok := s.Tree.Of(n.Parent)
		if !ok || !n.Inherit || parent.ID == n.ID {
			return frames.Layout{}, nil
		}
		n = parent
	}
}
