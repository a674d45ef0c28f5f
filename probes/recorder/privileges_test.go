package recorder

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes"
	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

// nobody is a user without privileges; that it has no account does not matter.
const nobody = 65534

// The roles of the test binary in these tests, besides those of TestMain.
const (
	filterRole = "filter" // filter ERRNO PROGRAM...: refuses bpf(2) with ERRNO, then executes the program
	mountRole  = "mount"  // mount FOLDER PROGRAM...: covers a folder with an empty one, for itself alone
	boundRole  = "bound"  // bound PROGRAM...: executes the program without any capability that eBPF needs, as root in a container is
	showRole   = "show"   // prints who it is: the target of the recordings here
)

func roles(args []string) {
	switch args[0] {
	case filterRole:
		runtime.LockOSThread()
		errno, err := strconv.Atoi(args[1])
		if err == nil {
			err = refuseBPF(syscall.Errno(errno))
		}
		if err == nil {
			err = syscall.Exec(args[2], args[2:], os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	case mountRole:
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = unix.Mount("none", args[1], "tmpfs", 0, "")
		}
		if err == nil {
			err = syscall.Exec(args[2], args[2:], os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	case boundRole:
		runtime.LockOSThread()
		var err error
		for _, c := range []uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_ADMIN} {
			err = errors.Join(err, unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0))
		}
		if err == nil {
			err = syscall.Exec(args[1], args[1:], os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	case sudoersRole:
		fmt.Fprintln(os.Stderr, asTess(args[1], args[2:]))
		os.Exit(99)
	case showRole:
		show("", "/proc/self/status")
		show("recorder ", fmt.Sprintf("/proc/%d/status", os.Getppid()))
		for _, v := range os.Environ() {
			fmt.Println("env " + v)
		}
		os.Exit(0)
	}
}

// show prints who a process is.
func show(prefix, status string) {
	b, _ := os.ReadFile(status)
	for line := range strings.Lines(string(b)) {
		switch key, _, _ := strings.Cut(line, ":"); key {
		case "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapAmb":
			fmt.Println(prefix + strings.Join(strings.Fields(line), " "))
		}
	}
}

// refuseBPF lets bpf(2) fail for this thread and all that it becomes.
func refuseBPF(errno syscall.Errno) error {
	const (
		load, equal, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		allow, fail       = 0x7fff0000, 0x00050000 // SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO
	)
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // the call's number
		{Code: equal, K: unix.SYS_BPF, Jf: 1},
		{Code: give, K: fail | uint32(errno)},
		{Code: give, K: allow},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// kernelHere reports whether the kernel tier works for this process; why not, if
// it does not. Where it does, the tests below must not be left out.
func kernelHere(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it becomes other users")
	}
	if n, detail := unmet(); n != "" {
		t.Skipf("no kernel tier on this machine: %s: %s", n, detail)
	}
	for _, p := range probes.List {
		if p.Tier == probe.Kernel {
			return
		}
	}
	t.Fatal("this build has no probe of the kernel tier")
}

// unmet names a need of the kernel tier that this process has not; "" there is
// none.
func unmet() (need, detail string) {
	for _, n := range probe.KernelNeeds {
		if got := n.Try(); !got.Have {
			return n.Name, got.Detail
		}
	}
	return "", ""
}

// program copies the test binary to where every user may execute it.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(openFolder(t, 0), "dptrace")
	if err := os.WriteFile(to, self, 0o755); err != nil { //nolint:gosec // every user shall execute it
		t.Fatal(err)
	}
	return to
}

// openFolder makes a folder of a user's that everybody can reach; t.TempDir's
// is root's alone.
func openFolder(t *testing.T, uid int) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dptrace-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chown(dir, uid, uid)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fileCapabilities gives a program CAP_BPF and CAP_PERFMON, as setcap
// cap_bpf,cap_perfmon+ep does: struct vfs_cap_data of include/uapi/linux/capability.h.
func fileCapabilities(t *testing.T, path string) {
	t.Helper()
	const revision2, effective = 0x02000000, 1
	var b []byte
	for _, word := range []uint32{revision2 | effective, 0, 0, 1<<(unix.CAP_BPF-32) | 1<<(unix.CAP_PERFMON-32), 0} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	if err := unix.Setxattr(path, "security.capability", b, 0); err != nil {
		t.Skipf("no file capabilities on %s: %v", filepath.Dir(path), err)
	}
}

// Every way in which the kernel tier is there or is refused: what `--tier auto`
// makes of it, and `--tier kernel`.
func TestPrivileges(t *testing.T) {
	kernelHere(t)
	plain := program(t)
	marked := program(t)
	fileCapabilities(t, marked)
	user := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	half := *user
	half.AmbientCaps = []uintptr{unix.CAP_BPF}
	ambient := *user
	ambient.AmbientCaps = []uintptr{unix.CAP_BPF, unix.CAP_PERFMON}
	for name, tc := range map[string]struct {
		attr    *syscall.SysProcAttr
		before  []string // arguments of the test binary that lead to the recorder
		program string
		refused string // "" it is not
		ambient string // capabilities of the target: the user's own
	}{
		"root":                {program: plain},
		"root in a container": {before: []string{boundRole}, program: plain, refused: `EPERM: CAP_BPF and CAP_PERFMON are missing`},
		"nothing": {attr: user, program: plain,
			refused: `^bpf\(2\) says EPERM: CAP_BPF and CAP_PERFMON are missing \(kernel\.unprivileged_bpf_disabled=\d`},
		"ambient":           {attr: &ambient, program: plain, ambient: "CapAmb: 000000c000000000"},
		"one of the two":    {attr: &half, program: plain, refused: `EPERM: CAP_PERFMON is missing`, ambient: "CapAmb: 0000008000000000"},
		"file capabilities": {attr: user, program: marked},
		"seccomp says EPERM": {before: []string{filterRole, strconv.Itoa(int(unix.EPERM))}, program: plain,
			refused: `^bpf\(2\) says EPERM: a seccomp filter refuses it, though CAP_BPF and CAP_PERFMON are there; ` +
				`.dptrace doctor. says how to get it$`},
		"seccomp says ENOSYS": {before: []string{filterRole, strconv.Itoa(int(unix.ENOSYS))}, program: plain,
			refused: `ENOSYS: a seccomp filter answers so`},
		"no BTF": {before: []string{mountRole, "/sys/kernel/btf"}, program: plain,
			refused: `^the kernel shows no BTF \(open /sys/kernel/btf/vmlinux: no such file or directory`},
	} {
		t.Run(name, func(t *testing.T) {
			uid := 0
			if tc.attr != nil {
				uid = int(tc.attr.Credential.Uid)
			}
			for _, tier := range []string{TierAuto, TierKernel, TierHook} {
				dir := openFolder(t, uid)
				trace := filepath.Join(dir, "t.dptrace")
				record := append(append([]string{tc.program}, tc.before...), tc.program, "record", trace, tier, plain, showRole)
				if len(tc.before) == 0 {
					record = record[1:]
				}
				out, complaint, code := runAs(t, tc.attr, dir, record...)
				refused := tc.refused != "" && tier == TierKernel
				if refused {
					if code != ExitRefused || len(out) > 0 || strings.Count(complaint, "\n") != 1 || !strings.Contains(complaint, "dptrace doctor") ||
						!regexp.MustCompile(strings.TrimPrefix(tc.refused, "^")).MatchString(strings.TrimSpace(complaint)) {
						t.Errorf("%s: code %d, the command said %q, we said %q", tier, code, out, complaint)
					}
					leavesNothing(t, dir)
					continue
				}
				if code != 0 || complaint != "" {
					t.Fatalf("%s: code %d, %s", tier, code, complaint)
				}
				wantTier, wantWhy := TierKernel, ""
				switch {
				case tier == TierHook:
					wantTier = TierHook
				case tc.refused != "":
					wantTier, wantWhy = TierHook, tc.refused
				}
				meta := metaOf(t, trace)
				if meta["tier"] != wantTier || (meta["tier_refused"] == "") != (wantWhy == "") ||
					!regexp.MustCompile(wantWhy).MatchString(meta["tier_refused"]) {
					t.Errorf("%s: the trace is of tier %q, %q", tier, meta["tier"], meta["tier_refused"])
				}
				if tc.attr != nil {
					want := tc.ambient
					if want == "" {
						want = "CapAmb: 0000000000000000"
					}
					if !strings.Contains(out, want+"\n") || tc.ambient == "" && !strings.Contains(out, "CapPrm: 0000000000000000\n") {
						who, _, _ := strings.Cut(out, "env ")
						t.Errorf("%s: the target had\n%s", tier, who)
					}
				}
				if strings.Contains(out, "env GOTRACEBACK=") {
					t.Errorf("%s: the target was given a variable of Go's", tier)
				}
				kernel := 0
				run, err := traces.Open(trace)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range traces.Rows[traces.Exit](run) {
					if e.Source == "kernel" {
						kernel++
					}
				}
				if (kernel > 0) != (wantTier == TierKernel) {
					t.Errorf("%s: %d exits were seen by the kernel", tier, kernel)
				}
			}
		})
	}
}

// runAs runs a program as another user in a folder of theirs.
func runAs(t *testing.T, attr *syscall.SysProcAttr, dir string, argv ...string) (out, complaint string, code int) {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.SysProcAttr, cmd.Dir, cmd.Stdout, cmd.Stderr = attr, dir, &stdout, &stderr
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir}
	var status *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// leavesNothing checks that a recording that did not begin has left no folder
// and no process.
func leavesNothing(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s was left", e.Name())
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left := processesIn(dir)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("processes %v were left", left)
			return
		}
	}
}

// processesIn lists processes whose working folder is dir.
func processesIn(dir string) (pids []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && to == dir {
			pids = append(pids, strings.Split(l, "/")[2])
		}
	}
	return pids
}

func metaOf(t *testing.T, trace string) map[string]string {
	t.Helper()
	run, err := traces.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	meta := map[string]string{}
	for _, row := range traces.Rows[traces.Meta](run) {
		meta[row.Key] = row.Value
	}
	return meta
}
