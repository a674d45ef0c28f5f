package digests

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// TestNames: the bits of a kind are those that the hook writes.
func TestNames(t *testing.T) {
	source, err := os.ReadFile("../../../shim/python/dptrace_hook/read/sample.py")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^([A-Z, ]+) = 1, 2, 4, 8, 16, 32, 64, 128\b`).FindSubmatch(source)
	if m == nil {
		t.Fatal("sample.py does not say what the bits are")
	}
	ours := []struct {
		name string
		kind Kind
	}{{"ALL", All}, {"SOME", Some}, {"LITTLE", Little}, {"STRINGS", Strings}, {"INTEGERS", Integers}, {"LEFT", Left}, {"FOLLOWS", Follows}, {"BRIEF", Brief}}
	for i, name := range strings.Split(string(m[1]), ", ") {
		if i >= len(ours) || ours[i].name != name || ours[i].kind != 1<<i {
			t.Errorf("bit %d is %s", i, name)
		}
	}
}

// TestKinds: what each kind of digest is good for.
func TestKinds(t *testing.T) {
	some := Sum{1}
	for _, c := range []struct {
		kind                       Kind
		tells, whole, empty, texts bool
	}{
		{All, true, true, false, false},
		{All | Strings, true, true, false, true},
		{All | Integers, true, true, false, false},
		{Some | Strings, true, false, false, true},
		{All | Little, false, false, true, false},
		{All | Left, false, false, false, false},
		{All | Follows, true, true, false, false},
		{0, false, false, false, false},
		{All | Some, true, false, false, false}, // of no hook of ours
		{255, false, false, true, true},
	} {
		d := Digest{Meta: some, Kind: c.kind}
		if d.Tells() != c.tells || d.Whole() != c.whole || d.Empty() != c.empty || d.Texts() != c.texts || !d.Labelled() || d.Follows() != (c.kind&Follows != 0) {
			t.Errorf("%b: %v, %v, %v, %v", c.kind, d.Tells(), d.Whole(), d.Empty(), d.Texts())
		}
	}
	if d := (Digest{Kind: All | Strings}); d.Texts() || d.Labelled() {
		t.Error("zeros are a text")
	}
}

// TestSame: only what was read in the same way is compared.
func TestSame(t *testing.T) {
	one, other := Sum{1}, Sum{2}
	for _, c := range []struct {
		a, b     Digest
		same, ok bool
	}{
		{Digest{Content: one, Meta: one, Kind: All}, Digest{Content: one, Meta: other, Kind: All}, true, true},
		{Digest{Content: one, Meta: one, Kind: All}, Digest{Content: other, Meta: one, Kind: All}, false, true},
		{Digest{Content: one, Meta: one, Kind: Some}, Digest{Content: one, Meta: one, Kind: Some}, true, true},
		{Digest{Content: one, Meta: one, Kind: Some}, Digest{Content: one, Meta: one, Kind: All}, false, false},
		{Digest{Content: one, Meta: one, Kind: All | Little}, Digest{Content: one, Meta: one, Kind: All | Little}, false, false},
		{Digest{Content: one, Meta: one, Kind: All | Left}, Digest{Content: one, Meta: one, Kind: All}, false, false},
	} {
		if same, ok := c.a.Same(&c.b); same != c.same || ok != c.ok {
			t.Errorf("%v and %v: %v, %v", c.a, c.b, same, ok)
		}
	}
}

func row(n int) *traces.Digest {
	r := &traces.Digest{}
	for i := range n {
		r.Positions, r.Indices, r.Kinds = append(r.Positions, int64(i)), append(r.Indices, int64(10*i)), append(r.Kinds, byte(All))
		r.Contents, r.Metas = append(r.Contents, slices.Repeat([]byte{byte(i)}, 16)...), append(r.Metas, slices.Repeat([]byte{byte(i + 1)}, 16)...)
	}
	return r
}

// TestOf: the samples of a row, and rows whose columns do not fit together.
func TestOf(t *testing.T) {
	all := slices.Collect(Of(row(3)))
	if len(all) != 3 || !reflect.DeepEqual(all[2], Sample{Digest{Content: Sum(slices.Repeat([]byte{2}, 16)), Meta: Sum(slices.Repeat([]byte{3}, 16)), Kind: All}, 2, 20}) {
		t.Errorf("%+v", all)
	}
	r := row(2)
	r.Indices = nil
	if all := slices.Collect(Of(r)); len(all) != 2 || all[1].Index != -1 || all[1].Position != 1 {
		t.Errorf("without indices: %+v", all)
	}
	for what, change := range map[string]func(*traces.Digest){
		"none":               func(r *traces.Digest) { *r = traces.Digest{} },
		"no positions":       func(r *traces.Digest) { r.Positions = nil },
		"an index less":      func(r *traces.Digest) { r.Indices = r.Indices[1:] },
		"a kind more":        func(r *traces.Digest) { r.Kinds = append(r.Kinds, 1) },
		"half of a content":  func(r *traces.Digest) { r.Contents = r.Contents[8:] },
		"no metas":           func(r *traces.Digest) { r.Metas = nil },
		"contents too many":  func(r *traces.Digest) { r.Contents = append(r.Contents, make([]byte, 16)...) },
		"indices alone":      func(r *traces.Digest) { *r = traces.Digest{Indices: []int64{1}} },
		"kinds are missing":  func(r *traces.Digest) { r.Kinds = nil },
		"positions too many": func(r *traces.Digest) { r.Positions = append(r.Positions, 9) },
	} {
		r := row(3)
		change(r)
		for s := range Of(r) {
			t.Errorf("%s: %+v", what, s)
		}
	}
	for range Of(row(3)) { // whoever has seen enough may go
		break
	}
}

// TestRows: a row of the batch is known where it was looked for and is there.
func TestRows(t *testing.T) {
	r := row(3)
	r.RowKinds, r.Rows = []byte{byte(All), 0, byte(Some)}, slices.Repeat([]byte{7}, 48)
	r.Counts = []byte{2, 0, 1}
	r.Parts = append(append(slices.Repeat([]byte{0}, 7), 1), slices.Repeat([]byte{5, 0, 0, 0, 0, 0, 0, 0}, 2)...)
	r.Names = "x,meta.time"
	all := slices.Collect(Of(r))
	if len(all) != 3 || !all[0].Rowed.Known() || all[1].Rowed.Known() || !all[1].Rowed.Sought {
		t.Fatalf("%+v", all)
	}
	if same, ok := all[0].SameRow(&all[2].Digest); same || ok {
		t.Error("a row and pieces of one are compared")
	}
	if same, ok := all[0].SameRow(&all[0].Digest); !same || !ok {
		t.Error("a row is not like itself")
	}
	if _, ok := all[0].SameRow(&all[1].Digest); ok {
		t.Error("what is not known is compared")
	}
	if p := all[0].Parts; len(p) != 2 || p[0] != 1<<56 || p[0].Type() != Array || !p[0].Carries() || p[1].Type() != Text || !p[1].Pieces() {
		t.Errorf("%x", p)
	}
	if len(all[1].Parts) != 0 || !slices.Equal(all[2].Parts, []Part{5}) || !slices.Equal(Names(r), []string{"x", "meta.time"}) {
		t.Errorf("%+v", all)
	}
	r.Counts[0] = 3 // more than there are
	if all := slices.Collect(Of(r)); len(all) != 3 || all[0].Parts != nil || !all[0].Rowed.Known() {
		t.Errorf("%+v", all)
	}
	r.Rows = r.Rows[1:]
	if all := slices.Collect(Of(r)); len(all) != 3 || all[0].Rowed.Sought {
		t.Errorf("%+v", all)
	}
}
