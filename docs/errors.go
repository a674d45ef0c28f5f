package docs

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed errors/*.md
var errorPages embed.FS

// ErrorNames are the pages of error texts, in errors/, the most specific first: a text that says
// what happened comes before one that only says that something did. Where a log
// holds several, the first of this list is explained.
var ErrorNames = []string{
	"shared-memory-full",
	"worker-killed-signal-9",
	"worker-crashed",
	"cuda-after-fork",
	"too-many-open-files",
	"cannot-pickle",
	"unequal-samples",
	"batch-of-one",
	"index-out-of-range",
	"normalize-before-tensor",
	"sampler-and-shuffle",
	"shared-file-handle",
	"iterable-longer-than-told",
	"more-workers-than-shards",
	"no-space-left",
	"loader-timeout",
	"worker-exited",
	"worker-connection-lost",
	"collective-timeout",
	"fork-with-threads",
	"leftover-shared-memory",
	"evaluation-padded",
	"rescaled-twice",
	"worker-number",
}

// ErrorPage explains some error texts.
type ErrorPage struct {
	Name     string
	Patterns []Pattern // any of which is in the text
	Summary  string    // one sentence
	Text     string    // the page, in Markdown, without the patterns
}

// Errors is the pages of error texts, in the order of ErrorNames.
var Errors = readErrors()

func readErrors() []ErrorPage {
	var all []ErrorPage
	for _, name := range ErrorNames {
		b, err := errorPages.ReadFile("errors/" + name + ".md")
		if err != nil {
			panic(err) // the folder is part of the program
		}
		page, err := parseError(name, string(b))
		if err != nil {
			panic(err) // and was tested
		}
		all = append(all, page)
	}
	return all
}

// parseError reads a page: the patterns in a comment, one a line, the name as the
// title, the summary as the first paragraph.
func parseError(name, page string) (ErrorPage, error) {
	head, text, ok := strings.Cut(page, "\n-->\n")
	list, begins := strings.CutPrefix(head, "<!-- texts\n")
	if !ok || !begins {
		return ErrorPage{}, fmt.Errorf("docs/errors/%s.md: does not begin with a comment of its texts", name)
	}
	e := ErrorPage{Name: name, Text: text}
	for line := range strings.Lines(list) {
		p, err := newPattern(line)
		if err != nil {
			return ErrorPage{}, fmt.Errorf("docs/errors/%s.md: %w", name, err)
		}
		e.Patterns = append(e.Patterns, p)
	}
	summary, _, _ := strings.Cut(strings.TrimPrefix(text, "# "+name+"\n\n"), "\n\n")
	e.Summary = strings.Join(strings.Fields(summary), " ")
	return e, nil
}
