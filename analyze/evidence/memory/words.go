package memory

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/traces"
)

// Seconds for people.
func Seconds(s float64) string {
	switch {
	case s < 9.95:
		return fmt.Sprintf("%.1f s", s)
	case s < 600:
		return fmt.Sprintf("%.0f s", s)
	case s < 2*3600:
		return fmt.Sprintf("%.0f min", s/60)
	}
	return fmt.Sprintf("%.1f h", s/3600)
}

// Percent of a share.
func Percent(share float64) string {
	switch p := 100 * share; {
	case p < 0.05:
		return "less than 0.1 %"
	case p < 9.95:
		return fmt.Sprintf("%.1f %%", p)
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// Names of containers, for a title.
func Names(extents []traces.Extent) string {
	switch len(extents) {
	case 0:
		return "the dataset" // their rows are lost
	case 1:
		return extents[0].Path
	case 2:
		return extents[0].Path + " and " + extents[1].Path
	}
	return fmt.Sprintf("%s and %d more containers", extents[0].Path, len(extents)-1)
}

// What the limit is, in words.
func (l Limit) What() string {
	if l.Scope == "cgroup" {
		return "the " + words.Bytes(l.Bytes) + " that the control group " + l.Path + " may use"
	}
	return "the " + words.Bytes(l.Bytes) + " of this machine"
}

// Class of a container without the module of builtins.
func Class(e traces.Extent) string { return strings.TrimPrefix(e.Class, "builtins.") }
