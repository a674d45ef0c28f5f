package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// kernelGains are the rules whose proof the kernel tier makes exact.
const kernelGains = "memory-growth-cow, worker-killed and swallowed-crash by what the kernel saw; else by procfs and the hook"

// waysToPrivilege is how a user gets the kernel tier, by where the training runs.
var waysToPrivilege = strings.Join([]string{
	"sudo dptrace record -- python train.py   (the training runs as you)",
	"or once: sudo setcap cap_bpf,cap_perfmon+ep $(which dptrace)",
	"Docker: docker run --cap-add BPF --cap-add PERFMON IMAGE   (if bpf(2) still says EPERM: --security-opt seccomp=FILE that allows bpf)",
	"Kubernetes: securityContext: {capabilities: {add: [BPF, PERFMON]}}   (of the container)",
	"SLURM and other clusters: ask the administrator for the setcap line; the hook tier works without",
}, "\n")

const outside = "record outside of the container, or in one that root started"

// KernelNeeds is what every probe of the kernel tier needs.
var KernelNeeds = []Need{Capabilities, Loading, Ring, KernelTypes, Attaching}

// Capabilities is the privilege itself.
var Capabilities = Need{
	Name:  "CAP_BPF and CAP_PERFMON",
	Gains: kernelGains,
	Try: func() Trial {
		s := lookAround()
		switch {
		case len(s.missing) > 0:
			return Trial{Detail: s.capabilities(), Get: waysToPrivilege}
		case s.namespace:
			return Trial{Detail: "there, but only in this user namespace (a rootless container)", Get: outside}
		}
		return Trial{Have: true, Detail: origin()}
	},
}

// origin is where the capabilities come from.
func origin() string {
	const both = 1<<unix.CAP_BPF | 1<<unix.CAP_PERFMON
	ambient, _ := strconv.ParseUint(status("CapAmb"), 16, 64)
	if ambient&both == both {
		return "ambient"
	}
	if os.Geteuid() == 0 {
		return "root"
	}
	exe, err := os.Readlink("/proc/self/exe")
	if err == nil {
		if n, err := unix.Getxattr(exe, "security.capability", nil); err == nil && n > 0 {
			return "file capabilities of " + exe
		}
	}
	return "kept from root"
}

// nothing is the shortest program there is.
func nothing() asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}
}

// Loading is bpf(2) taking a map and a program of a type that may read the
// kernel's memory.
var Loading = Need{
	Name:  "bpf(2)",
	Gains: kernelGains,
	Try: func() Trial {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Hash, KeySize: 4, ValueSize: 8, MaxEntries: 1})
		if err == nil {
			defer func() { _ = m.Close() }() // a descriptor
			var p *ebpf.Program
			if p, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, Instructions: nothing(), License: "GPL"}); err == nil {
				defer func() { _ = p.Close() }()
			}
		}
		if err != nil {
			return refused(err)
		}
		return Trial{Have: true, Detail: "a map and a program of two instructions were loaded"}
	},
}

// Ring is the buffer in which the programs hand over what they saw.
var Ring = Need{
	Name:  "eBPF ring buffer",
	Gains: kernelGains,
	Try: func() Trial {
		m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: uint32(os.Getpagesize())})
		if err != nil {
			t := refused(err)
			if errors.Is(err, unix.EINVAL) || errors.Is(err, ebpf.ErrNotSupported) && len(missing(Effective())) == 0 {
				t.Get = "Linux 5.8 or newer"
			}
			return t
		}
		defer func() { _ = m.Close() }() // a descriptor
		return Trial{Have: true, Detail: "one was made"}
	},
}

// KernelTypes is the kernel's description of its own types.
var KernelTypes = Need{
	Name:  "the kernel's BTF",
	Gains: kernelGains,
	Try: func() Trial {
		var kernel KernelBTF
		defer kernel.Close()
		types, err := kernel.Pick("task_struct")
		if err == nil {
			var task *btf.Struct
			err = types.TypeByName("task_struct", &task)
		}
		if err != nil {
			detail := firstLine(err.Error())
			if _, err := os.Stat(btfFile); err != nil {
				detail = err.Error()
			}
			return Trial{Detail: detail, Get: "a kernel built with CONFIG_DEBUG_INFO_BTF, as those of the distributions are since about 2020; " +
				"in a container: do not hide /sys/kernel/btf"}
		}
		return Trial{Have: true, Detail: btfFile}
	},
}

