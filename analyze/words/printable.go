package words

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text that we did not write fit for a terminal: control and
// format characters, which could move the cursor, recolour it or turn the
// direction of writing, are shown as escapes. Line breaks stay, tabs are four
// blanks.
func Printable(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\t':
			b.WriteString("    ")
		case r == '\n' || unicode.IsGraphic(r):
			b.WriteString(text[i : i+n])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff: // format characters: direction, joiners
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	return b.String()
}
