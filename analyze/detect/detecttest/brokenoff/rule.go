// Package brokenoff is a rule that nobody needs: it shows, and a test holds, what
// a rule takes. A folder, a line in a list, no more lines than these.
package brokenoff

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "broken-off",
	Title:   "A training loop leaves its loader before the data end",
	Sources: []collect.Any{timeline.Source},
	Excuses: []detect.Excuse{{Text: "an epoch is a number of steps here.", Excluded: sizesDiffer}},
	Judge:   judge,
}

func judge(c *detect.Case) detect.Verdict {
	if c.Loaders.Role() == timeline.Eval {
		return detect.NotApplicable("used for evaluation")
	}
	var left []*timeline.Pass
	passes := c.Passes()
	for _, p := range passes {
		if !p.Exhausted {
			left = append(left, p)
		}
	}
	switch {
	case len(left) > 0:
		reason := words.Of(len(left), len(passes), "pass")
		return detect.Found(reason, finding.Finding{Certainty: finding.Proven, Title: "The loop leaves " + reason + " early",
			Cost: fmt.Sprintf("%d batches in the first of them", left[0].Delivered), Fix: "for batch in loader: ...  # to its end"})
	case len(passes) < 2:
		return detect.CannotTell("one pass")
	}
	return detect.Clean(words.Count(len(passes), "pass") + " to the end")
}

// sizesDiffer: who counts steps takes as many each time.
func sizesDiffer(c *detect.Case, _ *finding.Finding) bool {
	for _, p := range c.Passes() {
		if p.Delivered != c.Passes()[0].Delivered {
			return true
		}
	}
	return false
}
