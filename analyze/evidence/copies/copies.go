// Package copies is how batches get from the host to a device: what memory each
// copy read from, and how long the training thread waited for it. It knows calls of
// the CUDA driver, as the kernel tier sees them.
package copies

import (
	"cmp"
	"maps"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Source is of loaders whose batches are copied. It has no proof of its own: a rule
// that only adds what copies cost can tell without it. What is lost of its tables
// makes the memory that copies read from unknown; Rank says so.
var Source = &collect.Source[*Copies]{
	Name:   "copies to the device",
	Tables: []string{"host", "cuda_library", "host_memory", "copy", "call_site", "cuda_calls", "batch_bytes", "pin", "batch_next", "process"},
	Uses:   []collect.Any{timeline.Source},
	New:    func() collect.Collector[*Copies] { return &collector{map[*traces.Part]*partRows{}} },
}

// Copies is the evidence of Source.
type Copies struct{ of map[*timeline.Loader]*Rank }

// At loaders, in their order.
func (c *Copies) At(loaders timeline.Ranks) (all Ranks) {
	for _, l := range loaders {
		all = append(all, c.of[l])
	}
	return all
}

type collector struct{ parts map[*traces.Part]*partRows }

type partRows struct {
	host    traces.Host
	watched bool   // the driver, in all processes from their start on
	refused string // why it is not; "" it is, or there is none
	procs   map[uint32]*procRows
	sites   map[uint32]string // frames, by CallSite.Site
}

// procRows is what is kept of one process: the first rows of each kind, which is
// where it is judged.
type procRows struct {
	driver   *traces.CudaLibrary // the latest row
	late     bool
	memory   []traces.HostMemory
	copies   []copied // of the driver's calls
	asked    []copied // of torch's methods, by the hook; where the driver is watched they are the same copies
	skips    []skip
	asking   asking            // Process.Copies
	last     int64             // the last copy that is kept, if there were more
	captured int               // copies
	calls    map[string]uint64 // of each function of the driver
	toDevice map[string]uint64 // rows of each of them
	batches  []traces.BatchBytes
	pins     []traces.Pin
	next     []delivery
	all      int // batches that were delivered
}

const (
	mostMemory  = 1 << 16
	mostCopies  = 1 << 16
	mostNext    = 1 << 15
	mostBatches = 64
	mostSites   = 1 << 12
)

// delivery is a row of batch_next.
type delivery struct {
	at, call     int64
	loader, pass uint32
	ok           bool
}

// skip is a time in which the hook has left out copies.
type skip struct{ from, to int64 }

// copied is one copy to a device of more than 64 KiB.
type copied struct {
	at, bytes  int64
	call, next int64 // ns
	source     uint64
	seq        uint64
	site       uint32
	gap        int64
	after      string // Copy.Next
	main       bool   // of the first thread
	plain      bool   // one range of memory, copied now, and it succeeded
	kind       Kind
	hook       bool // told by the hook
	async      bool // with non_blocking=True
	made       bool // from a tensor that torch has first made of the one that was to be copied, which is pinned
}

func (c *collector) part(part *traces.Part) *partRows {
	p := c.parts[part]
	if p == nil {
		p = &partRows{procs: map[uint32]*procRows{}, sites: map[uint32]string{}}
		c.parts[part] = p
	}
	return p
}

func (p *partRows) proc(n uint32) *procRows {
	r := p.procs[n]
	if r == nil {
		r = &procRows{calls: map[string]uint64{}, toDevice: map[string]uint64{}}
		p.procs[n] = r
	}
	return r
}

func (c *collector) Add(b traces.Batch) {
	p := c.part(b.Part)
	switch rows := b.Rows.(type) {
	case []traces.Host:
		for i := range rows {
			p.host = rows[i]
		}
	case []traces.CudaLibrary:
		for i := range rows {
			p.library(rows[i])
		}
	case []traces.HostMemory:
		for i := range rows {
			r := p.proc(rows[i].Proc)
			r.memory = append(r.memory[:min(len(r.memory), mostMemory)], rows[i]) // one more than are used
		}
	case []traces.Copy:
		for i := range rows {
			p.proc(rows[i].Proc).copy(&rows[i])
		}
	case []traces.CallSite:
		for i := range rows {
			if len(p.sites) < mostSites {
				p.sites[rows[i].Site] = rows[i].Frames
			}
		}
	case []traces.Process:
		for i := range rows {
			if rows[i].Copies != "" {
				p.proc(rows[i].Proc).asking = asking(rows[i].Copies)
			}
		}
	case []traces.CudaCalls:
		for i := range rows {
			if c := &rows[i]; c.Library == "driver" {
				r := p.proc(c.Proc)
				r.calls[c.Function] = max(r.calls[c.Function], c.Calls)
			}
		}
	default:
		p.addLoading(b)
	}
}

// addLoading takes rows that tell of batches.
func (p *partRows) addLoading(b traces.Batch) {
	switch rows := b.Rows.(type) {
	case []traces.BatchBytes:
		for i := range rows {
			if r := p.proc(rows[i].Proc); len(r.batches) < mostBatches {
				r.batches = append(r.batches, rows[i])
			}
		}
	case []traces.Pin:
		for i := range rows {
			if r := p.proc(rows[i].Proc); len(r.pins) < mostBatches {
				r.pins = append(r.pins, rows[i])
			}
		}
	case []traces.BatchNext:
		for i := range rows {
			p.proc(rows[i].Proc).delivery(&rows[i])
		}
	}
}

func (p *partRows) library(l traces.CudaLibrary) {
	if l.Library != "driver" {
		return
	}
	if l.Proc == 0 {
		if p.watched = p.watched || l.How != ""; l.How == "" {
			p.refused = cmp.Or(l.Note, "the reason is not known")
		}
		return
	}
	r := p.proc(l.Proc)
	r.driver, r.late = &l, r.late || l.Late
}

type asking string

// text says why there is nothing by the hook.
func (a asking) text() string {
	switch a {
	case "":
		return ""
	case "on":
		return ", which saw none that was asked for by Tensor.to, cuda or copy_"
	}
	return ", which could not watch torch's methods here: " + string(a)
}

// ask takes a row by the hook.
func (r *procRows) ask(c *traces.Copy) {
	if c.Skipped > 0 {
		s := skip{to: c.TsNS}
		if n := len(r.asked); n > 0 {
			s.from = r.asked[n-1].at
		}
		if c.Bytes == 0 {
			s.to = 1<<63 - 1
		}
		r.skips = append(r.skips, s)
	}
	if c.Bytes <= 0 || len(r.asked) >= mostCopies {
		return
	}
	x := copied{at: c.TsNS, bytes: c.Bytes, call: max(c.CallNS, 0), source: c.Source, seq: c.Seq, site: c.Site, gap: -1, main: c.Main,
		plain: true, hook: true, async: c.Async}
	switch {
	case c.Capturing:
		r.captured++
		return
	case c.Memory == "pageable":
		x.kind = Pageable
	case c.Memory != "pinned", c.Made == "cast" && c.Async: // such a cast is the device's in some versions of torch
	case c.Made != "":
		x.kind, x.made = Pageable, true
	default:
		x.kind = Pinned
	}
	r.asked = append(r.asked, x)
}

func (r *procRows) copy(c *traces.Copy) {
	if c.SeenBy == "hook" {
		r.ask(c)
		return
	}
	if c.Direction != "to-device" {
		return
	}
	r.toDevice[c.Function]++
	switch {
	case c.Capturing:
		r.captured++
		return
	case len(r.copies) == mostCopies:
		if r.last == 0 {
			r.last = r.copies[mostCopies-1].at
		}
		return
	}
	r.copies = append(r.copies, copied{at: c.TsNS, bytes: c.Bytes, call: max(c.CallNS, 0), next: max(c.NextNS, 0), source: c.Source,
		seq: c.Seq, site: c.Site, gap: c.GapNS, after: afterwards(c.Next), main: c.Main, plain: c.Result == 0 && c.Rows <= 1 && c.Bytes > 0})
}

// afterwards is one of the constants below, so that no row is kept for its text.
func afterwards(next string) string {
	for _, known := range []string{streamSync, contextSync} {
		if next == known {
			return known
		}
	}
	return ""
}

// What is done next, of Copy.Next.
const (
	streamSync  = "stream-sync"
	contextSync = "context-sync"
)

func (r *procRows) delivery(b *traces.BatchNext) {
	if b.Status == "exit" {
		return
	}
	if b.Status == "ok" {
		r.all++
	}
	if len(r.next) == mostNext {
		return
	}
	call := b.CallNS
	if call <= 0 {
		call = b.TsNS
	}
	r.next = append(r.next, delivery{b.TsNS, call, b.Loader, b.Pass, b.Status == "ok"})
}

func (c *collector) Merge(other collect.Collector[*Copies]) {
	maps.Copy(c.parts, other.(*collector).parts)
}

func ref(part *traces.Part, seq uint64) finding.Ref {
	return finding.Ref{Part: part.Name, Table: "copy", Seq: seq}
}
