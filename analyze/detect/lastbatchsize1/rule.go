// Package lastbatchsize1 is the rule last-batch-size-1: a training batch of one
// row, which a batch norm took by itself. docs/rules/last-batch-size-1.md
// explains it.
package lastbatchsize1

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "last-batch-size-1",
	DP:      "DP8",
	Title:   "A training batch of one sample",
	Sources: []collect.Any{batches.Requested, batches.Delivered, batches.Fetched},
	Excuses: []detect.Excuse{
		{
			Text:     "the program makes batches of one sample on purpose.",
			Excluded: each(func(l lone) bool { return l.pass.object.BatchSize > 1 || l.pass.object.BatchSampler == batchSampler }),
		},
		{
			Text: "the steps are not taken for these batches: rows that would tell are lost.",
			Excluded: each(func(l lone) bool {
				return !l.pass.Blind && (l.pass.Role == timeline.Train || l.use == refused)
			}),
		},
	},
	Judge: judge,
}

// each makes an excuse's observation of one that is made for each batch.
func each(of func(lone) bool) func(*detect.Case, *finding.Finding) bool {
	return func(_ *detect.Case, f *finding.Finding) bool {
		list, _ := f.Facts.([]lone)
		for _, l := range list {
			if !of(l) {
				return false
			}
		}
		return len(list) > 0
	}
}

func judge(c *detect.Case) detect.Verdict {
	s := &seen{Case: c, least: -1}
	for _, pass := range c.Passes() {
		if !pass.Abandoned && pass.Role != timeline.Eval && pass.Delivered > 0 {
			s.look(pass)
		}
	}
	o := c.First().First()
	switch hit, quiet := s.those(normed, refused), s.those(stepped); {
	case len(hit) > 0:
		return detect.Found(fmt.Sprintf("%s of one sample, of %d", words.Count(len(hit), "batch"), s.batches), s.finding(hit))
	case c.Loaders.Role() == timeline.Eval:
		return detect.NotApplicable("an evaluation: nothing is learned from a small batch")
	case o.BatchSize == 1:
		return detect.NotApplicable("batch_size=1 is what was asked for")
	case s.usual > 0:
		return detect.NotApplicable(fmt.Sprintf("most batches have one row each: that is how %s makes them", s.maker()))
	case len(quiet) > 0:
		return detect.Found(fmt.Sprintf("%s of one sample, of %d", words.Count(len(quiet), "batch"), s.batches), s.note(quiet))
	}
	return s.verdict()
}

// verdict where the loop trained on no batch of one row that was seen.
func (s *seen) verdict() detect.Verdict {
	unseen := s.those(unknown)
	passed := s.those(passedOver)
	switch {
	case s.unwatched > 0:
		return detect.CannotTell("what the loop does with its batches is not in the trace: it is one of an older dptrace, or gradients " +
			"are not computed by torch's backward")
	case s.alone > 0 && s.batches == s.alone:
		return detect.CannotTell("one batch a pass: there is no last one")
	case len(unseen) > 0:
		return detect.CannotTell(fmt.Sprintf("whether the loop trained on %s of one sample is not in the trace",
			words.Count(len(unseen), "batch")))
	case s.ended == 0:
		return detect.CannotTell("no pass was used to its end, where the last batch is")
	case s.hidden > 0:
		return detect.CannotTell(fmt.Sprintf("how many rows %s have is not in the trace", words.Count(s.hidden, "batch")))
	case len(passed) > 0:
		return detect.Clean(fmt.Sprintf("%s of one sample, which the loop has passed over", words.Count(len(passed), "batch")))
	}
	return detect.Clean(fmt.Sprintf("%s, the smallest of %s", words.Count(s.batches, "batch"), words.Count(s.least, "row")))
}

// maker of the batches, as the program calls it.
func (s *seen) maker() string {
	if o := s.First().First(); o.Collate != "" && !strings.HasPrefix(o.Collate, "torch.") {
		return o.Collate
	}
	return "the loader"
}

// seen is what was seen of the batches of one loader.
type seen struct {
	*detect.Case

	lone      []lone
	batches   int // seen
	least     int // rows in the smallest of them
	hidden    int // of which it is not known how many rows they have
	alone     int // passes of one batch
	usual     int // passes most of whose batches have one row
	ended     int // passes that came to their end
	unwatched int // passes of which it is not known what became of their batches
}

// use that the training loop made of a batch of one row.
type use int

const (
	passedOver use = iota // no step on it, and no batch norm in training mode
	unknown               // the rows that would tell are not there
	stepped               // a step on it; no batch norm was seen
	normed                // a step on it, and a batch norm in training mode took it by itself
	refused               // torch's batch norm raised an error on it, and that ended the program
)

// lone is a batch of one row that reached the training loop.
type lone struct {
	batch  int // number of the delivery in its pass
	pass   pass
	use    use
	origin origin
	asked  int    // samples that were asked for; 0 not known
	worker int    // that fetched it; -1 the main process, -2 not known
	seq    uint64 // of its row in batch_next
	refs   []finding.Ref
}

// pass of the loader, and what is known of its batches.
type pass struct {
	*timeline.Pass
	object    *traces.Loader
	requests  *batches.Requests
	delivered *batches.Deliveries
}

// look at one pass.
func (s *seen) look(t *timeline.Pass) {
	p := pass{t, t.DataLoader(), detect.Of(s.Case, batches.Requested).Of(t), detect.Of(s.Case, batches.Delivered).Of(t)}
	s.batches += t.Delivered
	if !t.Watched() {
		s.unwatched++
		return
	}
	if t.Exhausted {
		s.ended++
	}
	rows := &p.delivered.Rows
	s.hidden += p.delivered.Hidden
	if rows.Batches > 0 && (s.least < 0 || rows.Least < s.least) {
		s.least = rows.Least
	}
	switch {
	case rows.OnesInAll == 0 || p.object.BatchSize == 1:
		return
	case t.Delivered == 1: // there is nothing but the one sample
		s.alone++
		return
	case 2*rows.OnesInAll > t.Delivered:
		s.usual++
		return
	}
	for _, one := range rows.Ones {
		i := int(one.Batch)
		s.lone = append(s.lone, s.locate(lone{batch: i, pass: p, use: useOf(p, i), worker: -2, seq: one.Seq}))
	}
}

// useOf the i-th delivery of a pass, which has one row.
func useOf(p pass, i int) use {
	switch {
	case p.Trained(i) && p.Alone(i):
		return normed
	case p.Trained(i):
		return stepped
	case p.Alone(i) && i == p.Delivered-1 && refusal(p) != nil:
		return refused
	case !p.Known(i), p.Used(i), p.Alone(i): // the step may be still to come
		return unknown
	}
	return passedOver
}

// those that the loop used in some way.
func (s *seen) those(how ...use) (list []lone) {
	for _, l := range s.lone {
		for _, u := range how {
			if l.use == u {
				list = append(list, l)
			}
		}
	}
	return list
}

// refusal is the error of a batch norm that was given one value per channel, if
// it ended the program.
func refusal(p pass) *traces.Exception {
	raised := p.Loader.Process.Raised
	for i := range raised {
		e := &raised[i]
		if e.Stage == "exit" && e.Type == "ValueError" && strings.HasPrefix(e.Message, "Expected more than 1 value per channel when training") {
			return e
		}
	}
	return nil
}
