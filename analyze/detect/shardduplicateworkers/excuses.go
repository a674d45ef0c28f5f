package shardduplicateworkers

import (
	"slices"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/samples"
	"github.com/dptrace/dptrace/analyze/finding"
)

// excuses of workers that deliver the same samples.
var excuses = []detect.Excuse{
	{
		Text: "each worker is meant to go through all of the data, and what it makes of a sample differs (other crops of the same images).",
		Excluded: of(func(s *shared) bool { // not a bit of it differs
			return every(s, func(t *samples.Twins) bool { return t.By == samples.Whole || t.By == samples.Rows })
		}),
	},
	{
		Text: "the samples are names of data (positions, keys, paths) of which each worker has its own, and the collate function reads by them.",
		Excluded: of(func(s *shared) bool { // the batches were seen, or so much does not fit into a name
			return every(s, func(t *samples.Twins) bool { return t.By == samples.Rows || !t.Became.Unseen || !t.Brief })
		}),
	},
	{
		Text: "the data are gone through several times on purpose, and then dealt out to the workers.",
		Excluded: of(func(s *shared) bool { // in one order, or mixed: not begun elsewhere, as every n-th of two rounds are
			return s.census == nil || !s.census.Rotated
		}),
	},
	{
		Text: "the data themselves hold these samples several times, or list a file several times to weigh it more.",
		Excluded: of(func(s *shared) bool {
			if s.seams { // one place may be chance
				return s.census.Seams > 1 && s.census.Own == 0
			}
			// of equal rows in the data a worker has some itself, and no two workers have all in common
			return every(s, func(t *samples.Twins) bool { return !t.Partly && !t.Scattered })
		}),
	},
	{
		Text: "the parts of the samples that differ make them other samples: another question about the same image.",
		Excluded: of(func(s *shared) bool {
			return every(s, func(t *samples.Twins) bool { return t.By != samples.Payload })
		}),
	},
}

func of(excluded func(*shared) bool) func(*detect.Case, *finding.Finding) bool {
	return func(_ *detect.Case, f *finding.Finding) bool {
		s, ok := f.Facts.(*shared)
		return ok && excluded(s)
	}
}

func every(s *shared, ok func(*samples.Twins) bool) bool {
	return !slices.ContainsFunc(s.pairs, func(t *samples.Twins) bool { return !ok(t) })
}
