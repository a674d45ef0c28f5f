package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shmCase is a program where /dev/shm has 16 MB, and what may be said about it: a
// certainty, or how the check ends. The hook tier does not see where a SIGBUS was.
type shmCase struct {
	name, args   string
	code         int
	hook, kernel []string
	warned       bool // while it runs
	often        bool
}

var (
	surely  = []string{"proven"}
	maybe   = []string{"proven", "likely"} // torch 1.13 dies of it, or tells, by chance
	foretel = []string{"likely"}
	fits    = []string{"clean"}
)

var shmCases = []shmCase{
	{name: "the loop falls behind", often: true, args: "float32 fills", code: 1, hook: maybe, kernel: surely, warned: true},
	{name: "by file_system", args: "float32 fills --sharing file_system", code: 1, hook: maybe, kernel: surely, warned: true},
	{name: "the loop keeps batches", args: "uint8 keeps", code: 1, hook: maybe, kernel: surely},
	{name: "the loop is faster", args: "float32 slow", hook: foretel, kernel: foretel, warned: true},

	{name: "uint8", often: true, args: "uint8 fills", hook: fits, kernel: fits},
	{name: "fewer ahead", args: "float32 fills --workers 1 --prefetch 1", hook: fits, kernel: fits},
	{name: "a cache that does without", args: "uint8 caches", hook: fits, kernel: fits},
}

// TestShm runs them in both tiers.
func TestShm(t *testing.T) {
	p := python(t)
	for _, c := range shmCases {
		if testing.Short() && !c.often {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			for _, tier := range []string{"hook", "kernel"} {
				t.Run(tier, func(t *testing.T) {
					f := formOf(t, tier, p)
					t.Parallel()
					c.test(t, p, f)
				})
			}
		})
	}
}

// smallShm makes a command run where /dev/shm is a file system of its own, of 16 MB. The
// test is skipped where nobody may mount one.
func smallShm(t *testing.T, command []string) []string {
	t.Helper()
	mounted := []string{"unshare", "-m", "sh", "-c", `mount -t tmpfs -o size=16m none /dev/shm && exec "$@"`, "sh"}
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", "/dev/shm").CombinedOutput(); err != nil {
		t.Skipf("%s: needs a /dev/shm of its own: %v: %s", t.Name(), err, out)
	}
	return append(mounted, command...)
}

func (c shmCase) test(t *testing.T, p interpreter, f form) {
	program, err := filepath.Abs("shm/loader.py")
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "run.dptrace")
	command := append([]string{dptrace, "record", "--tier", f.tier, "-o", trace, "--", p.Path, program}, strings.Fields(c.args)...)
	recorded := run(t, t.TempDir(), smallShm(t, command)...)
	if recorded.code != c.code {
		t.Fatalf("exits %d, want %d:\n%s", recorded.code, c.code, recorded.tail())
	}
	recorded.hasNoFrameOfOurs(t)
	r := reportOf(t, trace)
	said, text := c.said(r)
	want := c.hook
	if f.tier == "kernel" {
		want = c.kernel
	}
	if !slices.Contains(want, said) {
		t.Errorf("%s, want one of %q:\n%s", said, want, text)
	}
	if slices.Equal(want, fits) {
		for _, alarm := range r.alarms(nil) {
			t.Errorf("false alarm: %s", alarm)
		}
	}
	if strings.Contains(text, "file_system") {
		t.Errorf("file_system is no cure:\n%s", text)
	}
	if warned := strings.Contains(recorded.stderr, "this loader does not fit into /dev/shm"); warned != c.warned {
		t.Errorf("warned %v, want %v:\n%s", warned, c.warned, recorded.tail())
	}
}

// said is the surest that shm-exhausted says: its finding, or how its check ended.
func (c shmCase) said(r report) (said, text string) {
	for _, f := range r.Findings {
		if f.Rule == "shm-exhausted" {
			return f.Certainty, fmt.Sprint(f)
		}
	}
	for _, k := range r.Checks {
		if k.Rule == "shm-exhausted" {
			return k.Status, k.Reason
		}
	}
	return "nothing", ""
}
