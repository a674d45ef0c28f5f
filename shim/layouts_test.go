package shim

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the layouts into PROTOCOL.md")

const protocolFile = "PROTOCOL.md"

// PROTOCOL.md has the layouts of layouts.py: the offset, type and name of each
// field of the header, and the format and names of each binary payload. What it
// says about them beside that is its own.
func TestProtocolHasTheLayouts(t *testing.T) {
	was, err := os.ReadFile(protocolFile)
	if err != nil {
		t.Fatal(err)
	}
	l := Binary()
	want, err := withLayouts(string(was), l)
	if err != nil {
		t.Fatal(err)
	}
	for field, values := range map[string][]string{"when": slices.Clone(l.Whens), "status": slices.Clone(l.Statuses)} {
		for i, value := range values {
			values[i] = fmt.Sprintf("%d %s", i, value)
		}
		if text := field + ": " + strings.Join(values, ", "); !strings.Contains(want, text) {
			t.Errorf("%s does not say %q", protocolFile, text)
		}
	}
	if want == string(was) {
		return
	}
	if *update {
		if err := os.WriteFile(protocolFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	old := strings.Split(string(was), "\n")
	for line := range strings.SplitSeq(want, "\n") {
		if !slices.Contains(old, line) {
			t.Errorf("%s is out of step with %s (go test ./shim -update):\n%s", protocolFile, layoutsFile, line)
		}
	}
	t.Errorf("%s has not the lines of %s", protocolFile, layoutsFile)
}

var (
	headerRow  = regexp.MustCompile(`(?m)^\| \d+ \| [a-z0-9 ]+ \| ([a-z_0-9]+)(.*) \| (hook|recorder) \|$`)
	typeRow    = regexp.MustCompile(`(?m)^\| (\d+) \| ([a-z_]+) \| (.*?) \| (.*) \|$`)
	layoutText = regexp.MustCompile("^`<[a-zA-Z0-9]+`: [a-z0-9_ ]+")
	recordText = regexp.MustCompile("(?m)^`<[a-zA-Z0-9]+`: [a-z0-9_ ]+(; \\d+ bytes)")
	typeNames  = map[byte]string{'s': "bytes", 'H': "u16", 'I': "u32", 'i': "i32", 'Q': "u64", 'q': "i64"}
)

// withLayouts is the text with the layouts' own part of it written anew. Fields
// and types that are new get rows without a word about them.
func withLayouts(text string, l Layouts) (string, error) {
	rows := headerRow.FindAllStringSubmatch(text, -1)
	if rows == nil {
		return "", fmt.Errorf("%s has no table of the header", protocolFile)
	}
	said := map[string][]string{} // what follows a field's name, and who writes it
	for _, r := range rows {
		said[r[1]] = r[2:]
	}
	var header []string
	for _, f := range l.Header.Fields {
		form, rest := typeNames[f.Form], said[f.Name]
		if f.Form == 's' {
			form = fmt.Sprintf("%d %s", f.Size, form)
		}
		if rest == nil {
			rest = []string{"", "hook"}
		}
		header = append(header, fmt.Sprintf("| %d | %s | %s%s | %s |", f.Offset, form, f.Name, rest[0], rest[1]))
	}
	first, last := headerRow.FindStringIndex(text), headerRow.FindAllStringIndex(text, -1)[len(rows)-1]
	text = text[:first[0]] + strings.Join(header, "\n") + text[last[1]:]
	text = recordText.ReplaceAllString(text, names(l.Record)+fmt.Sprintf("; %d bytes", l.Record.Size))
	return withTypes(text, l)
}

func withTypes(text string, l Layouts) (string, error) {
	at := strings.Index(text, "\n## Payloads")
	rows := typeRow.FindAllStringSubmatchIndex(text[at:], -1)
	if at < 0 || rows == nil {
		return "", fmt.Errorf("%s has no table of the payloads", protocolFile)
	}
	said := map[string][]string{}
	for _, r := range typeRow.FindAllStringSubmatch(text[at:], -1) {
		said[r[2]] = r[3:]
	}
	var table []string
	for i, name := range l.Types {
		rest := said[name]
		if rest == nil {
			rest = []string{"json", name}
		}
		payload := rest[0]
		if layout, ok := l.Payloads[name]; ok {
			payload = names(layout) + layoutText.ReplaceAllString(payload, "")
		} else if layoutText.MatchString(payload) {
			payload = "json"
		}
		table = append(table, fmt.Sprintf("| %d | %s | %s | %s |", i, name, payload, rest[1]))
	}
	return text[:at+rows[0][0]] + strings.Join(table, "\n") + text[at+rows[len(rows)-1][1]:], nil
}

func names(l Layout) string {
	var all []string
	for _, f := range l.Fields {
		all = append(all, f.Name)
	}
	return "`" + l.Format() + "`: " + strings.Join(all, " ")
}

// A layout that is not understood must not be guessed.
func TestParseLayoutsRefuses(t *testing.T) {
	text, err := files.ReadFile(layoutsFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"an unknown format":           {`("first", "I")`, `("first", "x")`},
		"a field without a format":    {`("first", "I")`, `("first",)`},
		"a count of numbers":          {`("first", "I")`, `("first", "2I")`},
		"a type too few":              {"COPY, CALL_SITE)", "COPY)"},
		"a payload of no type":        {"DIGEST_FIELDS", "DIGESTS_FIELDS"},
		"a statement of another kind": {"FLAG_ENDED = 1", "FLAG_ENDED: int"},
		"a name that is none":         {"STATUS_GRAD = 256", "GRAD = 256"},
		"a header longer than it may": {"HEADER_BYTES = 128", "HEADER_BYTES = 64"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := strings.Replace(string(text), change[0], change[1], 1)
			if broken == string(text) {
				t.Fatalf("%q is not in %s", change[0], layoutsFile)
			}
			if _, err := parseLayouts(broken); err == nil {
				t.Error("it was understood")
			}
		})
	}
}
