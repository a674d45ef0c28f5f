package staleworkerstate

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/batches"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// excuses: a finding's Facts are the *stale that it tells of first.
var excuses = []detect.Excuse{
	{
		Text: "the workers learn the value in another way: from memory that they share with the training process, " +
			"or with the index of each sample.",
		Excluded: func(c *detect.Case, f *finding.Finding) bool {
			s := f.Facts.(*stale)
			return len(s.same) > 0 || len(s.shared) == 0 && !s.keyed(detect.Of(c, batches.Requested))
		},
	},
	{
		Text: "no step trains on what these passes deliver.",
		Excluded: func(_ *detect.Case, f *finding.Finding) bool {
			return slices.ContainsFunc(f.Facts.(*stale).passes, func(p *timeline.Pass) bool { return p.Role == timeline.Train })
		},
	},
}

// keyed reports whether the sampler asks for something else than plain indices.
func (s *stale) keyed(requested batches.ByPass[batches.Requests]) bool {
	return !s.object.Iterable && slices.ContainsFunc(s.passes, func(p *timeline.Pass) bool { return requested.Of(p).Keyed })
}
