//go:build ignore

/* Copy-on-write: write faults on pages that were present, in forked processes of the run. Counted here, per process and
   2 MiB block: an event for each fault would cost the training twice its time (measured; a count 0.2 us). */
#include "core.h"
#define __VMLINUX_H__ 1
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "procs.h"
#define FIRST_SITE (1 << 30)
#include "python.h"

char LICENSE[] SEC("license") = "GPL";

/* Of so many faults of a process it is looked at one, who makes it: that takes 1.2 us. */
#define LOOKED_AT 64

struct block {
	__u32 id; /* of the process, see struct proc */
	__u32 pad;
	__u64 number; /* address / 2 MiB */
};

struct pages {
	__u32 user, kernel; /* written to by the program, and inside of system calls */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 131072); /* 256 GiB of dense copies; reading goes through all of its buckets */
	__type(key, struct block);
	__type(value, struct pages);
} blocks SEC(".maps");

__u64 changed; /* set when anything is counted in blocks; the recorder clears it before it reads them */
__u64 lost_blocks; /* faults whose block found no room; struct proc has counted them */

/* x86's page fault error code (arch/x86/include/asm/trap_pf.h): the page was present, and written to. */
enum { PF_PROT = 1, PF_WRITE = 2 };

static __always_inline int fault(unsigned long address, unsigned long code, bool kernel)
{
	if ((code & (PF_PROT | PF_WRITE)) != (PF_PROT | PF_WRITE) || (long)address < 0)
		return 0;
	struct proc *p = current_proc();
	if (!p)
		return 0;
	if (p->flags & FORKED) {
		__sync_fetch_and_add(&p->after_fork, 1);
		return 0;
	}
	if (!(p->flags & INHERITS))
		return 0;
	if (!changed) /* mostly it is: no processor takes the line from another one for it */
		changed = 1;
	__u64 before = __sync_fetch_and_add(kernel ? &p->kernel : &p->user, 1), thread = bpf_get_current_pid_tgid();
	if (!(before & (LOOKED_AT - 1)) && (__u32)thread == thread >> 32)
		site(p->id, p->pid);
	struct block key = { .id = p->id, .number = address >> 21 };
	struct pages *n = bpf_map_lookup_elem(&blocks, &key);
	if (!n) {
		struct pages none = {};
		bpf_map_update_elem(&blocks, &key, &none, BPF_NOEXIST); /* another thread may have been faster */
		n = bpf_map_lookup_elem(&blocks, &key);
	}
	if (n)
		__sync_fetch_and_add(kernel ? &n->kernel : &n->user, 1);
	else
		__sync_fetch_and_add(&lost_blocks, 1);
	return 0;
}

SEC("raw_tp/page_fault_user")
int BPF_PROG(cow_user, unsigned long address, struct pt_regs *regs, unsigned long code)
{
	return fault(address, code, false);
}

/* read(2) and the like into memory that the program shares with its parent. */
SEC("raw_tp/page_fault_kernel")
int BPF_PROG(cow_kernel, unsigned long address, struct pt_regs *regs, unsigned long code)
{
	return fault(address, code, true);
}
