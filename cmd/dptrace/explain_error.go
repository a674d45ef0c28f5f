package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/docs"
)

// howToRecord is for who has an error that no page explains.
const howToRecord = "record the run and look at the report: it names workers and ranks that died, and what was silently wrong before\n" +
	"  dptrace record -- python train.py"

// explainLog explains the error texts of a log.
func explainLog(w io.Writer, log io.Reader) error {
	if _, ok := terminal(log); ok {
		tell(os.Stderr, "paste the log, then press Ctrl-D")
	}
	found, err := docs.FindErrors(log)
	if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if len(found) == 0 {
		return fmt.Errorf("explain: no known error text in this log\n%s", howToRecord)
	}
	return explainError(w, found, true)
}

// explainError prints the page of the error text that says most, and names the others.
func explainError(w io.Writer, found []docs.Found, inLog bool) error {
	var b strings.Builder
	if inLog {
		fmt.Fprintf(&b, "%s\n\n", quoted(found[0]))
	}
	b.WriteString(found[0].Page.Text)
	if len(found) > 1 {
		b.WriteString("\n## Also in this text\n\n")
	}
	for _, f := range found[1:] {
		fmt.Fprintf(&b, "* `dptrace explain %s`: %s\n", f.Page.Name, f.Page.Summary)
		if inLog {
			fmt.Fprintf(&b, "  %s\n", quoted(f))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// quoted is where a text is in a log, and the line that it begins in, so that it cannot steer
// a terminal.
func quoted(f docs.Found) string {
	const most = 200
	text := []rune(f.Text)
	if len(text) > most {
		text = append(text[:most], []rune("...")...)
	}
	return fmt.Sprintf("line %s: %s", words.Number(int64(f.Line)), words.Printable(string(text)))
}
