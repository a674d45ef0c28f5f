package probe

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/procfs"
)

// ErrAbsent is wrapped by the error of a probe that no privilege would make work
// here: the architecture or the kernel does not have what it looks at.
var ErrAbsent = errors.New("not on this kernel")

// Refusal says in one line why eBPF programs could not be loaded or attached:
// the errno, and what on this machine is set so that it came.
func Refusal(err error) string { return lookAround().refusal(err) }

const btfFile = "/sys/kernel/btf/vmlinux"

// surroundings is what decides about bpf(2).
type surroundings struct {
	missing   []string // of CAP_BPF and CAP_PERFMON
	namespace bool     // the capabilities count in a user namespace only
	seccomp   bool     // a filter is installed
	lockdown  string   // none, integrity, confidentiality; "" not known
	disabled  string   // kernel.unprivileged_bpf_disabled; "" not known
	paranoid  string   // kernel.perf_event_paranoid; "" not known
	memlock   uint64   // RLIMIT_MEMLOCK, bytes
	btf       error    // of reading btfFile
}

func lookAround() surroundings {
	s := surroundings{missing: missing(Effective()), namespace: inUserNamespace(), memlock: unix.RLIM_INFINITY,
		lockdown: chosen(content("/sys/kernel/security/lockdown")),
		disabled: content("/proc/sys/kernel/unprivileged_bpf_disabled"), paranoid: content("/proc/sys/kernel/perf_event_paranoid")}
	s.seccomp = status("Seccomp") == "2"
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit) == nil {
		s.memlock = limit.Cur
	}
	f, err := os.Open(btfFile)
	if s.btf = err; err == nil {
		f.Close()
	}
	return s
}

// Effective are the calling thread's effective capabilities, one bit each.
func Effective() uint64 {
	n, _ := strconv.ParseUint(status("CapEff"), 16, 64) // 0 where /proc is not: none are known
	return n
}

// missing names the capabilities that eBPF needs and that are not in the set.
// CAP_SYS_ADMIN stands for both, as the kernel has it.
func missing(effective uint64) (names []string) {
	for _, c := range []struct {
		name string
		bit  uint
	}{{"CAP_BPF", unix.CAP_BPF}, {"CAP_PERFMON", unix.CAP_PERFMON}} {
		if effective&(1<<c.bit|1<<unix.CAP_SYS_ADMIN) == 0 {
			names = append(names, c.name)
		}
	}
	return names
}

// status is a field of /proc/thread-self/status.
func status(field string) string {
	b, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return ""
	}
	return procfs.Field(b, field)
}

// inUserNamespace reports whether root here is somebody else outside: bpf(2) asks
// for capabilities of the first user namespace.
func inUserNamespace() bool {
	f := strings.Fields(content("/proc/self/uid_map"))
	return len(f) >= 3 && (f[0] != "0" || f[1] != "0" || f[2] != "4294967295")
}

func content(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// chosen is the word in brackets of a line like "[none] integrity".
func chosen(line string) string {
	_, after, _ := strings.Cut(line, "[")
	word, _, _ := strings.Cut(after, "]")
	return word
}

func (s surroundings) refusal(err error) string {
	cause := s.cause(err)
	var errno syscall.Errno
	if name := ""; errors.As(err, &errno) {
		if name = unix.ErrnoName(errno); name == "" {
			name = errno.Error()
		}
		return fmt.Sprintf("bpf(2) says %s: %s", name, cause)
	}
	return cause
}

func (s surroundings) cause(err error) string {
	var refused *ebpf.VerifierError
	denied := errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES)
	verified := errors.As(err, &refused) && len(refused.Log) > 0
	if denied && !verified && len(s.missing) == 0 && !s.locked() && !errors.Is(err, ErrAbsent) {
		return s.denial(err)
	}
	switch {
	case errors.Is(err, ErrAbsent):
		return firstLine(err.Error())
	case len(s.missing) > 0 && (denied || errors.Is(err, ebpf.ErrNotSupported)):
		return s.capabilities()
	case s.btf != nil && !denied:
		return fmt.Sprintf("the kernel shows no BTF (%s: CONFIG_DEBUG_INFO_BTF)", firstLine(s.btf.Error()))
	case s.locked() && (denied || verified):
		return "kernel lockdown is " + s.lockdown + " (/sys/kernel/security/lockdown)"
	case verified:
		return "the verifier refused it: " + firstLine(refused.Log[len(refused.Log)-1])
	case errors.Is(err, unix.ENOSYS):
		return "a seccomp filter answers so, or the kernel was built without CONFIG_BPF_SYSCALL"
	case errors.Is(err, unix.ENOMEM):
		return "no memory left for maps (of this control group or, before Linux 5.11, RLIMIT_MEMLOCK)"
	}
	return firstLine(err.Error())
}

// denial is why bpf(2) says EPERM or EACCES although the capabilities are there
// and lockdown is not on.
func (s surroundings) denial(err error) string {
	switch {
	case s.namespace:
		return "CAP_BPF and CAP_PERFMON count only in this user namespace (a rootless container)"
	case s.seccomp:
		return "a seccomp filter refuses it, though CAP_BPF and CAP_PERFMON are there"
	case errors.Is(err, unix.EPERM) && s.memlock < 1<<26:
		return fmt.Sprintf("CAP_BPF and CAP_PERFMON are there; RLIMIT_MEMLOCK is %d KiB, "+
			"which Linux before 5.11 counts maps against (ulimit -l unlimited)", s.memlock>>10)
	}
	return "CAP_BPF and CAP_PERFMON are there: a security module (SELinux, AppArmor) refuses it"
}

// locked reports whether lockdown forbids what we do: programs that read kernel
// memory, from confidentiality on.
func (s surroundings) locked() bool { return s.lockdown == "confidentiality" }

func (s surroundings) capabilities() string {
	verb := "is"
	if len(s.missing) > 1 {
		verb = "are"
	}
	var settings []string
	if s.disabled != "" {
		settings = append(settings, "kernel.unprivileged_bpf_disabled="+s.disabled)
	}
	if s.paranoid != "" {
		settings = append(settings, "kernel.perf_event_paranoid="+s.paranoid)
	}
	text := fmt.Sprintf("%s %s missing", strings.Join(s.missing, " and "), verb)
	if len(settings) > 0 {
		text += " (" + strings.Join(settings, ", ") + ")"
	}
	return text
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}
