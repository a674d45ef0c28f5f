package cow

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// touched writes how often processes were seen to write at each place, where that has changed.
func (w *watcher) touched(nodes map[uint32]probe.Node) error {
	spent := map[uint32]cowPyStack{} // by number, which none will have again
	sites := w.programs.Maps[cowMapSites]
	err := w.places.Each(sites, func(key *cowPyStack, site *cowPySite) {
		node, ok := nodes[key.Id]
		if !ok {
			return
		}
		if !node.Ended.IsZero() {
			spent[site.Number] = *key
		}
		if site.Seen == w.seen[site.Number] {
			return
		}
		w.seen[site.Number] = site.Seen
		stack := probe.Stack{Number: site.Number, Frames: probe.FramesOf(key.Code[:], key.Instruction[:])}
		w.sites.TellStack(stack, node)
		w.Rows.Append(traces.Touch{Head: traces.Head{TsNS: probe.Now(), Proc: w.Number(node)}, Site: site.Number, Seen: uint64(site.Seen)})
	})
	if err != nil {
		return fmt.Errorf("read the places that write to pages: %w", err)
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
