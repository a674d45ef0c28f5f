package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// unprivileged runs dptrace without the capabilities that eBPF needs: as root in
// a container has none of them.
func unprivileged(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	runtime.LockOSThread() // and never unlocked: the thread ends with the test
	if os.Geteuid() == 0 {
		for _, c := range []uintptr{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_ADMIN} {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out, complaint bytes.Buffer
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Dir, cmd.Stdout, cmd.Stderr = append([]string{"dptrace"}, args...), dir, &out, &complaint
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), complaint.String(), cmd.ProcessState.ExitCode()
}

func TestKernelDemanded(t *testing.T) {
	dir := t.TempDir()
	out, complaint, code := unprivileged(t, dir, "record", "--tier", "kernel", "--", "touch", "ran")
	if code != 4 || out != "" || strings.Count(complaint, "\n") != 1 {
		t.Errorf("code %d, stdout %q, stderr %q", code, out, complaint)
	}
	for _, want := range []string{"CAP_BPF", "EPERM", "kernel.unprivileged_bpf_disabled=", "`dptrace doctor`"} {
		if !strings.Contains(complaint, want) {
			t.Errorf("%q does not say %s", complaint, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("%v were left", left)
	}
}

// What was refused is said once, in the report; nowhere when quiet.
func TestKernelRefused(t *testing.T) {
	dir := t.TempDir()
	_, complaint, code := unprivileged(t, dir, "record", "-o", "a.dptrace", "--", "true")
	text := strings.Join(strings.Fields(complaint), " ") // the report breaks its lines
	if code != 0 || strings.Count(text, "`dptrace doctor` says why not kernel") != 1 {
		t.Errorf("code %d, stderr %q", code, complaint)
	}
	if _, complaint, code = unprivileged(t, dir, "record", "-q", "-o", "b.dptrace", "--", "true"); code != 0 || complaint != "" {
		t.Errorf("quiet: code %d, stderr %q", code, complaint)
	}
	if _, complaint, code = unprivileged(t, dir, "record", "--tier", "hook", "-o", "c.dptrace", "--", "true"); code != 0 || strings.Contains(complaint, "EPERM") {
		t.Errorf("tier hook: code %d, stderr %q", code, complaint)
	}
}

// Each way to the privilege is named, and each rule that gains.
func TestDoctorUnprivileged(t *testing.T) {
	out, _, code := unprivileged(t, t.TempDir(), "doctor")
	if code != 0 {
		t.Errorf("code %d", code)
	}
	for _, want := range []string{
		"process (kernel tier): ", "  missing  CAP_BPF and CAP_PERFMON: ", "  missing  bpf(2): bpf(2) says EPERM: ",
		"sudo dptrace record", "sudo setcap cap_bpf,cap_perfmon+ep $(which dptrace)", "--cap-add BPF --cap-add PERFMON", "securityContext: {capabilities: {add: [BPF, PERFMON]}}", "SLURM",
		"memory-growth-cow", "worker-killed", "swallowed-crash",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("doctor does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}
