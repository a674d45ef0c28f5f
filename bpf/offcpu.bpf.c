//go:build ignore

/* What the first thread of each process waits for whenever it gives up its processor: workers fetch in it, and num_workers=0 does.
   At a switch away from it the system call that it is in says what for; between system calls it is a page that has to be read.
   The time until it runs again counts, less that for which it could have run and had no processor (the scheduler's own
   account of the thread, which is complete when it leaves the processor the next time). Counted here, per process; never
   a record. The program runs at each switch of the machine: what is no first thread of a program goes first. */
#include "core.h"
#define __VMLINUX_H__ 1
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "events.h"
#include "procs.h"

char LICENSE[] SEC("license") = "GPL";

__u64 runs; /* how often a thread of the run was seen to leave a processor; about */
__u64 lost_threads; /* processes that found no room */

/* One thread. Nothing but the switches of that thread writes to it; the recorder adds the wait that is not in ns yet. */
struct off_cpu {
	__u64 ns[OFF_KINDS]; /* enum off_kind */
	__u64 out, in; /* CLOCK_MONOTONIC: it waits since, and runs again since; in 0: it waits */
	__u64 delay; /* ns that it has waited for a processor, ever, as it left one last */
	__u32 kind; /* of this wait, and 1 more; 0: it did not wait */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, __u32); /* of the process, see struct proc */
	__type(value, struct off_cpu);
} threads SEC(".maps");

/* bpf2go exports a type only if something of it exists. */
const enum off_kind *unused_off_kind __attribute__((unused));

enum { S_IFMT = 0170000, S_IFREG = 0100000, S_IFBLK = 0060000, S_IFDIR = 0040000 }; /* include/uapi/linux/stat.h */
enum { TASK_STOPPED = 4, TASK_TRACED = 8, TASK_DEAD = 128, PF_KTHREAD = 0x200000 }; /* include/linux/sched.h */

/* of a file that was opened: its bytes have to come from somewhere; anything else is a pipe, a socket or a device */
static __always_inline bool stored(struct task_struct *task, __u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = 0;
	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	__u16 mode = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	return mode == S_IFREG || mode == S_IFBLK || mode == S_IFDIR;
}

/* The numbers are those of asm/unistd_64.h and asm-generic/unistd.h. */
#if defined(__TARGET_ARCH_x86)
#define CALL(regs) ((long)(regs)->orig_ax)
#define FIRST(regs) ((regs)->di)
#define BOTH(x86, generic) (x86)
#define ONLY_X86(number) case number:
#elif defined(__TARGET_ARCH_arm64)
#define CALL(regs) ((long)(regs)->syscallno)
#define FIRST(regs) ((regs)->orig_x0)
#define BOTH(x86, generic) (generic)
#define ONLY_X86(number)
#endif

