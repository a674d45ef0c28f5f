package traces

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// TableInfo describes a table.
type TableInfo struct {
	Name    string
	Doc     string
	Columns []ColumnInfo
}

// ColumnInfo describes a column. Type is Arrow's, as pyarrow prints it.
type ColumnInfo struct{ Name, Type, Doc string }

// Tables describes all tables, in the order of tables.go. The texts are its
// comments.
func Tables() []TableInfo {
	list := make([]TableInfo, len(described()))
	for i, t := range described() {
		t.Columns = slices.Clone(t.Columns)
		list[i] = t
	}
	return list
}

//go:embed tables.go
var tablesSource string

var (
	structLine = regexp.MustCompile(`^type (\w+) struct \{`)
	columnLine = regexp.MustCompile("^\t\\w+ +\\S+ +`col:\"(\\w+)\"`(?: +// (.*))?")
	embedLine  = regexp.MustCompile(`^\tHead +// (.*)`)
)

var described = sync.OnceValue(func() []TableInfo {
	texts, columns := comments(tablesSource)
	list := make([]TableInfo, len(tables))
	for i, t := range tables {
		list[i] = TableInfo{Name: t.name, Doc: texts[t.typ.Name()]}
		for _, c := range t.columns {
			doc := columns[t.typ.Name()+"."+c.name]
			if doc == "" {
				doc = columns["Head."+c.name]
			}
			list[i].Columns = append(list[i].Columns, ColumnInfo{c.name, c.kind.String(), doc})
		}
	}
	return list
})

// comments collects those of the structs in a gofmted file, by struct, and of
// their columns, by struct and column: above the field or behind it. What is said
// of an embedded Head is said of its ts_ns or of its proc.
func comments(source string) (structs, columns map[string]string) {
	structs, columns = map[string]string{}, map[string]string{}
	var comment []string
	current := ""
	for line := range strings.Lines(source) {
		line = strings.TrimRight(line, "\n")
		if text, ok := strings.CutPrefix(strings.TrimPrefix(line, "\t"), "// "); ok {
			comment = append(comment, text)
			continue
		}
		if m := structLine.FindStringSubmatch(line); m != nil {
			current = m[1]
			structs[current] = strings.Join(comment, " ")
		} else if m := columnLine.FindStringSubmatch(line); m != nil {
			columns[current+"."+m[1]] = strings.TrimSpace(strings.Join(append(comment, m[2]), " "))
		} else if m := embedLine.FindStringSubmatch(line); m != nil {
			if text, ok := strings.CutPrefix(m[1], "ts_ns: "); ok {
				columns[current+".ts_ns"] = text
			} else {
				columns[current+".proc"] = m[1]
			}
		}
		comment = nil
	}
	return structs, columns
}
