package crash_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	crash "github.com/dptrace/dptrace/analyze/detect/swallowed-crash"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

func TestRecorded(t *testing.T) {
	detecttest.Golden(t, crash.Rule.ID, func(run *traces.Run) ([]finding.Finding, []finding.Check, error) {
		result, err := analyze.Run(run, analyze.Rules)
		if err != nil {
			return nil, nil, err
		}
		return result.Findings, result.Checks, nil
	})
}
