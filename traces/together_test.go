package traces

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// recorded writes a part that was recorded for some seconds, on a machine that
// had been up for 100 s at second 0.
func recorded(t *testing.T, trace, name, runID string, from, to int64, sealed bool) {
	t.Helper()
	const second = int64(1e9)
	w, err := Create(trace, name, Options{RunID: runID, BootID: "boot of " + name[:1]})
	if err != nil {
		t.Fatal(err)
	}
	if from >= 0 {
		w.Append(Meta{Head{TsNS: (100 + from) * second}, "started_ns", strconv.FormatInt((1_000_000+from)*second, 10)})
	}
	w.Append(Host{Head: Head{TsNS: (100 + to) * second}})
	end := w.Close
	if sealed {
		end = w.Seal
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
}

// told is the recordings, each as the names of its parts.
func told(recordings [][]*Part) []string {
	var all []string
	for _, parts := range recordings {
		var names []string
		for _, p := range parts {
			names = append(names, p.Name)
		}
		all = append(all, strings.Join(names, " "))
	}
	return all
}

func TestRecordings(t *testing.T) {
	type part struct {
		name, run string
		from, to  int64
	}
	for name, tc := range map[string]struct {
		parts []part
		want  []string
	}{
		"ranks":                          {[]part{{"a1", "r", 0, 9}, {"b1", "r", 1, 9}, {"b2", "r", 2, 3}}, []string{"a1 b1 b2"}},
		"one after the other, by others": {[]part{{"a1", "r", 0, 3}, {"a2", "r", 2, 6}, {"a3", "r", 5, 9}}, []string{"a1 a2 a3"}},
		"two runs":                       {[]part{{"a1", "r", 0, 9}, {"a2", "s", 0, 9}}, []string{"a1", "a2"}},
		"restarted": {
			[]part{{"a1", "r", 0, 3}, {"b1", "r", 0, 3}, {"a2", "r", 10, 19}, {"b2", "r", 10, 19}},
			[]string{"a1 b1", "a2 b2"},
		},
		"restarted at once":      {[]part{{"a1", "r", 0, 3}, {"a2", "r", 4, 9}}, []string{"a1", "a2"}},
		"clocks of two machines": {[]part{{"a1", "r", 0, 3}, {"b1", "r", 4, 9}}, []string{"a1 b1"}},
		"the latest is the last": {[]part{{"a1", "r", 50, 59}, {"a2", "s", 0, 9}}, []string{"a2", "a1"}},
		"no time":                {[]part{{"a1", "r", 0, 3}, {"a2", "r", -1, 50}}, []string{"a2 a1"}},
	} {
		for _, sealed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, sealed %v", name, sealed), func(t *testing.T) {
				dir := t.TempDir() + "/t.dptrace"
				for _, p := range tc.parts {
					recorded(t, dir, p.name, p.run, p.from, p.to, sealed)
				}
				run, err := Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				if got := told(run.Recordings()); !slices.Equal(got, tc.want) {
					t.Errorf("recordings %q, want %q", got, tc.want)
				}
			})
		}
	}
}

