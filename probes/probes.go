// Package probes lists the probes: all that writes into a trace.
package probes

import (
	"github.com/dptrace/dptrace/probes/cow"
	"github.com/dptrace/dptrace/probes/files"
	"github.com/dptrace/dptrace/probes/hook"
	"github.com/dptrace/dptrace/probes/poll"
	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/process"
)

// List has one line for each folder that holds a probe.
var List = []*probe.Probe{
	&hook.Probe,
	&poll.Probe,
	&process.Probe,
	&cow.Probe,
	&files.Probe,
}
