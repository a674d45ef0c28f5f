package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// tierCase is a program and what must be said about it in each tier, side by
// side. What is not expected must be found neither proven nor likely.
type tierCase struct {
	name    string
	command string // "python" is the interpreter with torch
	code    int    // exit code of the program, and so of record
	// Sentences, separated by "; ": RULE CERTAINTY WORD... is a finding whose
	// title and evidence have the words in this order, RULE STATUS a check.
	// "same" in kernel: as in hook.
	hook, kernel string
	unhooked     string // words of the entry that the list of unhooked Pythons must have; "" it is empty
	limited      bool   // in a control group with a limit on memory
	often        bool   // run by `make test` (go test -short), too; `make test-all` runs all
}

// memoryLimit is that of limited cases: small, so that data sets may be, too.
// 5 % of it are 54 MB, 1 % are 11 MB.
const memoryLimit = 1 << 30

// nobody is whom programs run as to see what is said without privileges.
const nobody = 65534

// form is one way to run the cases: a tier, and who gets it.
type form struct {
	tier   string // hook, kernel
	nobody bool
}

// eachTier runs the cases in both tiers.
func eachTier(t *testing.T, programs string, cases []tierCase, more func(*testing.T, tierCase, form, tierRun)) {
	p := python(t)
	for _, c := range cases {
		if testing.Short() && !c.often {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			for _, tier := range []string{"hook", "kernel"} {
				t.Run(tier, func(t *testing.T) {
					f := formOf(t, tier, p)
					t.Parallel()
					c.test(t, p, f, programs, more)
				})
			}
		})
	}
}

// formOf says how a tier can be had here. The kernel tier needs privileges and
// BTF; where they are there, it must come up.
func formOf(t *testing.T, tier string, p interpreter) form {
	t.Helper()
	if tier == "hook" {
		switch {
		case os.Getuid() != 0:
			return form{tier: tier}
		case readableByNobody(p):
			return form{tier: tier, nobody: true}
		}
		t.Logf("nobody cannot start %s: the hook tier is demanded as root instead", p.Path)
		return form{tier: tier}
	}
	if why := noKernelTier(); why != "" {
		t.Skipf("%s: %s", t.Name(), why)
	}
	return form{tier: tier}
}

// noKernelTier is why the kernel tier cannot be had here, "" if it must.
func noKernelTier() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	_, after, _ := strings.Cut(string(status), "CapEff:")
	caps, err := strconv.ParseUint(strings.Fields(after + " 0")[0], 16, 64)
	if err != nil {
		return err.Error()
	}
	const sysAdmin, perfmon, bpf = 1 << 21, 1 << 38, 1 << 39
	switch {
	case caps&sysAdmin == 0 && caps&(perfmon|bpf) != perfmon|bpf:
		return "needs root, or CAP_BPF and CAP_PERFMON"
	case runtime.GOARCH != "amd64":
		return "copy-on-write faults can be counted on x86-64 only"
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		return "the kernel has no BTF: " + err.Error()
	}
	return ""
}

var readableByNobody = func() func(interpreter) bool {
	var once sync.Once
	var can bool
	return func(p interpreter) bool {
		once.Do(func() {
			c := exec.Command(p.Path, "-c", "import numpy, torch")
			c.Dir, c.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "HOME=/"}
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			can = c.Run() == nil
		})
		return can
	}
}()

// tierRun is a recorded case.
type tierRun struct {
	folder, trace string
	recorded      result
	report        report
}

