package poll

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

func TestFindGroups(t *testing.T) {
	const (
		v2Mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		v1Mount = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
			"35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
			"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	)
	for name, tc := range map[string]struct {
		membership, mounts string
		want               []string // dir, then path, of each
	}{
		"version 2": {"0::/user.slice/job.scope\n", v2Mount,
			[]string{"/sys/fs/cgroup/user.slice/job.scope /user.slice/job.scope", "/sys/fs/cgroup/user.slice /user.slice", "/sys/fs/cgroup /"}},
		"version 2, a container with a namespace": {"0::/\n", v2Mount, []string{"/sys/fs/cgroup /"}},
		"version 2, a container without": {"0::/docker/abc\n", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n",
			[]string{"/sys/fs/cgroup /docker/abc"}},
		"version 2, below a container without": {"0::/docker/abc/x\n", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n",
			[]string{"/sys/fs/cgroup/x /docker/abc/x", "/sys/fs/cgroup /docker/abc"}},
		"version 2, outside of what is mounted": {"0::/../other\n", v2Mount, []string{"/sys/fs/cgroup /"}},
		"a neighbour of what is mounted": {"0::/docker/abcdef\n", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup ro\n",
			[]string{"/sys/fs/cgroup /docker/abc"}},
		"version 1": {"8:pids:/\n4:cpu,memory:/job/1\n0::/\n", v1Mount,
			[]string{"/sys/fs/cgroup/memory/job/1 /job/1", "/sys/fs/cgroup/memory/job /job", "/sys/fs/cgroup/memory /"}},
		"a blank": {"0::/a b\n", `30 23 0:26 / /sys/fs/c\040g rw - cgroup2 cgroup2 rw` + "\n",
			[]string{"/sys/fs/c g/a b /a b", "/sys/fs/c g /"}},
		"nothing mounted": {"0::/\n", "31 23 0:28 / /tmp rw - tmpfs tmpfs rw\n", nil},
		"no membership":   {"", v2Mount, nil},
		"optional fields": {"0::/x\n", "30 23 0:26 / /c rw shared:4 master:1 - cgroup2 cgroup2 rw\n", []string{"/c/x /x", "/c /"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, g := range findGroups(tc.membership, procfs.ParseMounts(tc.mounts), "memory") {
				got = append(got, g.dir+" "+g.path)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The tightest limit counts, and version 1 counts kills in each group alone.
func TestLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		v2    bool
		files map[string]string // of /, /a and /a/b
		want  traces.Limit
	}{
		"its own": {true, map[string]string{
			"a/memory.max": "max", "a/memory.current": "900", "a/memory.events": "low 0\noom_kill 7\n",
			"a/b/memory.max": "1000", "a/b/memory.current": "300", "a/b/memory.events": "low 0\noom 3\noom_kill 2\noom_group_kill 0\n",
		}, traces.Limit{Path: "/a/b", Limit: 1000, Usage: 300, OomKills: 2}},
		"above": {true, map[string]string{
			"a/memory.max": "1000", "a/memory.current": "900", "a/memory.events": "oom_kill 7\n",
			"a/b/memory.max": "2000", "a/b/memory.current": "300", "a/b/memory.events": "oom_kill 2\n",
		}, traces.Limit{Path: "/a", Limit: 1000, Usage: 900, OomKills: 7}},
		"none": {true, map[string]string{
			"a/memory.max": "max", "a/memory.current": "900", "a/memory.events": "oom_kill 7\n",
			"a/b/memory.max": "max", "a/b/memory.current": "300", "a/b/memory.events": "oom_kill 2\n",
		}, traces.Limit{Path: "/a/b", Limit: 0, Usage: 300, OomKills: 2}},
		"more than the machine has": {true, map[string]string{
			"a/b/memory.max": fmt.Sprint(int64(math.MaxInt64) - 1), "a/b/memory.current": "300",
		}, traces.Limit{Path: "/a/b", Limit: 0, Usage: 300, OomKills: -1}},
		"version 1": {false, map[string]string{
			"memory.limit_in_bytes": "9223372036854771712", "memory.usage_in_bytes": "1", "memory.oom_control": "oom_kill 100\n",
			"a/memory.limit_in_bytes": "1000", "a/memory.usage_in_bytes": "900",
			"a/memory.oom_control":      "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n",
			"a/b/memory.limit_in_bytes": "9223372036854771712", "a/b/memory.usage_in_bytes": "300",
			"a/b/memory.oom_control": "under_oom 0\noom_kill 2\n",
		}, traces.Limit{Path: "/a", Limit: 1000, Usage: 900, OomKills: 9}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, "a/b"), 0o755); err != nil {
				t.Fatal(err)
			}
			for file, text := range tc.files {
				if err := os.WriteFile(filepath.Join(root, file), []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			l := limits{groups: upwards("/a/b", "/", root, tc.v2)}
			rows, _ := l.read()
			if len(rows) != 2 || rows[1].Scope != "host" || rows[1].Limit < 1<<26 || rows[1].Usage <= 0 || rows[1].Usage >= rows[1].Limit {
				t.Fatalf("rows %+v", rows)
			}
			tc.want.Scope = "cgroup"
			if diff := cmp.Diff(tc.want, rows[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// This kernel's control groups, and its out-of-memory killer.
func TestKilled(t *testing.T) {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip("this kernel has no control groups: ", err)
	}
	groups := findGroups(string(membership), procfs.Mounts(), "memory")
	if len(groups) == 0 {
		t.Skip("no control group for memory is visible here")
	}
	// The topmost that can be seen may have children with limits in both versions.
	above := groups[len(groups)-1]
	own := group{dir: filepath.Join(above.dir, fmt.Sprintf("dptrace-test-%d", os.Getpid())), path: "/test", v2: above.v2}
	if err := os.Mkdir(own.dir, 0o755); err != nil {
		t.Skip("this user may not make a control group: ", err)
	}
	defer func() {
		if err := os.Remove(own.dir); err != nil {
			t.Error(err)
		}
	}()
	const limit = 32 << 20
	file := map[bool]string{true: "memory.max", false: "memory.limit_in_bytes"}[own.v2]
	if err := os.WriteFile(filepath.Join(own.dir, file), []byte(fmt.Sprint(limit)), 0o600); err != nil {
		t.Skip("memory is not controlled there: ", err)
	}
	if own.v2 {
		_ = os.WriteFile(filepath.Join(own.dir, "memory.swap.max"), []byte("0"), 0o600) // it may not be there
	}
	l := limits{groups: []group{own, above}}
	before, _ := l.read()
	victim := exec.Command("sh", "-c", "echo $$ > "+own.dir+"/cgroup.procs && exec python3 -c 'x = bytearray(200 << 20)'")
	var status *exec.ExitError
	out, err := victim.CombinedOutput()
	if !errors.As(err, &status) || status.Sys().(interface{ Signal() unix.Signal }).Signal() != unix.SIGKILL {
		t.Fatalf("the process was not killed: %v\n%s", err, out)
	}
	after, _ := l.read()
	if len(before) != 2 || len(after) != 2 || before[0].Limit != limit || strings.TrimSpace(before[0].Path) != "/test" {
		t.Fatalf("before %+v\nafter %+v", before, after)
	}
	for i := range before {
		if rise := after[i].OomKills - before[i].OomKills; rise < 1 || i == 0 && rise != 1 {
			t.Errorf("%s: kills rose by %d, want 1", before[i].Scope, rise)
		}
	}
}
