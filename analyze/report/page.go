package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/dptrace/dptrace/analyze/words"
)

// page writes lines of a text report: wrapped, with or without colour and
// glyphs beyond ASCII. The first error stays; writing after it does nothing.
type page struct {
	Options
	w       io.Writer
	err     error
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
	if !p.Color || s == plain || text == "" {
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
	for _, l := range wrap(p.clean(text), max(p.Width-indent-column, 20)) {
		p.line(pad + p.label(s, column, label) + l)
		label = ""
	}
}

// list writes lines beside one label.
func (p *page) list(s style, label string, lines []string) {
	for _, l := range lines {
		p.entry(0, summaryColumn, s, label, l)
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

// clean makes text from a trace fit for a terminal, and for one without
// characters beyond ASCII.
func (p *page) clean(text string) string {
	text = words.Printable(text)
	if p.Unicode {
		return text
	}
	return ascii.Replace(text)
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