/* What the running thread is about to wait for. A function of its own, as the verifier looks at such once. */
__noinline int kind(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);
	switch (CALL(regs)) {
	case -1: /* an exception: of a thread that waits in one, a page fault */
		return OFF_PAGE;
	case BOTH(0, 63): /* read */
	case BOTH(17, 67): /* pread64 */
	case BOTH(19, 65): /* readv */
	case BOTH(295, 69): /* preadv */
	case BOTH(327, 286): /* preadv2 */
		return stored(task, FIRST(regs)) ? OFF_READ : OFF_CHANNEL;
	case BOTH(1, 64): /* write */
	case BOTH(18, 68): /* pwrite64 */
	case BOTH(20, 66): /* writev */
	case BOTH(296, 70): /* pwritev */
		return stored(task, FIRST(regs)) ? OFF_WRITE : OFF_CHANNEL;
	case BOTH(74, 82): /* fsync */
	case BOTH(75, 83): /* fdatasync */
	case BOTH(26, 227): /* msync */
	case BOTH(285, 47): /* fallocate */
	case BOTH(77, 46): /* ftruncate */
		return OFF_WRITE;
	ONLY_X86(2) /* open */
	ONLY_X86(4) /* stat */
	ONLY_X86(6) /* lstat */
	ONLY_X86(21) /* access */
	ONLY_X86(78) /* getdents */
	ONLY_X86(89) /* readlink */
	case BOTH(257, 56): /* openat */
	case BOTH(437, 437): /* openat2 */
	case BOTH(262, 79): /* newfstatat */
	case BOTH(5, 80): /* fstat */
	case BOTH(332, 291): /* statx */
	case BOTH(269, 48): /* faccessat */
	case BOTH(439, 439): /* faccessat2 */
	case BOTH(217, 61): /* getdents64 */
	case BOTH(267, 78): /* readlinkat */
	case BOTH(3, 57): /* close: of a network's file system */
		return OFF_NAME;
	ONLY_X86(7) /* poll */
	ONLY_X86(232) /* epoll_wait */
	case BOTH(271, 73): /* ppoll */
	case BOTH(281, 22): /* epoll_pwait */
	case BOTH(441, 441): /* epoll_pwait2 */
	case BOTH(45, 207): /* recvfrom */
	case BOTH(47, 212): /* recvmsg */
	case BOTH(44, 206): /* sendto */
	case BOTH(46, 211): /* sendmsg */
	case BOTH(42, 203): /* connect */
	case BOTH(43, 202): /* accept */
	case BOTH(288, 242): /* accept4 */
		return OFF_CHANNEL;
	ONLY_X86(23) /* select: of no descriptors, as time.sleep() of Python 3.10 and before */
	case BOTH(270, 72): /* pselect6 */
		return FIRST(regs) ? OFF_CHANNEL : OFF_SLEEP;
	case BOTH(35, 101): /* nanosleep */
	case BOTH(230, 115): /* clock_nanosleep */
		return OFF_SLEEP;
	case BOTH(202, 98): /* futex */
	case BOTH(449, 449): /* futex_waitv */
		return OFF_LOCK;
	case BOTH(61, 260): /* wait4 */
	case BOTH(247, 95): /* waitid */
		return OFF_CHILD;
	}
	return OFF_OTHER;
}

/* The state, whose name is another one since 5.14. */
static __always_inline __u64 state_of(struct task_struct *task)
{
	struct task_struct___before_5_14 *old = (void *)task;
	if (bpf_core_field_exists(old->state))
		return BPF_CORE_READ(old, state);
	return task->__state;
}

static __always_inline void leaves(struct task_struct *task, struct proc *p, bool preempted)
{
	__u32 id = p->id;
	__u64 state = preempted ? 0 : state_of(task), delay = task->sched_info.run_delay;
	struct off_cpu *t = bpf_map_lookup_elem(&threads, &id);
	if (!t) {
		if (!state)
			return;
		struct off_cpu none = {};
		bpf_map_update_elem(&threads, &id, &none, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&threads, &id);
		if (!t) {
			__sync_fetch_and_add(&lost_threads, 1);
			return;
		}
	}
	runs++; /* about: two processors may write the same number */
	if (t->kind && t->in) {
		__u64 off = t->in - t->out, ready = delay - t->delay;
		__u32 kind = t->kind - 1;
		if (off > ready && kind < OFF_KINDS)
			t->ns[kind] += off - ready;
	}
	t->kind = 0;
	t->delay = delay;
	if (!state || state & TASK_DEAD) /* it waits for its parent, and not for anything of its own */
		return;
	t->out = bpf_ktime_get_ns();
	t->in = 0;
	t->kind = (state & (TASK_STOPPED | TASK_TRACED) ? OFF_OTHER : kind()) + 1;
}

static __always_inline void comes(__u32 tgid)
{
	struct proc *p = proc_of(tgid);
	if (!p)
		return;
	__u32 id = p->id;
	struct off_cpu *t = bpf_map_lookup_elem(&threads, &id);
	if (t && t->kind && !t->in)
		t->in = bpf_ktime_get_ns();
}

/* Only the first thread of a program is looked at; not idle, none of the kernel's. That a task has no memory of its own would say
   it as well, but the verifier looks long for what a pointer in a task may be. The one that leaves is the running one still: its fields
   are loaded, those of the other one read. */
SEC("raw_tp/sched_switch")
int BPF_PROG(off_cpu_switch, bool preempt, struct task_struct *leaving, struct task_struct *next)
{
	struct task_struct *prev = bpf_get_current_task_btf();
	if (prev->pid == prev->tgid && !(prev->flags & PF_KTHREAD)) {
		struct proc *p = proc_of(prev->tgid);
		if (p)
			leaves(prev, p, preempt);
	}
	__u32 tgid = BPF_CORE_READ(next, tgid);
	if (BPF_CORE_READ(next, pid) == tgid && !(BPF_CORE_READ(next, flags) & PF_KTHREAD))
		comes(tgid);
	return 0;
}
