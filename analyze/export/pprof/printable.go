package pprof

import (
	"strings"

	"github.com/dptrace/dptrace/analyze/words"
)

// blanks are escaped too: a name in a profile is one line of one column.
var blanks = strings.NewReplacer("\n", `\x0a`, "\t", `\x09`)

// printable makes text from a trace fit for a terminal, where `go tool pprof`
// prints it as it is.
func printable(text string) string { return words.Printable(blanks.Replace(text)) }
