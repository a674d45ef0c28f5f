package traces

import (
	"encoding/binary"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the tables of FORMAT.md")

const (
	tablesBegin = "<!-- tables: written from tables.go by go test ./traces -run Format -update -->\n"
	tablesEnd   = "<!-- end of tables -->\n"
)

// FORMAT.md has the tables and columns of tables.go, with their types.
func TestFormatHasAllTables(t *testing.T) {
	var b strings.Builder
	for _, table := range Tables() {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n| column | type | meaning |\n| --- | --- | --- |\n", table.Name, table.Doc)
		for _, c := range table.Columns {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Name, c.Type, strings.ReplaceAll(c.Doc, "|", "\\|"))
		}
		b.WriteString("\n")
	}
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), tablesBegin)
	old, tail, ok2 := strings.Cut(rest, tablesEnd)
	if !ok || !ok2 {
		t.Fatal("FORMAT.md has lost the marks of its tables")
	}
	want := "\n" + b.String()
	if *update {
		os.WriteFile("FORMAT.md", []byte(head+tablesBegin+want+tablesEnd+tail), 0o644)
		return
	}
	if old != want {
		t.Error("the tables of FORMAT.md are not those of tables.go: go test ./traces -run Format -update")
	}
}

// Every struct of tables.go is a table, and every column says what it means.
func TestAllStructsAreTables(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "tables.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(f, func(node ast.Node) bool {
		if s, ok := node.(*ast.TypeSpec); ok && s.Name.Name != "Head" {
			n++
			if tableOfName[snake(s.Name.Name)] == nil {
				t.Errorf("%s is not in the list of tables", s.Name)
			}
		}
		return true
	})
	if n != len(tables) || n == 0 {
		t.Errorf("%d structs, %d tables", n, len(tables))
	}
	for _, table := range Tables() {
		if table.Doc == "" {
			t.Errorf("%s has no comment", table.Name)
		}
		for _, c := range table.Columns {
			if c.Doc == "" || c.Name == "" {
				t.Errorf("%s.%s has no comment", table.Name, c.Name)
			}
		}
	}
}

// Both pages describe the same bytes.
func TestGeneratorStatesAgree(t *testing.T) {
	section := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, s, ok := strings.Cut(string(b), "## Generator states\n")
		if !ok {
			t.Fatalf("%s has no section on generator states", file)
		}
		s, _, _ = strings.Cut(s, "\n## ")
		var rows []string
		for line := range strings.Lines(s) {
			if strings.HasPrefix(line, "|") {
				rows = append(rows, strings.TrimSpace(line))
			}
		}
		return strings.Join(rows, "\n")
	}
	ours, theirs := section("FORMAT.md"), section("../shim/PROTOCOL.md")
	if ours != theirs || ours == "" {
		t.Errorf("FORMAT.md:\n%s\nshim/PROTOCOL.md:\n%s", ours, theirs)
	}
}

// The worked example of FORMAT.md is what the writer writes.
func TestFormatExample(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x.dptrace")
	w, err := Create(dir, "p", Options{RunID: "r", BootID: "b"})
	if err != nil {
		t.Fatal(err)
	}
	w.Append(Exit{Head: Head{TsNS: 1000, Proc: 2}, ExitCode: 3, Source: "wait"})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(w.Dir(), "exit.0000.arrows"))
	if err != nil {
		t.Fatal(err)
	}
	idx, err := os.ReadFile(filepath.Join(w.Dir(), "exit.0000.idx"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	le := binary.LittleEndian
	for i := range len(idx) / idxSize {
		r := idx[idxSize*i:][:idxSize]
		fmt.Fprintf(&b, "exit.0000.idx, record %d\n", i)
		for _, f := range []struct {
			at, size int
			what     string
		}{
			{0, 8, fmt.Sprintf("offset %d", le.Uint64(r))}, {8, 4, fmt.Sprintf("length %d", le.Uint32(r[8:]))},
			{12, 4, fmt.Sprintf("rows %d", le.Uint32(r[12:]))}, {16, 8, fmt.Sprintf("smallest ts_ns %d", le.Uint64(r[16:]))},
			{24, 8, fmt.Sprintf("greatest ts_ns %d", le.Uint64(r[24:]))}, {32, 8, fmt.Sprintf("seq %d", le.Uint64(r[32:]))},
			{40, 4, "CRC-32C of the message"}, {44, 4, "CRC-32C of the record"},
		} {
			fmt.Fprintf(&b, "  %04x  %-24x  %s\n", idxSize*i+f.at, r[f.at:f.at+f.size], f.what)
		}
	}
	b.WriteString("exit.0000.arrows\n")
	second := le.Uint64(idx[idxSize:])
	for _, at := range []uint64{0, second} {
		fmt.Fprintf(&b, "  %04x  %x %x %x …\n", at, data[at:at+4], data[at+4:at+8], data[at+8:at+16])
	}
	fmt.Fprintf(&b, "  %04x  %x  end mark\n", len(data)-8, data[len(data)-8:])
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(page), "Worked example")
	_, example, _ = strings.Cut(example, "```\n")
	example, _, _ = strings.Cut(example, "```")
	if *update {
		os.WriteFile("FORMAT.md", []byte(strings.Replace(string(page), example+"```", b.String()+"```", 1)), 0o644)
		return
	}
	if diff := cmp.Diff(b.String(), example); diff != "" {
		t.Error("the example of FORMAT.md is not what the writer writes:", diff)
	}
}
