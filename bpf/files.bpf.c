//go:build ignore

/* Which files each process of the run opens for reading, and how many of its calls fail for want of a descriptor. At the end of the system call, where the opened file can be
   looked at: what failed, folders, pipes and devices need no second thought, and a file has one number whatever it is
   called. Each is told once for each process, its later opens are counted. The tracepoint of all system calls is taken, as
   those of single ones are found by tracefs, where only root may look, and cost the same: 0.02 us for each system call. */
#include "core.h"
#define __VMLINUX_H__ 1 /* bpf_tracing.h: the kernel's names of registers, not those of user space */
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "events.h"
#include "procs.h"
#include "shm.h"
#include "python.h"

char LICENSE[] SEC("license") = "GPL";

__u64 runs; /* about how many system calls the run's processes have made: each is a run of the program */
__u64 rung; /* when the recorder was woken last */
__u64 lost_events; /* files that found no room in the ring */
__u64 lost_more; /* opens of files beyond the first MOST_FILES of their process */
__u64 lost_paths; /* files whose path is longer than struct open_event has room for */

/* What was opened. When a file is removed its number may be given to another one, of another generation. */
struct opened {
	__u32 id; /* of the process, see struct proc */
	__u32 device, generation, pad;
	__u64 number; /* of the inode */
};

/* How often. The recorder reads it when the process ends; one that was pushed out is told and counted anew. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct opened);
	__type(value, __u64);
} opens SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 2 << 20);
} files SEC(".maps");

/* System calls that failed because their process had no descriptor left, by its id. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} refused SEC(".maps");

__u64 refusals; /* of all processes */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} calls SEC(".maps"); /* of all processes of the machine */

/* bpf2go exports a type only if something of it exists. */
const struct open_event *unused_open_event __attribute__((unused));

#define BELL_NS 500000000ull

enum { S_IFMT = 0170000, S_IFREG = 0100000 }; /* include/uapi/linux/stat.h */
enum { O_TRUNC = 01000 }; /* include/uapi/asm-generic/fcntl.h */
enum { FMODE_READ = 1, FMODE_CREATED = 0x100000 }; /* of f_mode, include/linux/fs.h */
enum { EMFILE = 24 }; /* include/uapi/asm-generic/errno-base.h */
enum { AT_FDCWD = -100 }; /* include/uapi/linux/fcntl.h */

/* What was asked for. */
struct call {
	const char *path;
	int folder; /* that a relative path begins in */
	__u64 flags;
};

/* The numbers are those of asm/unistd.h. A program of 32 bits has others and is not seen. inotify and fanotify have limits of
   their own, which have the same error. */
#if defined(__TARGET_ARCH_x86)
enum { INOTIFY_INIT = 253, INOTIFY_INIT1 = 294, FANOTIFY_INIT = 300 };
#elif defined(__TARGET_ARCH_arm64)
enum { INOTIFY_INIT = -5, INOTIFY_INIT1 = 26, FANOTIFY_INIT = 262 };
#endif

static __always_inline bool is_notify(long number)
{
	return number == INOTIFY_INIT || number == INOTIFY_INIT1 || number == FANOTIFY_INIT;
}

static __always_inline bool is_open(long number)
{
	return number == OPENAT || number == OPEN || number == OPENAT2;
}

/* The number of the call is read again here, and after look(): with a number that later branches depend on, the verifier goes through all
   that lies between once for each value. */
static __always_inline struct call asked(struct pt_regs *regs)
{
	long number = NUMBER(regs);
	bool old = number == OPEN;
	struct call c = { .folder = AT_FDCWD };
	__u64 first = ARG0(regs), second = ARG1(regs), third = ARG2(regs);
	if (!old)
		c.folder = first;
	c.path = (const char *)(old ? first : second);
	__u64 flags = old ? second : third, how = 0;
	if (number == OPENAT2) { /* struct open_how begins with them */
		bpf_probe_read_user(&how, sizeof(how), (void *)flags);
		flags = how;
	}
	c.flags = flags;
	return c;
}

/* The open file of a descriptor of the calling process. */
static __always_inline struct file *file_of(long fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = 0;
	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	return file;
}

/* Python's own: a program that imports torch opens thousands. */
static __always_inline bool is_module(struct dentry *dentry)
{
	__u32 end = 0;
	__u32 length = BPF_CORE_READ(dentry, d_name.len);
	if (length < 4 || bpf_probe_read_kernel(&end, 4, BPF_CORE_READ(dentry, d_name.name) + length - 4))
		return false;
	return end == ('.' | 'p' << 8 | 'y' << 16 | 'c' << 24) || end >> 8 == ('.' | 'p' << 8 | 'y' << 16) || end >> 8 == ('.' | 's' << 8 | 'o' << 16);
}

