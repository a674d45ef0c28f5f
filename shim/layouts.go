package shim

import (
	"fmt"
	"strings"
	"sync"
)

// layoutsFile is where the binary layouts of PROTOCOL.md are typed, for the
// hook, for the recorder and for their tests.
const layoutsFile = "python/dptrace_hook/record/layouts.py"

// Field is a number, or some bytes, in a binary layout.
type Field struct {
	Name   string
	Form   byte // as Python's module struct calls it: s, H, I, i, Q or q
	Offset int
	Size   int
}

// Layout is fields without gaps, little endian.
type Layout struct {
	Fields []Field
	Size   int
}

// Format is how Python's module struct spells it.
func (l Layout) Format() string {
	var b strings.Builder
	b.WriteByte('<')
	for _, f := range l.Fields {
		if f.Form == 's' {
			fmt.Fprintf(&b, "%d", f.Size)
		}
		b.WriteByte(f.Form)
	}
	return b.String()
}

// Layouts is all that the hook and the recorder agree on.
type Layouts struct {
	HeaderBytes int
	Header      Layout
	Record      Layout
	Types       []string // of records, by their number
	Payloads    map[string]Layout
	Whens       []string          // what the numbers of `when` mean
	Statuses    []string          // and of `status`
	Added       map[string]uint32 // bits that are added to status
	Functions   []string          // what the numbers of `function` mean, of a copy
	Copied      map[string]uint32 // bits that are added to function
	Flags       map[string]uint32
}

// Binary gives the layouts, which are the hook's own: its text is read once.
var Binary = sync.OnceValue(func() Layouts {
	text, err := files.ReadFile(layoutsFile)
	if err == nil {
		var l Layouts
		if l, err = parseLayouts(string(text)); err == nil {
			return l
		}
	}
	panic(err) // it is part of this binary
})

// parseLayouts reads the statements of layouts.py that are tables or numbers.
// What it does not know ends the file: nothing is guessed.
func parseLayouts(text string) (l Layouts, err error) {
	l.Payloads, l.Flags, l.Added, l.Copied = map[string]Layout{}, map[string]uint32{}, map[string]uint32{}, map[string]uint32{}
	code, _, _ := strings.Cut(text, "\ndef ")
	_, code, _ = strings.Cut(code, "import Struct\n")
	for _, s := range statements(code) {
		name, value, ok := strings.Cut(s, " = ")
		if !ok {
			return l, fmt.Errorf("%s: %q is no assignment", layoutsFile, s)
		}
		if err := l.assign(name, value); err != nil {
			return l, fmt.Errorf("%s: %s: %w", layoutsFile, name, err)
		}
	}
	return l, l.check()
}

func (l *Layouts) assign(name, value string) (err error) {
	table, isTable := strings.CutSuffix(name, "_FIELDS")
	flag, isFlag := strings.CutPrefix(name, "FLAG_")
	added, isAdded := strings.CutPrefix(name, "STATUS_")
	copied, isCopied := strings.CutPrefix(name, "COPY_")
	switch {
	case strings.HasPrefix(name, "("): // the types
		l.Types = strings.Split(strings.ToLower(strings.NewReplacer("(", "", ")", "", " ", "").Replace(name)), ",")
		if value != fmt.Sprintf("range(%d)", len(l.Types)) {
			err = fmt.Errorf("%d types of %s", len(l.Types), value)
		}
	case table == "HEADER" && isTable:
		l.Header, err = parseFields(value)
	case table == "RECORD" && isTable:
		l.Record, err = parseFields(value)
	case isTable:
		l.Payloads[strings.ToLower(table)], err = parseFields(value)
	case name == "WHEN_VALUES":
		l.Whens = texts(value)
	case name == "STATUS_VALUES":
		l.Statuses = texts(value)
	case name == "FUNCTION_VALUES":
		l.Functions = texts(value)
	case isFlag:
		l.Flags[strings.ToLower(flag)], err = bit(value)
	case name == "HEADER_BYTES":
		_, err = fmt.Sscan(value, &l.HeaderBytes)
	case isAdded:
		l.Added[strings.ToLower(added)], err = bit(value)
	case isCopied:
		l.Copied[strings.ToLower(copied)], err = bit(value)
	default:
		err = fmt.Errorf("it is no layout")
	}
	return err
}

func bit(value string) (b uint32, err error) {
	_, err = fmt.Sscan(value, &b)
	return b, err
}

func (l *Layouts) check() error {
	known := map[string]bool{}
	for _, t := range l.Types {
		known[t] = true
	}
	for name := range l.Payloads {
		if !known[name] {
			return fmt.Errorf("%s: no record has the type %q", layoutsFile, name)
		}
	}
	if l.Header.Size == 0 || l.Header.Size > l.HeaderBytes || l.Record.Size == 0 || len(l.Whens) == 0 || len(l.Statuses) == 0 ||
		l.Added["grad"] == 0 || len(l.Functions) == 0 || l.Copied["main"] == 0 {
		return fmt.Errorf("%s: a table is missing", layoutsFile)
	}
	return nil
}

// statements are the lines of code, those joined that lie in one pair of
// brackets, without comments.
func statements(code string) (all []string) {
	var s strings.Builder
	open := 0
	for line := range strings.Lines(code) {
		line, _, _ = strings.Cut(line, "#")
		s.WriteString(strings.TrimSpace(line))
		open += strings.Count(line, "(") - strings.Count(line, ")")
		if open == 0 && s.Len() > 0 {
			all = append(all, s.String())
			s.Reset()
		}
	}
	return all
}

var sizes = map[byte]int{'s': 1, 'H': 2, 'I': 4, 'i': 4, 'Q': 8, 'q': 8}

// parseFields reads (("name", "form"),("name", "form"),).
func parseFields(value string) (l Layout, err error) {
	all := texts(value)
	if len(all)%2 != 0 || len(all) == 0 {
		return l, fmt.Errorf("%q is no table of fields", value)
	}
	for i := 0; i < len(all); i += 2 {
		f := Field{Name: all[i], Offset: l.Size}
		count := 1
		if form := all[i+1]; len(form) == 1 {
			f.Form = form[0]
		} else if _, err := fmt.Sscanf(form, "%d%c", &count, &f.Form); err != nil || f.Form != 's' {
			return l, fmt.Errorf("%s: %q is no format", f.Name, form)
		}
		if f.Size = count * sizes[f.Form]; f.Size == 0 {
			return l, fmt.Errorf("%s: a field cannot be %q", f.Name, f.Form)
		}
		l.Fields = append(l.Fields, f)
		l.Size += f.Size
	}
	return l, nil
}

// texts are the quoted texts in a value.
func texts(value string) (all []string) {
	for i, part := range strings.Split(value, `"`) {
		if i%2 == 1 {
			all = append(all, part)
		}
	}
	return all
}
