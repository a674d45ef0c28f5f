package procfs

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStrings(t *testing.T) {
	for text, want := range map[string][]string{
		"":                   nil,
		"\x00":               {""},
		"python\x00a.py\x00": {"python", "a.py"},
		"python\x00a.py":     {"python", "a.py"}, // cut
		"a\x00\x00":          {"a", ""},          // an empty argument is one
		"a b\x00\x00c\x00":   {"a b", "", "c"},
	} {
		if got := Strings([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestJoin(t *testing.T) {
	for _, tc := range []struct {
		args []string
		most int
		want string
	}{
		{nil, 9, ""},
		{[]string{"python", "", "a.py"}, 99, "python  a.py"},
		{[]string{"worker: idle", "", "", ""}, 99, "worker: idle"}, // it has renamed itself
		{[]string{"\xff", "ä"}, 99, "? ä"},
		{[]string{"ab", "ä"}, 4, "ab "}, // not half of a letter
	} {
		if got := Join(tc.args, tc.most); got != tc.want {
			t.Errorf("%q: got %q, want %q", tc.args, got, tc.want)
		}
	}
}

// What a process was really started with, empty arguments included.
func TestProcess(t *testing.T) {
	args := []string{"-c", "sleep 60; true", "", "a b", ""}
	child := exec.Command("sh", args...)
	child.Env = []string{"A=1", "B="}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := int32(child.Process.Pid)
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	// Start returns when exec closes its pipe, and exec sets the new arguments only after that (fs/exec.c, begin_new_exec; since 5.8).
	for range 10_000 {
		if len(Cmdline(pid)) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if got, want := Cmdline(pid), append([]string{"sh"}, args...); !slices.Equal(got, want) {
		t.Errorf("arguments %q, want %q", got, want)
	}
	if got, err := Environ(pid); err != nil || !slices.Equal(got, child.Env) {
		t.Errorf("environment %q, %v", got, err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if got := Link(pid, "cwd"); got != here {
		t.Errorf("in %s, not in %s", got, here)
	}
	if !slices.Contains(Pids(), pid) {
		t.Error("it is not listed")
	}
	if all, err := Maps(pid); err != nil || !slices.ContainsFunc(all, func(m Mapping) bool { return m.Name == "[stack]" }) {
		t.Errorf("mappings %+v, %v", all, err)
	}
	st, err := ReadStat(pid)
	if err != nil || !Alive(pid, st.StartTicks) || Alive(pid, st.StartTicks+1) {
		t.Errorf("it is not alive: %+v, %v", st, err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if _, err := Environ(pid); Alive(pid, st.StartTicks) || err == nil || Cmdline(pid) != nil || Link(pid, "cwd") != "" {
		t.Error("it has ended, and is there")
	}
}

// What one process shows must not fill our memory: its pagemap has an entry for
// each page that it might map.
func TestReadBounded(t *testing.T) {
	b, err := Read(int32(os.Getpid()), "pagemap")
	if os.IsNotExist(err) {
		t.Skip("this kernel has no pagemap (CONFIG_PROC_PAGE_MONITOR)")
	}
	if err != nil || len(b) < most || len(b) > 2*most {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestFields(t *testing.T) {
	const text = "Name:\tpy: thon\nMemTotal:       16 kB\noom_kill 7\n7f00-7fff ---p 00:00 0   [rollup]\n\nalone\nGroups:\t\n"
	var got []string
	for key, value := range Fields([]byte(text)) {
		got = append(got, key+"|"+value)
	}
	want := []string{"Name|py: thon", "MemTotal|16 kB", "oom_kill|7", "7f00-7fff|---p 00:00 0   [rollup]", "Groups|"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := Field([]byte(text), "oom_kill") + Field([]byte(text), "oom"); got != "7" {
		t.Errorf("field %q", got)
	}
}

// The root is mounted everywhere.
func TestMounts(t *testing.T) {
	if !slices.ContainsFunc(Mounts(), func(m Mount) bool { return m.Point == "/" && m.Type != "" }) {
		t.Errorf("mounts %+v", Mounts())
	}
	got := ParseMounts(`30 23 0:26 /a\134b /sys/fs/c\040g rw shared:4 - tmpfs tmpfs rw,size=1k` + "\nhalf a line\n")
	if diff := cmp.Diff([]Mount{{`/a\b`, "/sys/fs/c g", "tmpfs", "rw,size=1k"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestGroup(t *testing.T) {
	for cgroup, want := range map[string]string{
		"0::/user.slice/job.scope\n":           "/user.slice/job.scope v2",
		"8:pids:/\n4:cpu,memory:/job\n0::/x\n": "/job",
		"0::/x\n4:cpu,memory:/a:b\n":           "/a:b",
		"4:cpu:/job\n":                         "",
		"":                                     "",
	} {
		path, v2 := Group(cgroup, "memory")
		if v2 {
			path += " v2"
		}
		if path != want {
			t.Errorf("%q: %q, want %q", strings.TrimSpace(cgroup), path, want)
		}
	}
}
