package report

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// page writes lines of a text report: wrapped, with or without colour and
// glyphs beyond ASCII. The first error stays; writing after it does nothing.
type page struct {
	w       io.Writer
	err     error
	width   int // in characters
	color   bool
	unicode bool
	printed map[string]string // texts of findings, and under which rule
}

type style string

const (
	plain  style = ""
	bold   style = "1"
	red    style = "1;31"
	yellow style = "1;33"
	green  style = "32"
	grey   style = "2"
)

func (p *page) paint(s style, text string) string {
	if !p.color || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// line writes one line as it is; text from a trace must have passed clean.
func (p *page) line(s string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(s, " "))
	}
}

// entry writes a label in a column of its own and the text beside it, wrapped.
func (p *page) entry(indent, column int, s style, label, text string) {
	pad := strings.Repeat(" ", indent)
	for _, l := range wrap(p.clean(text), max(p.width-indent-column, 20)) {
		p.line(pad + p.label(s, column, label) + l)
		label = ""
	}
}

// label fills its column; the blanks are not painted.
func (p *page) label(s style, column int, text string) string {
	return p.paint(s, text) + strings.Repeat(" ", max(column-len(text), 1))
}

// ascii replaces what reports write beyond ASCII. Names from the user's program
// stay as they are.
var ascii = strings.NewReplacer(
	"…", "...", "→", "->", "×", "x", "≥", ">=", "≤", "<=", "≈", "~", "–", "-", "—", "-", "·", "|", "µ", "u", "−", "-")

// clean makes text from a trace fit for a terminal: control characters, which
// could move the cursor or recolour it, are shown as escapes. Line breaks stay.
func (p *page) clean(text string) string {
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
		default: // format characters: direction, joiners
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	if p.unicode {
		return b.String()
	}
	return ascii.Replace(b.String())
}

// wrap breaks text at blanks into lines of at most width characters. Line
// breaks stay, and lines that continue an indented one are indented alike, so
// that code stays readable. A word longer than width gets a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	for _, full := range strings.Split(text, "\n") {
		body := strings.TrimLeft(full, " ")
		indent := full[:len(full)-len(body)]
		current := indent
		for _, word := range strings.Split(body, " ") {
			switch {
			case current == indent:
				current += word
			case utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) <= width:
				current += " " + word
			default:
				lines = append(lines, current)
				current = indent + word
			}
		}
		lines = append(lines, current)
	}
	return lines
}
