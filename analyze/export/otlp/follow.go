package otlp

import (
	"context"
	"fmt"
	"time"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Follower sends a run while it is recorded. Each time it reads the trace from its
// beginning, and sends what was not sent yet: batches whose step has ended, windows
// of metrics that are over. What did not arrive is sent the next time. Findings,
// passes and batches that nobody took are known when the run has ended.
type Follower struct {
	options Options
	sender  *sender
	to      *network
	live    *progress
}

// NewFollower is one that has sent nothing yet.
func NewFollower(ctx context.Context, o Options) (*Follower, error) {
	f := &Follower{options: o, sender: newSender(ctx, 0, 1), live: &progress{all: map[name]*sent{}}}
	var err error
	if f.to, err = connect(ctx, &f.sender.calls); err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	return f, nil
}

// Send sends what there is more of a run; last says that the run has ended, and the
// result has its findings.
func (f *Follower) Send(r *analyze.Result, last bool) error {
	f.live.ended, f.live.stopped = last, map[name]bool{}
	f.sender.reset()
	if last {
		f.sender.patience = f.options.Patience
	}
	if err := feed(r, f.options, f.to.sink(), f.sender, f.live); err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	f.sender.wg.Wait()
	return nil
}

// Close ends it, and says what was delivered in all.
func (f *Follower) Close(ctx context.Context) *Told {
	told := f.sender.all()
	_ = f.to.close(ctx) // nothing is on its way any more
	return told
}

// name is a process of a part, in all readings of a trace.
type name struct {
	part string
	proc uint32
}

// sent is what of a source has arrived, by times on the run's clock.
type sent struct {
	batches, reached int64 // deliveries up to this one; and those that are on their way
	points, memory   int64
}

// progress is how far a run was sent; nil: it is sent at once.
type progress struct {
	all     map[name]*sent
	stopped map[name]bool // this time no more of it: something is missing, or did not arrive
	ended   bool
}

func (p *progress) sealed() bool { return p == nil || p.ended }

func (p *progress) of(process *timeline.Process) *sent {
	if p == nil {
		return &sent{}
	}
	k := name{process.Part.Name, process.Proc}
	if p.all[k] == nil {
		p.all[k] = &sent{}
	}
	return p.all[k]
}

// lag is how long rows may take until they are all in the trace.
const lag = int64(5 * time.Second)

// early reports whether copies of a batch's step may still come into the trace.
func (p *progress) early(b *stages.Batch, now int64) bool {
	return !p.sealed() && b.Awaited && b.Stages[stages.Step].End > now-lag
}

// due reports whether a batch is to be sent now. Those of one process are sent in
// the order of their deliveries, so that one time tells how far that went.
func (p *progress) due(b *stages.Batch, now int64) bool {
	if p == nil {
		return true
	}
	k, at := name{b.Process.Part.Name, b.Process.Proc}, b.Stages[stages.Wait].End
	switch {
	case !b.Delivered: // nobody knows before the end
		return p.ended
	case at <= p.of(b.Process).batches || p.stopped[k]:
		return false
	case !p.ended && (b.Open || !b.Stages[stages.Fetch].Known() && at > now-lag || p.early(b, now)):
		p.stopped[k] = true
		return false
	}
	return true
}

func (p *progress) reached(b *stages.Batch) {
	if p != nil && b.Delivered {
		p.of(b.Process).reached = b.Stages[stages.Wait].End
	}
}

// settle books what came of a request with spans: what arrived is not sent again.
func (p *progress) settle(process *timeline.Process, arrived bool) {
	of := p.of(process)
	if arrived {
		of.batches = of.reached
	} else {
		p.stopped[name{process.Part.Name, process.Proc}] = true
	}
}
