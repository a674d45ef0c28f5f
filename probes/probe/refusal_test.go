package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// What is refused for the same errno has many reasons.
func TestRefusal(t *testing.T) {
	all := surroundings{memlock: unix.RLIM_INFINITY, lockdown: "none", disabled: "2", paranoid: "3"}
	with := func(f func(*surroundings)) surroundings {
		s := all
		f(&s)
		return s
	}
	// As cilium/ebpf says it.
	eperm := fmt.Errorf("load eBPF: map procs: map create: %w (MEMLOCK may be too low, consider rlimit.RemoveMemlock)", unix.EPERM)
	noBTF := &fs.PathError{Op: "open", Path: btfFile, Err: unix.ENOENT}
	verifier := &ebpf.VerifierError{Cause: unix.EACCES, Log: []string{"0: R1=ctx()", "R1 invalid mem access 'scalar'"}}
	for name, tc := range map[string]struct {
		s    surroundings
		err  error
		want string
	}{
		"nothing": {with(func(s *surroundings) { s.missing = []string{"CAP_BPF", "CAP_PERFMON"} }), eperm,
			"bpf(2) says EPERM: CAP_BPF and CAP_PERFMON are missing (kernel.unprivileged_bpf_disabled=2, kernel.perf_event_paranoid=3)"},
		"half": {with(func(s *surroundings) { s.missing, s.disabled, s.paranoid = []string{"CAP_PERFMON"}, "", "" }), eperm,
			"bpf(2) says EPERM: CAP_PERFMON is missing"},
		"nothing, and a filter": {with(func(s *surroundings) { s.missing, s.seccomp = []string{"CAP_BPF"}, true }), eperm,
			"bpf(2) says EPERM: CAP_BPF is missing (kernel.unprivileged_bpf_disabled=2, kernel.perf_event_paranoid=3)"},
		"a feature that could not be tried": {
			with(func(s *surroundings) { s.missing = []string{"CAP_BPF"} }), fmt.Errorf("map create: %w", ebpf.ErrNotSupported),
			"CAP_BPF is missing (kernel.unprivileged_bpf_disabled=2, kernel.perf_event_paranoid=3)"},
		"rootless container": {with(func(s *surroundings) { s.namespace = true }), eperm,
			"bpf(2) says EPERM: CAP_BPF and CAP_PERFMON count only in this user namespace (a rootless container)"},
		"filter": {with(func(s *surroundings) { s.seccomp = true }), eperm,
			"bpf(2) says EPERM: a seccomp filter refuses it, though CAP_BPF and CAP_PERFMON are there"},
		"filter that denies the call": {with(func(s *surroundings) { s.seccomp = true }), fmt.Errorf("map create: %w", unix.ENOSYS),
			"bpf(2) says ENOSYS: a seccomp filter answers so, or the kernel was built without CONFIG_BPF_SYSCALL"},
		"locked down": {with(func(s *surroundings) { s.lockdown = "confidentiality" }), eperm,
			"bpf(2) says EPERM: kernel lockdown is confidentiality (/sys/kernel/security/lockdown)"},
		"locked down a little": {with(func(s *surroundings) { s.lockdown = "integrity" }), eperm,
			"bpf(2) says EPERM: CAP_BPF and CAP_PERFMON are there: a security module (SELinux, AppArmor) refuses it"},
		"locked memory": {with(func(s *surroundings) { s.memlock = 64 << 10 }), eperm,
			"bpf(2) says EPERM: CAP_BPF and CAP_PERFMON are there; RLIMIT_MEMLOCK is 64 KiB, " +
				"which Linux before 5.11 counts maps against (ulimit -l unlimited)"},
		"module": {all, fmt.Errorf("map create: %w", unix.EACCES),
			"bpf(2) says EACCES: CAP_BPF and CAP_PERFMON are there: a security module (SELinux, AppArmor) refuses it"},
		"no types": {with(func(s *surroundings) { s.btf = noBTF }), fmt.Errorf("apply CO-RE relocations: %w", ebpf.ErrNotSupported),
			"the kernel shows no BTF (open /sys/kernel/btf/vmlinux: no such file or directory: CONFIG_DEBUG_INFO_BTF)"},
		"no types and no capabilities": {with(func(s *surroundings) { s.btf, s.missing = noBTF, []string{"CAP_BPF"} }), eperm,
			"bpf(2) says EPERM: CAP_BPF is missing (kernel.unprivileged_bpf_disabled=2, kernel.perf_event_paranoid=3)"},
		"verifier": {all, fmt.Errorf("load program: %w", verifier),
			"bpf(2) says EACCES: the verifier refused it: R1 invalid mem access 'scalar'"},
		"tracepoint": {all, fmt.Errorf("find page_fault_user: %w\nmore", btf.ErrNotFound),
			"find page_fault_user: not found"},
		"absent": {with(func(s *surroundings) { s.missing = []string{"CAP_BPF"} }), fmt.Errorf("no page_fault_user: %w", ErrAbsent),
			"no page_fault_user: not on this kernel"},
		"anything": {all, errors.New("first\nsecond"), "first"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.s.refusal(tc.err); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		effective uint64
		want      string
	}{
		"none":                   {0, "CAP_BPF CAP_PERFMON"},
		"one":                    {1 << unix.CAP_BPF, "CAP_PERFMON"},
		"both":                   {1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON, ""},
		"the one for everything": {1 << unix.CAP_SYS_ADMIN, ""},
	} {
		if got := strings.Join(missing(tc.effective), " "); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestChosen(t *testing.T) {
	for line, want := range map[string]string{
		"[none] integrity confidentiality": "none", "none [integrity] confidentiality": "integrity", "": "",
	} {
		if got := chosen(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