// Attaching is watching a tracepoint: of programs that are executed, for a
// moment.
var Attaching = Tracepoint("sched_process_exec", kernelGains)

// Tracepoint is a program being attached to this tracepoint, and detached.
func Tracepoint(name, gains string) Need {
	return Need{
		Name:  "tracepoint " + name,
		Gains: gains,
		Try: func() Trial {
			p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.RawTracepoint, Instructions: nothing(), License: "GPL"})
			if err != nil {
				return refused(err)
			}
			defer func() { _ = p.Close() }()
			l, err := link.AttachRawTracepoint(link.RawTracepointOptions{Name: name, Program: p})
			switch {
			case err == nil:
			case errors.Is(err, os.ErrNotExist) && len(missing(Effective())) == 0:
				return Trial{Detail: "this kernel does not have it", Get: "another kernel or architecture: no setting brings it"}
			default:
				return refused(err)
			}
			if err := l.Close(); err != nil {
				return Trial{Detail: fmt.Sprintf("detach: %v", err), Get: "please report it"}
			}
			return Trial{Have: true, Detail: "a program was attached and detached"}
		},
	}
}

// refused is a trial that bpf(2) has ended.
func refused(err error) Trial {
	t := Trial{Detail: Refusal(err), Get: waysToPrivilege}
	s := lookAround()
	switch {
	case len(s.missing) > 0:
		t.Get = "as " + Capabilities.Name + " above"
	case s.namespace:
		t.Get = outside
	case s.locked():
		t.Get = "boot without lockdown=confidentiality"
	case s.seccomp:
		t.Get = "let the filter allow bpf: docker run --security-opt seccomp=FILE, Kubernetes seccompProfile, systemd SystemCallFilter=bpf"
	case errors.Is(err, unix.ENOSYS):
		t.Get = "a kernel built with CONFIG_BPF_SYSCALL"
	}
	return t
}

// Pagemap is /proc/self/pagemap telling pages that a process has to itself from
// those that it shares.
var Pagemap = Need{
	Name:  "/proc/self/pagemap",
	Gains: "memory-growth-cow without the kernel tier; what workers copied is then only estimated from smaps_rollup",
	Try: func() Trial {
		alone, err := exclusive(1)
		var shared bool
		if err == nil {
			shared, err = exclusive(2)
		}
		const get = "Linux 4.2 or newer with CONFIG_PROC_PAGE_MONITOR; a /proc that is not masked"
		switch {
		case err != nil:
			return Trial{Detail: err.Error(), Get: get}
		case !alone || shared:
			return Trial{Detail: fmt.Sprintf("bit 56 does not tell: %v for a page mapped once, %v for one mapped twice", alone, shared), Get: get}
		}
		return Trial{Have: true, Detail: "tells pages that are mapped once from pages that are mapped twice"}
	},
}

// exclusive maps a page several times and reports whether pagemap says that it is
// mapped once.
func exclusive(times int) (bool, error) {
	size := os.Getpagesize()
	fd, err := unix.MemfdCreate("dptrace-doctor", unix.MFD_CLOEXEC)
	if err != nil {
		return false, fmt.Errorf("memfd_create: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		return false, fmt.Errorf("ftruncate: %w", err)
	}
	var address uintptr
	for range times {
		page, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return false, fmt.Errorf("mmap: %w", err)
		}
		defer func() { _ = unix.Munmap(page) }()
		page[0] = 1
		address = uintptr(unsafe.Pointer(&page[0]))
	}
	f, err := os.Open("/proc/self/pagemap")
	if err != nil {
		return false, err
	}
	defer f.Close()
	var entry [8]byte
	if _, err := f.ReadAt(entry[:], int64(address)/int64(size)*8); err != nil {
		return false, fmt.Errorf("read /proc/self/pagemap: %w", err)
	}
	const present, once = 1 << 63, 1 << 56
	bits := binary.NativeEndian.Uint64(entry[:])
	if bits&present == 0 {
		return false, errors.New("/proc/self/pagemap does not show a page that is there")
	}
	return bits&once != 0, nil
}
