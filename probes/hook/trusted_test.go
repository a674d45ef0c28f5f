package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const nobody = 65534

// A folder whose owner or whose writers could put another hook in the place of ours
// does not hold it, nor does one below it.
func TestTrusted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make folders of others")
	}
	for _, c := range []struct {
		name  string
		mode  os.FileMode
		owner int
		group int
		want  string // part of the reason; "" it is trusted
	}{
		{"own", 0o700, 0, 0, ""},
		{"seen by all", 0o755, 0, 0, ""},
		{"like /tmp", 0o777 | os.ModeSticky, 0, 0, ""},
		{"of another", 0o700, nobody, 0, "its owner, user 65534,"},
		{"of another, as /tmp", 0o777 | os.ModeSticky, nobody, 0, "its owner, user 65534,"},
		{"of all", 0o777, 0, 0, "everybody"},
		{"of a group", 0o775, 0, nobody, "its group"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, below := range []string{"", "below", "below/that"} {
				folder := filepath.Join(dir, "folder", below)
				if err := os.MkdirAll(folder, 0o700); err != nil {
					t.Fatal(err)
				}
				os.Chown(filepath.Join(dir, "folder"), c.owner, c.group)
				os.Chmod(filepath.Join(dir, "folder"), c.mode)
				err := trusted(folder)
				if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("%s: %v, want %q", folder, err, c.want)
				}
				t.Setenv("TMPDIR", folder)
				base, err := SpoolBase(dir)
				if err != nil || (base == folder) != (c.want == "") {
					t.Errorf("with TMPDIR=%s the hook is put into %s (%v)", folder, base, err)
				}
			}
		})
	}
}

// A link is no way around it: what counts is where it leads.
func TestTrustedByLink(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, "open"), 0o777)
	os.Chmod(filepath.Join(dir, "open"), 0o777)
	os.Mkdir(filepath.Join(dir, "open", "in"), 0o700)
	os.Symlink(filepath.Join(dir, "open", "in"), filepath.Join(dir, "link"))
	if _, err := checkSpool(filepath.Join(dir, "link")); err == nil {
		t.Error("a link into a folder that everybody may write to is trusted")
	}
	if err := trusted(filepath.Join(dir, "link")); err == nil {
		t.Error("a link is opened")
	}
}
