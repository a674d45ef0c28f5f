package analyze_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
)

// layers of this folder, the lowest first. A package imports only packages of
// lower layers: arrows point one way. A new package has a place here.
var layers = [][]string{
	{"collect", "finding", "words", "hash", "rng", "samplers"},
	{"evidence/digests", "evidence/bounded"},
	{"timeline"},
	{"stages"},
	{"evidence/*"},
	{"account", "accept", "orders", "reseed", "effects"},
	{"detect"},
	{"redraw"},
	{"detect/*"},
	{"."},
	{"report", "export/*"},
	{"export"},
}

// layerOf a package, by the most exact of the names that fit; -1: it has no
// place.
func layerOf(folder string) int {
	found, exact := -1, false
	for i, layer := range layers {
		for _, name := range layer {
			if fits, err := path.Match(name, folder); err == nil && fits && (found < 0 || !exact) {
				found, exact = i, name == folder
			}
		}
	}
	return found
}

func TestArrows(t *testing.T) {
	const module = "github.com/dptrace/dptrace/analyze"
	seen := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.Contains(file, "detecttest/") {
			return err
		}
		from := layerOf(path.Dir(file))
		if from < 0 {
			t.Errorf("%s has no layer: give its folder a place in layers", file)
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range source.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			folder, ours := strings.CutPrefix(name, module)
			if !ours {
				continue
			}
			seen++
			folder = path.Clean(strings.TrimPrefix(folder, "/"))
			if to := layerOf(folder); to < 0 || to >= from {
				t.Errorf("%s imports analyze/%s, which is no lower: move what it needs down", file, folder)
			}
			if spec.Name != nil {
				t.Errorf("%s calls analyze/%s %s: a package is called as its folder", file, folder, spec.Name.Name)
			}
		}
		return nil
	})
	if err != nil || seen < 100 {
		t.Errorf("%d imports seen: %v", seen, err)
	}
}
