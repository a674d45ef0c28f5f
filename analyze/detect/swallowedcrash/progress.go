package swallowedcrash

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/timeline"
)

// reached says how far a training came.
func reached(p *timeline.Process) string {
	if !p.Hooked() {
		return "not known, it was not watched from inside"
	}
	var last *timeline.Pass
	for _, l := range p.Loaders {
		for _, pass := range l.Passes {
			if last == nil || pass.Begin > last.Begin {
				last = pass
			}
		}
	}
	switch {
	case last == nil && p.Optimizers > 0:
		return "an optimizer stepped, no DataLoader was iterated"
	case last == nil:
		return "before its first batch, no DataLoader was iterated and no optimizer stepped"
	case last.Delivered == 0 && len(last.Loader.Passes) == 1 && p.Steps == 0:
		return "before its first batch, in the first pass of the loader at " + last.Loader.At()
	}
	text := fmt.Sprintf("pass %d of the loader at %s, %d batches into it", last.Number, last.Loader.At(), last.Delivered)
	if p.Steps > 0 {
		text += fmt.Sprintf(", after %d optimizer steps", p.Steps)
	}
	return text
}

func cost(p *timeline.Process) string {
	switch {
	case !p.Hooked():
		return "what this process was to do is not done"
	case p.Steps > 0:
		return fmt.Sprintf("its training ended after %d optimizer steps, and the caller was told that all went well", p.Steps)
	case trained(p):
		return "it ended " + reached(p) + ", and the caller was told that all went well"
	}
	return "it trained nothing: no batch, no optimizer step, and the caller was told that all went well"
}
