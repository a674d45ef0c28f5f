package pprof

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable makes text from a trace fit for a terminal, where `go tool pprof`
// prints it as it is: what could move the cursor or recolour it is shown as an
// escape.
func printable(text string) string {
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for i, n := 0, 0; i < len(text); i += n {
		var r rune
		r, n = utf8.DecodeRuneInString(text[i:])
		switch {
		case !hidden(r):
			b.WriteString(text[i : i+n])
		case n == 1: // ASCII, or no UTF-8
			fmt.Fprintf(&b, `\x%02x`, text[i])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

func hidden(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) }
