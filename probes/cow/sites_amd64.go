package cow

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/frames"
	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// writers are the places of programs that write to memory which they share with their parent.
func writers(r *probe.Recording, p *probe.Programs) *probe.Sites {
	return &probe.Sites{
		Recording: r,
		Put: func(f frames.Process) error {
			l := f.Layout
			return p.Maps[cowMapPythons].Put(uint32(f.Pid), cowPyProcess{Thread: f.Thread, First: l.First, Second: l.Second, Code: l.Code,
				Previous: l.Previous, Instruction: l.Instruction, Index: l.Indexed()})
		},
		Drop: func(pid uint32) error { return p.Maps[cowMapPythons].Delete(pid) },
	}
}

// touched writes how often processes were seen to write at each place, where that has changed.
func (w *watcher) touched(nodes map[uint32]probe.Node) error {
	var key cowPyStack
	var site cowPySite
	spent := map[uint32]cowPyStack{} // by number, which none will have again
	sites := w.programs.Maps[cowMapSites]
	for all := sites.Iterate(); all.Next(&key, &site); {
		n, ok := nodes[key.Id]
		if !ok {
			continue
		}
		if !n.Ended.IsZero() {
			spent[site.Number] = key
		}
		if site.Seen == w.seen[site.Number] {
			continue
		}
		w.seen[site.Number] = site.Seen
		stack := probe.Stack{Number: site.Number, Frames: probe.FramesOf(key.Code[:], key.Instruction[:])}
		w.sites.TellStack(stack, n)
		w.Rows.Append(traces.Touch{Head: traces.Head{TsNS: probe.Now(), Proc: w.Number(n)}, Site: site.Number, Seen: uint64(site.Seen)})
	}
	for number, key := range spent {
		delete(w.seen, number)
		w.sites.Forget(number)
		if err := sites.Delete(&key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("free the places of ended processes: %w", err)
		}
	}
	return nil
}
