package timeline

import (
	"cmp"
	"strings"
)

// CommandLine is the command that was recorded, as a shell takes it; "" it is not known.
func (t *Timeline) CommandLine() string {
	var words []string
	for _, word := range t.Command {
		if word == "" || strings.ContainsFunc(word, special) {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// special reports whether a shell may take a character for something else; all but ASCII is left as it is.
func special(r rune) bool {
	return r < 0x80 && !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%", r)
}

// RecordAgain is the command that records the same run once more.
func (t *Timeline) RecordAgain() string {
	return "dptrace record -- " + cmp.Or(t.CommandLine(), "python ...")
}

// Verify says how to see that what a rule found at a loader is mended.
func (t *Timeline) Verify(rule string) string {
	return "Record again: " + t.RecordAgain() + " and see that the report lists " + rule + " as clean for this loader."
}
