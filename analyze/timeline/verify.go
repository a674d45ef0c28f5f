package timeline

import "strings"

// RecordAgain is the command that records the same run once more.
func (t *Timeline) RecordAgain() string {
	command := "python ..."
	if len(t.Command) > 0 {
		command = strings.Join(t.Command, " ")
	}
	return "dptrace record -- " + command
}

// Verify says how to see that what a rule found at a loader is mended.
func (t *Timeline) Verify(rule string) string {
	return "Record again: " + t.RecordAgain() + " and see that the report lists " + rule + " as clean for this loader."
}
