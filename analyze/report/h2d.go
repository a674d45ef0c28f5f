package report

import (
	"cmp"
	"slices"
	"time"

	"github.com/dptrace/dptrace/analyze/evidence/copies"
)

// h2d is the copies of a loop's batches from the host to devices, on all ranks together: those of more than 64 KiB that
// the first thread of each process made (kernel tier). Steps are those after the first ten batches of a process, from a
// delivery to the next one of the same loader. Where no step could be looked at, times and bytes are null; where rows
// are lost, numbers are of what is left.
type h2d struct {
	Steps     int         `json:"steps"`
	Copies    int         `json:"copies"`  // in these steps
	TotalS    *float64    `json:"total_s"` // that the thread was in the calls, and in the waits right after them
	StepMS    *float64    `json:"step_ms"` // of it for a step, mean
	StepBytes *int64      `json:"step_bytes"`
	BlockedS  *float64    `json:"blocked_s"` // of total_s: in copies that make the thread wait for their bytes; null: not known
	Memory    []h2dMemory `json:"memory"`    // that which took longest first
	Others    int         `json:"others"`    // copies in these steps that are not the batch's, or of other threads
	Unknown   string      `json:"unknown"`   // why some of it, or all, is not known; "" all is
}

// h2dMemory is the copies out of one kind of memory.
type h2dMemory struct {
	Memory string  `json:"memory"` // pageable, pinned, managed, reached (pageable, and a device may read it by itself), unknown
	Copies int     `json:"copies"`
	Bytes  int64   `json:"bytes"`
	TotalS float64 `json:"total_s"`
}

func h2dOf(ranks copies.Ranks) *h2d {
	h := ranks.H2D()
	if h == nil {
		return nil
	}
	all := h.All()
	out := &h2d{Steps: h.Steps, Copies: all.Copies, Memory: []h2dMemory{}, Others: h.Others, Unknown: h.Unknown}
	if h.Steps > 0 {
		total, step, bytes := seconds(int64(all.Time)), ms(all.Time/time.Duration(h.Steps)), all.Bytes/int64(h.Steps)
		out.TotalS, out.StepMS, out.StepBytes = &total, &step, &bytes
		if h.Judged {
			blocked := seconds(int64(all.Blocked))
			out.BlockedS = &blocked
		}
	}
	for kind, t := range h.Memory {
		if t.Copies > 0 {
			out.Memory = append(out.Memory, h2dMemory{copies.Kind(kind).String(), t.Copies, t.Bytes, seconds(int64(t.Time))})
		}
	}
	slices.SortStableFunc(out.Memory, func(a, b h2dMemory) int { return cmp.Compare(b.TotalS, a.TotalS) })
	return out
}
