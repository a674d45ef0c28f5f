// Package stages is the way of a batch through a DataLoader, as its rows tell it:
// its indices are drawn and queued, a worker fetches and collates it, it comes
// back through queues, the training loop waits for it and takes a step on it. It
// knows of no format: exporters draw or send what is here.
package stages

import "github.com/dptrace/dptrace/traces"

// Stage is one leg of a batch's way.
type Stage int

// The stages in their order. With num_workers=0 the loop's own process fetches:
// Fetch and Collate then lie within Wait, and there are no queues.
const (
	Index       Stage = iota // the sampler gives indices, and they are put in a worker's queue
	IndexQueue               // they wait for the worker
	Fetch                    // dataset and transforms
	Collate                  // the collate function
	ResultQueue              // pickled, through the result queue, pinned if asked for, and lying ready until the loop takes it
	Wait                     // the loop is in next()
	Step                     // from the delivery to the next call of next(), of any loader
	H2D                      // of Step: from its first copy to a device to the end of the last one; see Copied
	Count                    // how many there are
)

var names = [Count]string{"index", "index_queue", "fetch", "collate", "result_queue", "wait", "step", "h2d"}

func (s Stage) String() string { return names[s] }

// Interval is a time on a Clock, in nanoseconds. Its end may lie before its begin
// where a row says so: then there is none.
type Interval struct{ Begin, End int64 }

// Known reports whether there is such a time.
func (i Interval) Known() bool { return i.Begin > 0 && i.End >= i.Begin }

// NS is how long it took; 0 not known.
func (i Interval) NS() int64 {
	if !i.Known() {
		return 0
	}
	return i.End - i.Begin
}

// OfPut is the stage Index.
func (c *Clock) OfPut(p *traces.Part, r *traces.BatchPut) Interval {
	at := c.Of(p, r.TsNS)
	return Interval{at - max(r.DurNS, 0), at}
}

// Fetched is what a worker did around one fetch.
type Fetched struct {
	HandOver Interval // of the batch before, to the queue's feeder thread
	Idle     Interval // waiting for indices
	Fetch    Interval
	Collate  Interval
}

// OfFetch is the times of a fetch.
func (c *Clock) OfFetch(p *traces.Part, r *traces.BatchFetch) Fetched {
	at := c.Of(p, r.TsNS)
	fetched, asked := at+max(r.FetchNS, 0), at-max(r.WaitNS, 0)
	return Fetched{
		HandOver: Interval{asked - max(r.PutNS, 0), asked},
		Idle:     Interval{asked, at},
		Fetch:    Interval{at, fetched},
		Collate:  Interval{fetched, fetched + max(r.CollateNS, 0)},
	}
}

// OfNext is the stage Wait.
func (c *Clock) OfNext(p *traces.Part, r *traces.BatchNext) Interval {
	at := c.Of(p, r.TsNS)
	called := at
	if r.CallNS > 0 {
		called = c.Of(p, r.CallNS)
	}
	return Interval{called, at}
}