/* Whose a system call is, is asked for one in 64 only. */
static __always_inline void count(void)
{
	__u32 zero = 0;
	__u64 *n = bpf_map_lookup_elem(&calls, &zero);
	if (n && !(++*n & 63) && current_proc())
		__sync_fetch_and_add(&runs, 64);
}

static __always_inline void refuse(void)
{
	struct proc *p = current_proc();
	if (!p)
		return;
	__u32 id = p->id;
	__u64 *n = bpf_map_lookup_elem(&refused, &id), one = 1;
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&refused, &id, &one, BPF_ANY);
	__sync_fetch_and_add(&refusals, 1);
}

/* The program of shm.bpf.c, which looks at the same tracepoint: a second one there would cost each system call of the machine
   0.15 us, this one costs only those that it is about. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} beside SEC(".maps");

static __always_inline int look(struct pt_regs *regs, long fd)
{
	struct proc *p = current_proc();
	if (!p)
		return 0;
	struct call c = asked(regs);
	struct file *file = file_of(fd);
	if (!file)
		return 0;
	__u32 mode = BPF_CORE_READ(file, f_mode);
	if (!(mode & FMODE_READ) || mode & FMODE_CREATED || c.flags & O_TRUNC) /* there is, or was, something in it to read */
		return 0;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG || is_module(BPF_CORE_READ(file, f_path.dentry)))
		return 0;
	struct opened key = { .id = p->id, .device = BPF_CORE_READ(inode, i_sb, s_dev), .generation = BPF_CORE_READ(inode, i_generation), .number = BPF_CORE_READ(inode, i_ino) };
	__u64 *n = bpf_map_lookup_elem(&opens, &key), one = 1;
	if (n) {
		__sync_fetch_and_add(n, 1);
		return 0;
	}
	if (p->files >= MOST_FILES) {
		__sync_fetch_and_add(&lost_more, 1);
		return 0;
	}
	if (bpf_map_update_elem(&opens, &key, &one, BPF_NOEXIST)) { /* another thread was faster */
		n = bpf_map_lookup_elem(&opens, &key);
		if (n)
			__sync_fetch_and_add(n, 1);
		return 0;
	}
	__sync_fetch_and_add(&p->files, 1);
	struct open_event *o = bpf_ringbuf_reserve(&files, sizeof(*o), 0);
	if (!o) {
		__sync_fetch_and_add(&lost_events, 1);
		return 0;
	}
	o->ts_ns = bpf_ktime_get_ns();
	o->id = key.id;
	o->device = key.device;
	o->generation = key.generation;
	o->pid = p->pid;
	o->pad = 0;
	o->folder = c.folder;
	o->number = key.number;
	__builtin_memset(&o->stack, 0, sizeof(o->stack));
	__u64 thread = bpf_get_current_pid_tgid();
	if (!(p->flags & INHERITS) && (__u32)thread == thread >> 32)
		walk(&o->stack, p->pid);
	/* The kernel has just read it: it is in memory. */
	long length = bpf_probe_read_user_str(o->path, sizeof(o->path), c.path);
	if (length <= 0 || length == sizeof(o->path)) {
		__sync_fetch_and_add(&lost_paths, 1);
		bpf_ringbuf_discard(o, BPF_RB_NO_WAKEUP);
		return 0;
	}
	/* As in process.bpf.c; and when the recorder has to ask the process for the folder of a relative name, while that is there. */
	if (o->path[0] != '/' || o->ts_ns - rung >= BELL_NS || bpf_ringbuf_query(&files, 0) > (1 << 19)) {
		rung = o->ts_ns;
		bpf_ringbuf_submit(o, BPF_RB_FORCE_WAKEUP);
	} else {
		bpf_ringbuf_submit(o, BPF_RB_NO_WAKEUP);
	}
	return 0;
}

SEC("raw_tp/sys_exit")
int BPF_PROG(files_opened, struct pt_regs *regs, long result)
{
	count();
	long number = NUMBER(regs);
	if (result == -EMFILE && !is_notify(number))
		refuse();
	if (is_open(number) && result >= 0) {
		look(regs, result);
		number = NUMBER(regs);
	}
	if (shm_call(number) && (result >= 0 || result == -ENOSPC))
		bpf_tail_call(ctx, &beside, 0); /* returns where there is none */
	return 0;
}
