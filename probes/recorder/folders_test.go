package recorder

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// others is a folder of another user, who can do there what they like while root
// records in it.
func others(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make folders of others")
	}
	dir := filepath.Join(t.TempDir(), "theirs")
	os.Mkdir(dir, 0o777)
	os.Chown(dir, nobody, nobody)
	for above := filepath.Dir(dir); above != "/" && above != os.TempDir(); above = filepath.Dir(above) {
		os.Chmod(above, 0o755)
	}
	return dir
}

// as runs a shell script as another user, in their folder.
func as(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-ec", script)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

func TestFolderOfOthers(t *testing.T) {
	for script, want := range map[string]string{
		"mkdir t":                      "belongs to nobody",
		"ln -s TARGET t":               "is a link that nobody has made",
		"ln -s /none/such t":           "is a link that nobody has made",
		"mkdir real; ln -s real t":     "is a link that nobody has made",
		"mkfifo t":                     "is no folder",
		"mkdir a; ln -s TARGET a/deep": "",
	} {
		t.Run(script, func(t *testing.T) {
			dir, target := others(t), t.TempDir()
			as(t, dir, strings.ReplaceAll(script, "TARGET", target))
			out, err := create(Options{Output: filepath.Join(dir, "t")})
			if strings.Contains(script, "deep") { // an honest folder beside planted things
				if err != nil {
					t.Fatal(err)
				}
				out.discard()
				return
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
			if left, _ := os.ReadDir(target); len(left) > 0 {
				t.Errorf("%v was made behind the link", left)
			}
		})
	}
}

// The owner of the folder that root records in puts a link where the trace was.
func TestPlantedLink(t *testing.T) {
	dir, target := others(t), t.TempDir()
	out, err := create(Options{Output: filepath.Join(dir, "new", "t.dptrace")})
	if err != nil {
		t.Fatal(err)
	}
	part := filepath.Base(out.Dir())
	os.Mkdir(filepath.Join(target, part), 0o700)
	as(t, dir, "mv new old; mkdir new; ln -s "+target+" new/t.dptrace")
	out.Append(traces.Meta{Key: "k", Value: "v"})
	if err := out.Seal(); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(filepath.Join(target, part)); len(files) > 0 {
		t.Errorf("%v were made behind the link", files)
	}
	run, err := traces.Open(filepath.Join(dir, "old", "t.dptrace"))
	if err != nil || len(run.Parts) != 1 || !run.Parts[0].Sealed {
		t.Errorf("the trace is not whole where it was: %v, %v", run, err)
	}
	out.discard()
	if files, _ := os.ReadDir(target); len(files) != 1 {
		t.Errorf("discarding has removed what is behind the link: %v", files)
	}
}

// A link of one's own leads to a scratch disk.
func TestOwnLink(t *testing.T) {
	dir, target := t.TempDir(), t.TempDir()
	os.Symlink(target, filepath.Join(dir, "t"))
	out, err := create(Options{Output: filepath.Join(dir, "t")})
	if err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(target); len(files) != 1 {
		t.Errorf("%v behind the link", files)
	}
	out.discard()
}
