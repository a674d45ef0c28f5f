//go:build ignore

/* The life of every process of the run: fork, exec, exit, the signals that it gets, and that the out-of-memory killer
   chose it. Rare events, one record each. */
#include "core.h"
#define __VMLINUX_H__ 1 /* bpf_tracing.h: the kernel's names of registers, not those of user space */
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "events.h"
#include "procs.h"
#include "tmpfs.h"

char LICENSE[] SEC("license") = "GPL";

/* Set by the recorder before loading. */
const volatile __u32 target_pid; /* of the helper that will become the target, in the recorder's pid namespace */
const volatile __u32 pidns; /* inode number of that namespace */
const volatile __u8 finds_mappings = 1; /* this kernel has bpf_find_vma, as since 5.17; else the verifier takes out the call */

__u32 depth; /* of that namespace: 0 the first one, 1 those within; known with the target */
__u32 last_id; /* of a process */
__u64 lost[KINDS]; /* events that found no room, by kind */
__u64 rung; /* when the recorder was woken last */
__u64 lost_procs; /* processes that found no room in procs: they and their descendants are not seen */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 2 << 20);
} events SEC(".maps");

/* bpf2go exports a type only if something of it exists. */
const enum kind *unused_kind __attribute__((unused));
const struct fork_event *unused_fork_event __attribute__((unused));
const struct exec_event *unused_exec_event __attribute__((unused));
const struct exit_event *unused_exit_event __attribute__((unused));
const struct mapping *unused_mapping __attribute__((unused));
const struct signal_event *unused_signal_event __attribute__((unused));
const struct oom_event *unused_oom_event __attribute__((unused));

/* What a pid is called in the recorder's namespace, if that is so deep; 0: it is another one of that depth. */
static __always_inline __u32 number_at(struct pid *pid, __u32 level)
{
	void *numbers = (void *)pid + bpf_core_field_offset(struct pid, numbers);
	struct upid *at = numbers + level * bpf_core_type_size(struct upid);
	return BPF_CORE_READ(at, ns, ns.inum) == pidns ? BPF_CORE_READ(at, nr) : 0;
}

/* pid of a task's thread group as the recorder sees it; 0: it does not. A pid has a number in its own namespace and in
   each one above it. */
static __always_inline __u32 visible_pid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, signal, pids[PIDTYPE_TGID]);
	return BPF_CORE_READ(pid, level) >= depth ? number_at(pid, depth) : 0;
}

static __always_inline void begin(struct event *e, enum kind kind, __u32 id, struct task_struct *task)
{
	e->ts_ns = bpf_ktime_get_ns();
	e->kind = kind;
	e->id = id;
	e->pid = visible_pid(task);
	e->pad = 0;
	e->start_ns = BPF_CORE_READ(task, group_leader, start_boottime);
}

/* The recorder sleeps until the first event after BELL_NS without one, and looks again after BELL_NS as long as there are
   any: no event waits longer, and many do not wake it more often. */
#define BELL_NS 100000000ull

static __always_inline __u64 wakes(__u64 now)
{
	if (now - rung < BELL_NS && bpf_ringbuf_query(&events, 0) < (1 << 19))
		return BPF_RB_NO_WAKEUP;
	rung = now;
	return BPF_RB_FORCE_WAKEUP;
}

#define submit(event) bpf_ringbuf_submit(event, wakes((event)->e.ts_ns))
#define miss(kind) __sync_fetch_and_add(&lost[kind], 1)

/* In copy_process, before the child can run: nothing that it does can come earlier. */
SEC("raw_tp/task_newtask")
int BPF_PROG(process_fork, struct task_struct *task, __u64 flags)
{
	const __u64 clone_vm = 0x100, clone_thread = 0x10000; /* include/uapi/linux/sched.h */
	if (flags & clone_thread)
		return 0;
	struct proc *parent = current_proc();
	if (!parent)
		return 0;
	if (!(flags & clone_vm))
		parent->flags |= FORKED;
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct proc child = { .id = __sync_fetch_and_add(&last_id, 1) + 1, .flags = flags & clone_vm ? 0 : INHERITS, .pid = visible_pid(task) };
	if (bpf_map_update_elem(&procs, &tgid, &child, BPF_ANY)) {
		__sync_fetch_and_add(&lost_procs, 1);
		return 0;
	}
	struct fork_event *f = bpf_ringbuf_reserve(&events, sizeof(*f), 0);
	if (!f) {
		miss(KIND_FORK);
		return 0;
	}
	begin(&f->e, KIND_FORK, child.id, task);
	f->parent_id = parent->id;
	f->ppid = visible_pid((struct task_struct *)bpf_get_current_task());
	f->flags = flags;
	bpf_probe_read_kernel_str(f->comm, sizeof(f->comm), task->comm);
	submit(f);
	return 0;
}

