package dropped_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	dropped "github.com/dptrace/dptrace/analyze/detect/samples-dropped"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

func TestRecorded(t *testing.T) {
	detecttest.Golden(t, dropped.Rule.ID, func(run *traces.Run) ([]finding.Finding, []finding.Check, error) {
		result, err := analyze.Run(run, analyze.Rules)
		if err != nil {
			return nil, nil, err
		}
		return result.Findings, result.Checks, nil
	})
}
