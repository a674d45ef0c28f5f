package shim

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What two recordings share is made once, whole, and by nobody else.
func TestShared(t *testing.T) {
	base := t.TempDir()
	dir, err := Shared(base)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Fatalf("mode %v, %v", st.Mode(), err)
	}
	compiled := filepath.Join(dir, packageName, "__pycache__")
	if err := os.Mkdir(compiled, 0o700); err != nil { // as Python does
		t.Fatal(err)
	}
	again, err := Shared(base)
	if err != nil || again != dir {
		t.Fatalf("%s, %v; want %s", again, err, dir)
	}
	if _, err := os.Stat(compiled); err != nil {
		t.Errorf("what Python has compiled is gone: %v", err)
	}
	hook := filepath.Join(t.TempDir(), "hook")
	if err := Unpack(hook, Session{Spool: "/spool"}, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sitecustomize.py", "session.json", packageName + "/__init__.py"} {
		if _, err := os.Stat(filepath.Join(hook, name)); err != nil {
			t.Error(err)
		}
	}
	left, err := os.ReadDir(base)
	if err != nil || len(left) != 1 {
		t.Errorf("%d entries beside it, %v", len(left)-1, err)
	}
}

// A file that was removed, as by what tidies /tmp, or changed: all is written anew.
func TestSharedNotWhole(t *testing.T) {
	for name, damage := range map[string]func(file string) error{
		"removed": os.Remove,
		"cut":     func(file string) error { return os.Truncate(file, 10) },
		"changed": func(file string) error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			text[0] ^= 1
			return os.WriteFile(file, text, 0o600)
		},
		"a link to a copy": func(file string) error {
			return errors.Join(os.Rename(file, file+".copy"), os.Remove(file+".copy"), os.Symlink("/etc/passwd", file))
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir, err := Shared(base)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(dir, packageName, "__init__.py")); err != nil {
				t.Fatal(err)
			}
			if err := checkShared(dir); !errors.Is(err, errNotWhole) {
				t.Errorf("the damage is not seen: %v", err)
			}
			if again, err := Shared(base); err != nil || again != dir || checkShared(again) != nil {
				t.Errorf("%s, %v", again, errors.Join(err, checkShared(again)))
			}
		})
	}
}

// A folder of this name that is not ours alone is left alone, and not used.
func TestSharedOfOthers(t *testing.T) {
	for name, make := range map[string]func(dir string) error{
		"others can write": func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o770)) },
		"a link":           func(dir string) error { return os.Symlink(filepath.Dir(dir), dir) },
		"a file":           func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"another user's": func(dir string) error {
			if os.Geteuid() != 0 {
				return os.WriteFile(dir, nil, 0o600) // only root can give one away
			}
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, 65534))
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			own, err := sharedName()
			if err != nil {
				t.Fatal(err)
			}
			if err := make(filepath.Join(base, own)); err != nil {
				t.Fatal(err)
			}
			if dir, err := Shared(base); !errors.Is(err, errNotOurs) {
				t.Errorf("%q, %v", dir, err)
			}
			if _, err := os.Lstat(filepath.Join(base, own)); err != nil {
				t.Errorf("it was removed: %v", err)
			}
		})
	}
}

// Copies of other versions go when they were not used for long.
func TestSharedUnused(t *testing.T) {
	base := t.TempDir()
	for name, age := range map[string]time.Duration{"dptrace-shared-0-old": 8 * 24 * time.Hour, "dptrace-shared-0-young": time.Hour, "other": 99 * 24 * time.Hour} {
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		then := time.Now().Add(-age)
		if err := os.Chtimes(dir, then, then); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Shared(base); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"dptrace-shared-0-old": false, "dptrace-shared-0-young": true, "other": true} {
		if _, err := os.Stat(filepath.Join(base, name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
}