/* As many pid namespaces as the recorder may have entered or made for its children (nsenter, unshare): it is not in these itself. */
#define MOST_ENTERED 4

/* The target is followed from its exec on: before it was a helper of the recorder. */
static __always_inline struct proc *adopt(struct task_struct *task)
{
	if (last_id)
		return 0;
	struct pid *pid = BPF_CORE_READ(task, signal, pids[PIDTYPE_TGID]);
	__u32 level = BPF_CORE_READ(pid, level), number = 0;
	for (__u32 i = 0; i < MOST_ENTERED && i <= level && !number; i++)
		if ((number = number_at(pid, level - i)))
			depth = level - i;
	if (number != target_pid)
		return 0;
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct proc target = { .id = __sync_fetch_and_add(&last_id, 1) + 1, .pid = target_pid };
	if (bpf_map_update_elem(&procs, &tgid, &target, BPF_ANY)) {
		__sync_fetch_and_add(&lost_procs, 1);
		return 0;
	}
	return proc_of(tgid);
}

SEC("raw_tp/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
	struct proc *p = proc_of(BPF_CORE_READ(task, tgid));
	if (!p)
		p = adopt(task);
	if (!p)
		return 0;
	p->flags = 0;
	p->user = p->kernel = p->after_fork = 0;
	struct exec_event *x = bpf_ringbuf_reserve(&events, sizeof(*x), 0);
	if (!x) {
		miss(KIND_EXEC);
		return 0;
	}
	begin(&x->e, KIND_EXEC, p->id, task);
	x->ppid = visible_pid(BPF_CORE_READ(task, real_parent));
	bpf_probe_read_kernel_str(x->exe, sizeof(x->exe), BPF_CORE_READ(bprm, interp));
	/* The kernel has just written them: they are in memory. */
	unsigned long from = BPF_CORE_READ(task, mm, arg_start), length = BPF_CORE_READ(task, mm, arg_end) - from;
	if (length > sizeof(x->args))
		length = sizeof(x->args);
	if (bpf_probe_read_user(x->args, length, (void *)from))
		length = 0;
	x->args_length = length;
	submit(x);
	return 0;
}

