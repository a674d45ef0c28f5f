package shim

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is in the folder and not in the binary fails only on users' machines.
func TestEmbedsEveryFile(t *testing.T) {
	onDisk := 0
	err := filepath.WalkDir("python", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "tests" || strings.HasPrefix(d.Name(), ".") || d.Name() == "__pycache__" {
				return fs.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(path); ext != ".py" && ext != ".so" {
			return nil
		}
		onDisk++
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		got, err := files.ReadFile(path)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is not in the binary: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if onDisk < 3 {
		t.Errorf("found only %d files: the test looks in the wrong place", onDisk)
	}
}

func TestUnpack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "hook")
	if err := Unpack(dir, Session{Spool: "/spool", Ring: 4096, Rings: 2, Lock: "/lock", Digest: DigestFull}, ""); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sitecustomize.py", "dptrace_hook/__init__.py", "session.json"} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, st.Mode())
		}
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v (%v)", st.Mode(), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "session.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"spool", "ring", "rings", "version", "lock", "digest"} { // as PROTOCOL.md names them
		if _, ok := got[key]; !ok {
			t.Errorf("session.json has no %q: %s", key, text)
		}
	}
}

func TestEnviron(t *testing.T) {
	for _, tc := range []struct {
		name, old, want string
		drop            []string
	}{
		{"not set", "", "/hook", nil},
		{"empty", "PYTHONPATH=", "/hook", nil},
		{"one", "PYTHONPATH=/a", "/hook:/a", nil},
		{"working directory stays", "PYTHONPATH=/a:", "/hook:/a:", nil},
		{"of a dead recorder", "PYTHONPATH=/dead:/a:/b", "/hook:/a:/b", []string{"/dead"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := []string{"HOME=/h", "PYTHONPATHS=x"}
			if tc.old != "" {
				env = append(env, tc.old)
			}
			got := Environ(env, "/hook", tc.drop...)
			if want := []string{"HOME=/h", "PYTHONPATHS=x", "PYTHONPATH=" + tc.want}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	ours := filepath.Join(t.TempDir(), "hook")
	if err := Unpack(ours, Session{Spool: "/spool", Lock: "/lock"}, ""); err != nil {
		t.Fatal(err)
	}
	theirs := t.TempDir() // some other tool's session.json
	if err := os.WriteFile(filepath.Join(theirs, "session.json"), []byte(`{"version": "x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	dirs, sessions := Find([]string{"PYTHONPATH=" + theirs + ":relative:" + ours + ":"})
	if len(dirs) != 1 || dirs[0] != ours || sessions[0].Lock != "/lock" {
		t.Errorf("found %q %+v", dirs, sessions)
	}
	if dirs, _ := Find(nil); dirs != nil {
		t.Errorf("found %q without PYTHONPATH", dirs)
	}
}
