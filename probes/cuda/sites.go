package cuda

import "github.com/dptrace/dptrace/probes/probe"

// callers are the places of programs that ask for copies.
func callers(r *probe.Recording, p *probe.Programs) *probe.Sites {
	return &probe.Sites{
		Recording: r,
		Map:       p.Maps[cudaMapPythons],
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