/* Each thread passes here; the process ends with its last one (signal->live has been counted down by then). */
SEC("raw_tp/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);
	struct proc *p = proc_of(tgid);
	if (!p || BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	struct exit_event *x = bpf_ringbuf_reserve(&events, sizeof(*x), 0);
	if (x) {
		begin(&x->e, KIND_EXIT, p->id, task);
		/* As kernel/exit.c, wait_task_zombie() does. */
		x->status = BPF_CORE_READ(task, signal, flags) & SIGNAL_GROUP_EXIT ? BPF_CORE_READ(task, signal, group_exit_code) : BPF_CORE_READ(task, group_leader, exit_code);
		x->pad = 0;
		x->user = p->user;
		x->kernel = p->kernel;
		x->after_fork = p->after_fork;
		x->faults = BPF_CORE_READ(task, min_flt) + BPF_CORE_READ(task, maj_flt) + BPF_CORE_READ(task, signal, min_flt) + BPF_CORE_READ(task, signal, maj_flt);
		submit(x);
	} else {
		miss(KIND_EXIT);
	}
	bpf_map_delete_elem(&procs, &tgid);
	return 0;
}

/* Signals that can end a process or tell it something: HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE TERM
   STKFLT XCPU XFSZ SYS. Left out are those that come all the time: ALRM and the other timers, CHLD, CONT, URG, WINCH, … */
static __always_inline bool told(int signal)
{
	const __u64 mask = 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 13 | 1 << 15 | 1 << 16 | 1 << 24 | 1 << 25 | 1u << 31;
	return signal > 0 && signal < 32 && mask >> signal & 1;
}

/* whether sender is target's own process, or an ancestor of it within the run */
static __always_inline bool is_ancestor(__u32 sender, struct task_struct *target)
{
	struct task_struct *t = target;
	for (int i = 0; i < 16; i++) {
		__u32 tgid = BPF_CORE_READ(t, tgid);
		if (tgid == sender)
			return true;
		if (!proc_of(tgid))
			return false;
		t = BPF_CORE_READ(t, real_parent);
	}
	return false;
}

/* m->offset is the address when it is called, and becomes where that is in the file. */
static long describe(struct task_struct *task, struct vm_area_struct *vma, struct mapping *m)
{
	__u64 address = m->offset;
	m->offset = 0;
	m->found = 1;
	m->start = BPF_CORE_READ(vma, vm_start);
	m->end = BPF_CORE_READ(vma, vm_end);
	m->flags = BPF_CORE_READ(vma, vm_flags);
	m->heap = m->start <= BPF_CORE_READ(task, mm, brk) && m->end >= BPF_CORE_READ(task, mm, start_brk);
	struct file *file = BPF_CORE_READ(vma, vm_file);
	if (!file)
		return 0;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	m->magic = BPF_CORE_READ(inode, i_sb, s_magic);
	m->size = BPF_CORE_READ(inode, i_size);
	m->offset = (BPF_CORE_READ(vma, vm_pgoff) << PAGE_SHIFT) + address - m->start;
	room_of(BPF_CORE_READ(inode, i_sb), &m->capacity, &m->used);
	m->at_shm = at_shm((__u64)file);
	struct dentry *d = BPF_CORE_READ(file, f_path.dentry);
	for (int i = 0; i < PATH_NAMES; i++) {
		struct dentry *parent = BPF_CORE_READ(d, d_parent);
		if (!d || parent == d)
			break;
		bpf_probe_read_kernel_str(m->names[i], NAME_BYTES, BPF_CORE_READ(d, d_name.name));
		d = parent;
	}
	return 0;
}

SEC("raw_tp/signal_generate")
int BPF_PROG(process_signal, int signal, struct kernel_siginfo *info, struct task_struct *task, int group, int result)
{
	if (!told(signal) || result != 0) /* 0: TRACE_SIGNAL_DELIVERED; else ignored, already pending, lost */
		return 0;
	struct proc *p = proc_of(BPF_CORE_READ(task, tgid));
	if (!p)
		return 0;
	struct signal_event *s = bpf_ringbuf_reserve(&events, sizeof(*s), 0);
	if (!s) {
		miss(KIND_SIGNAL);
		return 0;
	}
	__builtin_memset(s, 0, sizeof(*s));
	begin(&s->e, KIND_SIGNAL, p->id, task);
	s->signal = signal;
	/* SEND_SIG_NOINFO is 0: a kill(2) without siginfo; SEND_SIG_PRIV is 1: the kernel itself. */
	s->code = (unsigned long)info > 1 ? BPF_CORE_READ(info, si_code) : info ? 128 : 0;
	if (s->code <= 0) {
		struct task_struct *sender = (struct task_struct *)bpf_get_current_task();
		__u32 tgid = BPF_CORE_READ(sender, tgid);
		struct proc *of = proc_of(tgid);
		s->sender_id = of ? of->id : 0;
		s->sender_pid = visible_pid(sender);
		s->ancestor = of && is_ancestor(tgid, task);
		bpf_probe_read_kernel_str(s->comm, sizeof(s->comm), BPF_CORE_READ(sender, group_leader)->comm);
	} else if ((signal == 7 || signal == 11) && s->code < 128 && (unsigned long)info > 1) {
		bpf_probe_read_kernel(&s->address, sizeof(s->address), (void *)info + 16);
		struct mapping m = { .offset = s->address }; /* the verifier wants it on the stack */
		const int enoent = 2;
		if (finds_mappings && bpf_find_vma(bpf_get_current_task_btf(), s->address, describe, &m, 0) == -enoent)
			m.found = 2;
		s->mapping = m;
	}
	submit(s);
	return 0;
}

static __always_inline int victim(__u32 tgid, struct task_struct *task)
{
	struct proc *p = proc_of(tgid);
	if (!p)
		return 0;
	struct oom_event *o = bpf_ringbuf_reserve(&events, sizeof(*o), 0);
	if (!o) {
		miss(KIND_OOM);
		return 0;
	}
	__builtin_memset(o, 0, sizeof(*o));
	o->e.ts_ns = bpf_ktime_get_ns();
	o->e.kind = KIND_OOM;
	o->e.id = p->id;
	if (task) {
		begin(&o->e, KIND_OOM, p->id, task);
		bpf_probe_read_kernel_str(o->comm, sizeof(o->comm), task->comm);
	}
	submit(o);
	return 0;
}

/* The recorder loads one of the two: the tracepoint passes the task since 6.9, before its pid. */
SEC("raw_tp/mark_victim")
int BPF_PROG(oom_task, struct task_struct *task, unsigned int uid)
{
	return victim(BPF_CORE_READ(task, tgid), task);
}

SEC("raw_tp/mark_victim")
int BPF_PROG(oom_pid, int pid)
{
	return victim(pid, 0);
}
