package sharedfileposition

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/contents"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// delivered says whether samples came out differently from one time to the next, which is what reads that go astray lead to:
// nothing if no sample was looked at twice.
func delivered(c *detect.Case) []finding.Evidence {
	type sample struct {
		loader *timeline.Loader
		index  int64
	}
	fetches := detect.Of(c, contents.Source)
	first := map[sample]*contents.Sample{}
	differs := map[sample]bool{} // those that were compared
	for _, l := range c.Loaders {
		for _, p := range l.Passes {
			for _, w := range p.Workers {
				for _, s := range fetches.Samples(w) {
					k := sample{l, s.Index}
					if s.Index < 0 {
						continue
					}
					before := first[k]
					if before == nil {
						first[k] = &s
						continue
					}
					if same, ok := before.Same(&s.Digest); ok {
						differs[k] = differs[k] || !same
					}
				}
			}
		}
	}
	if len(differs) == 0 {
		return nil
	}
	n := 0
	for _, d := range differs {
		if d {
			n++
		}
	}
	text := fmt.Sprintf("Of %s whose content is known of two times or more, ", words.Count(len(differs), "sample"))
	switch n {
	case 0:
		text += "none came out differently: which bytes went astray is not to be seen there."
	case 1:
		text += "1 did not come out the same each time. Random transforms do that, too."
	default:
		text += fmt.Sprintf("%s did not come out the same each time. Random transforms do that, too.", words.Number(int64(n)))
	}
	return []finding.Evidence{{Text: text}}
}
