package disagree_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	disagree "github.com/dptrace/dptrace/analyze/detect/ranks-disagree"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

func TestRecorded(t *testing.T) {
	detecttest.Golden(t, disagree.Rule.ID, func(run *traces.Run) ([]finding.Finding, []finding.Check, error) {
		result, err := analyze.Run(run, analyze.Rules)
		if err != nil {
			return nil, nil, err
		}
		return result.Findings, result.Checks, nil
	})
}