func (c tierCase) test(t *testing.T, p interpreter, f form, programs string, more func(*testing.T, tierCase, form, tierRun)) {
	r := tierRun{folder: sharedFolder(t)}
	r.trace = filepath.Join(r.folder, "run.dptrace")
	if err := os.CopyFS(r.folder, os.DirFS(programs)); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(r.folder, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Chmod(path, 0o777)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	tier := "auto"
	if f.tier == "hook" && !f.nobody {
		tier = "hook" // root would get the kernel tier
	}
	command := []string{sharedBinary(t), "record", "--quiet", "--tier", tier, "-o", r.trace, "--"}
	for _, word := range strings.Fields(c.command) {
		if word == "python" {
			word = p.Path
		}
		command = append(command, word)
	}
	if f.nobody {
		command = append([]string{"setpriv", fmt.Sprintf("--reuid=%d", nobody), fmt.Sprintf("--regid=%d", nobody), "--clear-groups",
			"env", "-u", "XDG_RUNTIME_DIR", "-u", "XDG_CACHE_HOME", "HOME=" + r.folder}, command...)
	}
	if c.limited {
		command = append([]string{"sh", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, limitedGroup(t)}, command...)
	}
	r.recorded = run(t, r.folder, command...)
	if r.recorded.code != c.code {
		t.Errorf("exits %d, want %d:\n%s", r.recorded.code, c.code, r.recorded.tail())
	}
	r.recorded.hasNoFrameOfOurs(t)
	said := run(t, r.folder, dptrace, "report", "--format", "json", "--fail-on", "never", r.trace)
	if err := json.Unmarshal([]byte(said.stdout), &r.report); err != nil {
		t.Fatalf("report exits %d without JSON: %v\n%s\nrecord: %s", said.code, err, said.tail(), r.recorded.tail())
	}
	for _, lost := range r.report.Lost {
		t.Errorf("lost: %d of %s (%s): %s", lost.Count, lost.Table, lost.Source, lost.Reason)
	}
	if got := r.report.Run.Tier; got != f.tier {
		t.Fatalf("the run had tier %q, want %q; refused: %s\n%s", got, f.tier, r.report.Run.TierRefused, r.recorded.tail())
	}
	if f.nobody && r.report.Run.TierRefused == "" {
		t.Error("nobody was refused the kernel tier, and the report does not say why")
	}
	c.judge(t, f, r.report)
	if more != nil {
		more(t, c, f, r)
	}
}

// judge compares what the report says with what must be said in a tier.
func (c tierCase) judge(t *testing.T, f form, r report) {
	t.Helper()
	want := c.hook
	if f.tier == "kernel" && c.kernel != "same" {
		want = c.kernel
	}
	var expected []expectation
	for _, sentence := range strings.Split(want, "; ") {
		words := strings.Fields(sentence)
		switch {
		case len(words) == 0:
		case len(words) == 2 && slices.Contains([]string{"clean", "found", "cannot-tell", "not-applicable"}, words[1]):
			if ok, have := r.ended(words[0], words[1]); !ok {
				t.Errorf("%s is not %s but\n%s", words[0], words[1], have)
			}
		case len(words) >= 2:
			e := expectation{words[0], words[1], words[2:]}
			expected = append(expected, e)
			if ok, near := r.finds(e); !ok {
				t.Errorf("not found: %s; there is\n%s", sentence, near)
			}
		default:
			t.Fatalf("cannot read %q", sentence)
		}
	}
	for _, alarm := range r.alarms(expected) {
		t.Errorf("false alarm: %s", alarm)
	}
	for _, finding := range r.Findings {
		if finding.Proof == "" {
			t.Errorf("%s has no proof", finding.Rule)
		}
	}
	if c.unhooked == "" {
		for _, u := range r.Unhooked {
			t.Errorf("pid %d is said to be unhooked: %s: %s", u.Pid, u.Cmdline, u.Reason)
		}
		return
	}
	for _, u := range r.Unhooked {
		if inOrder(fmt.Sprintf("%s %s torch %v", u.Cmdline, u.Reason, u.Torch), strings.Fields(c.unhooked)) {
			return
		}
	}
	t.Errorf("%s is not among the unhooked: %+v", c.unhooked, r.Unhooked)
}

// finds says whether a finding is there, and if not what comes nearest.
func (r report) finds(e expectation) (bool, string) {
	var near []string
	for _, f := range r.Findings {
		text := f.Title
		for _, each := range f.Evidence {
			text += "\n" + each.Text
		}
		if f.Rule == e.rule && f.Certainty == e.certainty && inOrder(text, e.words) {
			return true, ""
		}
		near = append(near, f.Rule+" "+f.Certainty+": "+text)
	}
	for _, c := range r.Checks {
		if c.Rule == e.rule {
			near = append(near, fmt.Sprintf("check of %s, loader %d: %s %s", c.Rule, c.Loader, c.Status, c.Reason))
		}
	}
	return false, strings.Join(near, "\n")
}

// sharedFolder is a folder that everybody may use.
func sharedFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "dptrace-e2e-")
	if err == nil {
		err = os.Chmod(folder, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// sharedBinary is the binary under test where everybody can run it.
func sharedBinary(t *testing.T) string {
	t.Helper()
	folder := sharedFolder(t)
	to := filepath.Join(folder, "dptrace")
	if err := os.Link(dptrace, to); err == nil {
		return to
	}
	whole, err := os.ReadFile(dptrace)
	if err == nil {
		err = os.WriteFile(to, whole, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// limitedGroup is a control group with memoryLimit; its processes end before it does.
func limitedGroup(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skipf("%s: needs control groups: %v", t.Name(), err)
	}
	var why []string
	for _, line := range strings.Split(string(text), "\n") {
		fields := strings.SplitN(line, ":", 3)
		if len(fields) != 3 {
			continue
		}
		root, file := "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		if fields[1] == "" {
			root, file = "/sys/fs/cgroup", "memory.max"
		} else if fields[1] != "memory" {
			continue
		}
		for _, above := range []string{fields[2], "/"} { // in a group with processes version 2 allows no limited children
			group := filepath.Join(root, above, fmt.Sprintf("dptrace-e2e-%d-%s", os.Getpid(), filepath.Base(sharedFolder(t))))
			err := os.Mkdir(group, 0o755)
			if err == nil {
				if err = os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(memoryLimit)), 0o644); err == nil {
					t.Cleanup(func() {
						if err := os.Remove(group); err != nil {
							t.Logf("control group left behind: %v", err)
						}
					})
					return group
				}
				os.Remove(group)
			}
			why = append(why, err.Error())
		}
	}
	t.Skipf("%s: needs a control group with a limit on memory, which cannot be made here: %s", t.Name(), strings.Join(why, "; "))
	return ""
}
