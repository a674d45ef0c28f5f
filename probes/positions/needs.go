package positions

import "github.com/dptrace/dptrace/probes/probe"

var needs = []probe.Need{
	probe.Tracepoint("sys_enter", "shared-file-position: who moves the position of an inherited open file, and whose reads went astray; "+
		"else only that it is shared"),
}
