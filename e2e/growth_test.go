package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze/detect/memorygrowthcache"
)

// growing is a program of e2e/memory/growing.py: some of its scenes, side by side.
type growing struct {
	often  bool
	scenes []scene
}

// scene is what may be said of one: at most so sure, and by which name. On a busy
// machine there may be too few looks to say anything but that.
type scene struct {
	name  string
	worst string // proven, likely, note; "": nothing may be found
	path  string // that a finding, likely or proven, must begin with; "": none is asked for
	// the least that must be said, unless it cannot be told: a bug is never clean
	bug bool
}

var growingPrograms = []growing{
	{often: true, scenes: []scene{
		{name: "RandomKey", worst: "proven", path: "dataset.cache", bug: true},
		{name: "Appends", worst: "proven", path: "dataset.log", bug: true},
		{name: "Cached", worst: "proven", path: "__main__.load", bug: true},
		{name: "EachSample", worst: "note"},
		{name: "Bounded"},
		{name: "Window"},
	}},
	{scenes: []scene{
		{name: "ByLabel", worst: "proven", path: "dataset.by_label[*]", bug: true},
		{name: "ModulesOwn", worst: "proven", path: "__main__.CACHE", bug: true},
		{name: "Rebinds", worst: "likely", path: "dataset.history", bug: true},
		{name: "Transformed", worst: "proven", path: "dataset.transforms[0].memo['all']", bug: true},
		{name: "Unreached", worst: "likely", path: "The memory of 2 workers", bug: true},
		{name: "StreamAppends", worst: "proven", path: "dataset.log", bug: true},
	}},
	{scenes: []scene{
		{name: "CachedSome"},
		{name: "Mortal", worst: "note"},
		{name: "Lazy", worst: "note"},
		{name: "Emptied"},
		{name: "Replay", worst: "likely", path: "dataset.bank"},
		{name: "Helped", worst: "likely", path: "dataset.cache"},
		{name: "References"},
		{name: "Shuffled"},
	}},
}

// TestGrowth runs them in a control group with a limit.
func TestGrowth(t *testing.T) {
	p := python(t)
	rank := map[string]int{"": 0, "note": 1, "likely": 2, "proven": 3}
	for _, g := range growingPrograms {
		if testing.Short() && !g.often {
			continue
		}
		var names []string
		for _, s := range g.scenes {
			names = append(names, s.name)
		}
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			t.Parallel()
			said := recordGrowing(t, p, names)
			for i, s := range g.scenes {
				found, status, reason := "", "", ""
				for _, fd := range said.Findings {
					if fd.Rule != memorygrowthcache.Rule.ID || fd.Loader.ID != i+1 {
						continue
					}
					if rank[fd.Certainty] > rank[found] {
						found = fd.Certainty
					}
					if rank[fd.Certainty] > rank["note"] && !strings.HasPrefix(fd.Title, s.path) {
						t.Errorf("%s: %s %q does not begin with %q", s.name, fd.Certainty, fd.Title, s.path)
					}
				}
				for _, check := range said.Checks {
					if check.Rule == memorygrowthcache.Rule.ID && check.Loader == i+1 {
						status, reason = check.Status, check.Reason
					}
				}
				t.Logf("%s: %s %s: %s", s.name, status, found, reason)
				if rank[found] > rank[s.worst] {
					t.Errorf("%s: %s, at most %q may be said", s.name, found, s.worst)
				}
				if s.bug && status == "clean" && found == "" { // a note: on a busy machine the looks begin late, and less was seen to grow
					t.Errorf("%s: clean, and it is a bug", s.name)
				}
			}
		})
	}
}

// recordGrowing gives the report of a run of some scenes.
func recordGrowing(t *testing.T, p interpreter, scenes []string) (said report) {
	t.Helper()
	folder := sharedFolder(t)
	program, err := filepath.Abs("memory/growing.py")
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(folder, "run.dptrace")
	command := append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, limitedGroup(t),
		sharedBinary(t), "record", "--quiet", "--tier", "hook", "-o", trace, "--", p.Path, program}, scenes...)
	if done := run(t, folder, command...); done.code != 0 {
		t.Fatalf("exits %d:\n%s", done.code, done.tail())
	}
	printed := run(t, folder, dptrace, "report", "--format", "json", "--fail-on", "never", trace)
	if err := json.Unmarshal([]byte(printed.stdout), &said); err != nil {
		t.Fatalf("report exits %d without JSON: %v\n%s", printed.code, err, printed.tail())
	}
	return said
}
