package lastbatchsize1

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/finding"
)

// origin is where a batch of one row came from.
type origin string

const (
	left      origin = "left"    // over when a pass, or a worker's share of it, ended
	short     origin = "fetch"   // the fetch brought one of several samples that were asked for
	dropped   origin = "collate" // the collate function made one row of several samples
	asked     origin = "asked"   // the batch sampler made it in the middle of a pass
	elsewhere origin = ""        // not known
)

// batchSampler is torch's own: it makes batches of one size, but for the last.
const batchSampler = "torch.utils.data.sampler.BatchSampler"

// locate says where a batch of one row came from.
func (s *seen) locate(l lone) lone {
	q, batch := l.pass.requests, uint32(l.batch)
	part := l.pass.Loader.Process.Part.Name
	counted := q.Batches > 0 && !q.Keyed
	if i := slices.IndexFunc(q.Ones, func(one batches.Singleton) bool { return one.Batch == batch }); counted && i >= 0 {
		l.refs = []finding.Ref{{Part: part, Table: "batch_put", Seq: q.Ones[i].Seq}}
		l.origin, l.asked = left, 1
		if batch != q.Last {
			l.origin = asked
		}
		return l
	}
	fetched := detect.Of(s.Case, batches.Fetched)
	for _, w := range l.pass.Workers {
		f := fetched.Of(w)
		for _, one := range f.Ones {
			if one.Batch != batch || f.Most < 2 {
				continue
			}
			l.worker = w.Number
			l.refs = []finding.Ref{{Part: w.Process.Part.Name, Table: "batch_fetch", Seq: one.Seq}}
			switch {
			case counted:
				l.origin, l.asked = short, q.Most
			case one.Batch == f.Last:
				l.origin = left
			default:
				l.origin = short
			}
			return l
		}
	}
	l.refs = []finding.Ref{{Part: part, Table: "batch_next", Seq: l.seq}}
	if counted && q.OnesInAll <= len(q.Ones) {
		l.origin, l.asked = dropped, q.Most
	}
	return l
}