// A part counts once, however often it is named or copied; of two copies the
// whole one does.
func TestOnce(t *testing.T) {
	dir := t.TempDir()
	a, b, c := dir+"/a.dptrace", dir+"/b.dptrace", dir+"/copy.dptrace"
	recorded(t, a, "a1", "r", 0, 9, true)
	recorded(t, b, "b1", "r", 0, 9, true)
	if err := os.CopyFS(c, os.DirFS(a)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(a, dir+"/link.dptrace"); err != nil {
		t.Fatal(err)
	}
	for _, paths := range [][]string{{a, b}, {a, b, a}, {a, dir + "/./a.dptrace", b}, {c, b, a}, {dir + "/link.dptrace", a, b}} {
		run, err := Open(paths...)
		if err != nil {
			t.Fatal(err)
		}
		if got := told([][]*Part{run.Parts}); len(run.Parts) != 2 {
			t.Errorf("%q: parts %q", paths, got)
		}
	}
	half := dir + "/half.dptrace"
	if err := os.CopyFS(half, os.DirFS(a)); err != nil {
		t.Fatal(err)
	}
	metas, err := filepath.Glob(half + "/a1/meta.*" + segmentSuffix)
	if err != nil || len(metas) != 1 {
		t.Fatal(metas, err)
	}
	if err := os.Truncate(metas[0], 300); err != nil { // the seal is gone, started_ns as well
		t.Fatal(err)
	}
	for _, paths := range [][]string{{half, a}, {a, half}} {
		run, err := Open(paths...)
		if err != nil {
			t.Fatal(err)
		}
		if len(run.Parts) != 1 || run.Parts[0].Trace != a || len(run.Problems) != 0 {
			t.Errorf("%q: parts %+v, problems %v", paths, run.Parts, run.Problems)
		}
	}
	recorded(t, dir+"/later.dptrace", "a1", "r", 20, 29, true) // the same pid again
	if run, err := Open(a, dir+"/later.dptrace"); err != nil || len(run.Parts) != 2 {
		t.Errorf("another recording: %v, %v", run, err)
	}
}

// Of many folders one may be empty or unreadable: it is a part that was cut.
func TestOpenMany(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i := range 64 {
		path := fmt.Sprintf("%s/rank-%02d.dptrace", dir, i)
		paths = append(paths, path)
		if i == 7 {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		recorded(t, path, fmt.Sprintf("n%d", i), "r", 0, 9, true)
	}
	run, err := Open(paths...)
	if err != nil {
		t.Fatal(err)
	}
	cut := slices.DeleteFunc(slices.Clone(run.Parts), func(p *Part) bool { return p.Sealed })
	if len(run.Parts) != 64 || len(cut) != 1 || cut[0].Name != "rank-07.dptrace" {
		t.Errorf("%d parts, cut %q", len(run.Parts), told([][]*Part{cut}))
	}
	if err := run.Each(nil, func(Batch) error { return nil }); err != nil {
		t.Error(err)
	}
	if got := run.Recordings(); len(got) != 1 || len(got[0]) != 64 {
		t.Errorf("recordings %q", told(got))
	}
	if _, err := Open(paths[7]); err == nil {
		t.Error("an empty trace alone was opened")
	}
	if _, err := Open(paths[0], dir+"/missing.dptrace"); err == nil {
		t.Error("a missing trace was opened")
	}
}

func TestSiblings(t *testing.T) {
	dir := t.TempDir()
	recorded(t, dir+"/dptrace-1.dptrace", "a1", "r", 0, 9, true)
	recorded(t, dir+"/dptrace-2.dptrace", "a2", "other", 0, 9, true)
	recorded(t, dir+"/dptrace-3.dptrace", "b1", "r", 0, 9, false)
	recorded(t, dir+"/named.dptrace", "b2", "r", 0, 9, true)
	if err := os.Mkdir(dir+"/dptrace-4.dptrace", 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := Siblings(dir+"/dptrace-3.dptrace", "dptrace-*.dptrace")
	if want := []string{dir + "/dptrace-1.dptrace", dir + "/dptrace-3.dptrace"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("siblings %q, %v, want %q", got, err, want)
	}
	got, err = Siblings(dir+"/dptrace-4.dptrace", "dptrace-*.dptrace")
	if want := []string{dir + "/dptrace-4.dptrace"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("siblings of an empty trace %q, %v", got, err)
	}
}

func TestKeep(t *testing.T) {
	a, b := &Part{Name: "a"}, &Part{Name: "b"}
	run := &Run{Parts: []*Part{a, b}, Problems: []Problem{{Part: a}, {Part: b}, {Part: a}}}
	run.Keep([]*Part{b})
	if len(run.Parts) != 1 || len(run.Problems) != 1 || run.Problems[0].Part != b {
		t.Errorf("%v %v", run.Parts, run.Problems)
	}
}
