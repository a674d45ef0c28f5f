package cuda

import (
	"github.com/dptrace/dptrace/probes/frames"
	"github.com/dptrace/dptrace/probes/probe"
)

// callers are the places of programs that ask for copies.
func callers(r *probe.Recording, p *probe.Programs) *probe.Sites {
	return &probe.Sites{
		Recording: r,
		Put: func(f frames.Process) error {
			l := f.Layout
			return p.Maps[cudaMapPythons].Put(uint32(f.Pid), cudaPyProcess{Thread: f.Thread, First: l.First, Second: l.Second, Code: l.Code,
				Previous: l.Previous, Instruction: l.Instruction, Index: l.Indexed()})
		},
		Drop: func(pid uint32) error { return p.Maps[cudaMapPythons].Delete(pid) },
		Stacks: func(yield func(probe.Stack) bool) {
			var stack cudaPyStack
			var site cudaPySite
			for all := p.Maps[cudaMapSites].Iterate(); all.Next(&stack, &site); {
				if !yield(probe.Stack{Number: site.Number, Frames: probe.FramesOf(stack.Code[:], stack.Instruction[:])}) {
					return
				}
			}
		},
	}
}
