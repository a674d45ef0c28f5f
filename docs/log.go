package docs

import (
	"bufio"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Found is an error text of which there is a page, and where it came first.
type Found struct {
	Page *ErrorPage
	Line int    // of the log, from 1
	Text string // of that line, as it was
}

// A log is looked at block by block: so much of it, squeezed, and the end of the
// block before, which holds what was cut.
const (
	blockSize = 1 << 20
	overlap   = 1 << 14
	// longest line that is looked at; what follows is left out.
	longestLine = 1 << 16
)

// FindErrors looks for the error texts of all pages in a log, and gives those that it
// holds, the most specific first. Memory does not grow with the log.
func FindErrors(log io.Reader) ([]Found, error) {
	var all []Found
	r := bufio.NewReaderSize(log, longestLine)
	block, number := &block{}, 0
	for {
		line, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
		if len(line) > 0 {
			number++
			block.add(number, string(line))
		}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		if err != nil || block.text.Len() >= blockSize {
			all = block.find(all)
		}
		if err != nil {
			break
		}
	}
	slices.SortStableFunc(all, func(a, b Found) int {
		return slices.Index(ErrorNames, a.Page.Name) - slices.Index(ErrorNames, b.Page.Name)
	})
	return all, nil
}

// block is some lines of a log.
type block struct {
	text  strings.Builder
	lines []lineAt
}

// add a line. Progress bars go back to its begin: what they print are lines of their own.
func (b *block) add(number int, line string) {
	for part := range strings.SplitSeq(line, "\r") {
		if s := squeezed(unprefixed(part)); s != "" {
			b.lines = append(b.lines, lineAt{b.text.Len(), number, strings.TrimSpace(part)})
			b.text.WriteString(s)
		}
	}
}

// find what is not found yet, and keep the end of the block.
func (b *block) find(found []Found) []Found {
	l := &squeezedLog{b.text.String(), b.lines}
	for i := range Errors {
		page := &Errors[i]
		if slices.ContainsFunc(found, func(f Found) bool { return f.Page == page }) {
			continue
		}
		first := -1
		for _, p := range page.Patterns {
			if at := p.find(l); at >= 0 && (first < 0 || at < first) {
				first = at
			}
		}
		if first >= 0 {
			line := l.line(first)
			found = append(found, Found{page, line.number, line.text})
		}
	}
	b.keep(l)
	return found
}

// keep whole lines at the end of a block.
func (b *block) keep(l *squeezedLog) {
	b.text.Reset()
	b.lines = nil
	for i, line := range l.lines {
		if len(l.text)-line.at <= overlap {
			for _, rest := range l.lines[i:] {
				rest.at -= line.at
				b.lines = append(b.lines, rest)
			}
			b.text.WriteString(l.text[line.at:])
			return
		}
	}
}

// prefixes that launchers, containers and terminals put before a line, and that come
// anew where a text is wrapped.
var (
	colours  = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	prefixes = regexp.MustCompile(`^(\s*(` + strings.Join([]string{
		`\[(default|rank|RANK|Rank )?\d+\]:`,    // torch.distributed, torchrun --tee, DeepSpeed
		`\[\d+(,\d+)?\](<std(err|out)>)?:?`,     // mpirun, line numbers
		`\d+:\s`,                                // srun --label
		`\([A-Za-z_][^()]{0,80}pid=\d+[^()]*\)`, // Ray
		`[\w.-]{1,60}\s+\|\s`,                   // docker compose
		`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(Z|[+-]\d\d:?\d\d)?(\s+std(err|out)\s+[FP])?\s`, // Kubernetes, docker logs -t
		`>\s`, `# `, // quoted in an issue
	}, "|") + `))+`)
)

func unprefixed(line string) string {
	if strings.IndexByte(line, 0x1b) >= 0 {
		line = colours.ReplaceAllString(line, "")
	}
	start := strings.TrimLeft(line, " \t")
	if start == "" || !strings.ContainsRune("[(>#0123456789", rune(start[0])) && !strings.Contains(start[:min(len(start), 70)], " | ") {
		return line // most are: this is ten times as fast as the expression
	}
	return line[len(prefixes.FindString(line)):]
}

// squeezed is a text without white space and the lines of boxes, in lower case; line ends
// and quotes that a log in JSON has escaped are as they were.
func squeezed(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, `\n`, ""), `\"`, `"`)
	return strings.Map(func(r rune) rune {
		switch {
		case r <= ' ', r > 0x7f && unicode.IsSpace(r), r >= 0x2500 && r <= 0x257f, r == '❱':
			return -1
		case r == '‘', r == '’':
			return '\''
		case r == '“', r == '”':
			return '"'
		}
		return unicode.ToLower(r)
	}, text)
}
