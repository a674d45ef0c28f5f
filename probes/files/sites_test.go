package files_test

import (
	"testing"

	"github.com/dptrace/dptrace/probes/files"
	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/probetest"
)

func TestPyProcess(t *testing.T) { probetest.SameFields(t, probe.PyProcess{}, files.PyProcess{}) }
