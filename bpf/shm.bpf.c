//go:build ignore

/* What each process of the run does in shared memory: files that it makes in a tmpfs, by how much it makes them longer, names that it
   removes, and calls that find no room. Counted in a map: a training makes thousands of such files in a second. At the end of the
   system calls, as in files.bpf.c, which counts them for both: programs at the functions of the tmpfs itself would cost other calls nothing, but are refused where
   kernels are locked down, and have other arguments from version to version. Whether a tmpfs is the one at /dev/shm is found out by
   the recorder, from its device. */
#include "core.h"
#define __VMLINUX_H__ 1 /* bpf_tracing.h: the kernel's names of registers, not those of user space */
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "events.h"
#include "procs.h"
#include "shm.h"
#include "tmpfs.h"

char LICENSE[] SEC("license") = "GPL";

__u64 changed; /* set when anything is counted in uses; the recorder clears it before it reads them */
__u64 rung; /* when the recorder was woken last */
__u64 lost_uses; /* calls of processes that found no room in uses */
__u64 lost_events; /* failures that found no room in the ring */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192); /* those of ended processes are taken out; reading goes through all buckets */
	__type(key, struct shm_key);
	__type(value, struct shm_use);
} uses SEC(".maps");

/* How long a file was when it was last seen. When a file is removed its number may be given to another one, of another generation. */
struct shm_inode {
	__u32 device, generation;
	__u64 number;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct shm_inode);
	__type(value, __u64);
} sizes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10);
} full SEC(".maps");

/* bpf2go exports a type only if something of it exists. */
const struct full_event *unused_full_event __attribute__((unused));
const enum shm_call *unused_shm_call __attribute__((unused));

#define BELL_NS 100000000ull

enum { S_IFMT = 0170000, S_IFREG = 0100000 }; /* include/uapi/linux/stat.h */
enum { FMODE_WRITE = 2, FMODE_CREATED = 0x100000 }; /* of f_mode, include/linux/fs.h */

/* The open file of a descriptor of the calling process. */
static __always_inline struct file *file_of(long fd)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = 0;
	if (fd >= 0 && fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	return file;
}

/* file: 0 where there is none. */
static __attribute__((noinline)) struct shm_use *use_of(__u32 id, __u32 device, struct file *file)
{
	struct shm_key key = { .id = id, .device = device };
	struct shm_use *u = bpf_map_lookup_elem(&uses, &key);
	if (!u) {
		struct shm_use none = { .at_shm = file && at_shm((__u64)file) };
		bpf_map_update_elem(&uses, &key, &none, BPF_NOEXIST); /* another thread may have been faster */
		u = bpf_map_lookup_elem(&uses, &key);
	}
	if (!u)
		__sync_fetch_and_add(&lost_uses, 1);
	else if (!changed)
		changed = 1;
	return u;
}

/* A file of a tmpfs may have become longer. */
static __always_inline void grown(struct file *file, struct inode *inode, __u32 id, __u32 device)
{
	struct shm_inode key = { .device = device, .generation = BPF_CORE_READ(inode, i_generation), .number = BPF_CORE_READ(inode, i_ino) };
	__u64 *known = bpf_map_lookup_elem(&sizes, &key), before = known ? *known : 0, now = BPF_CORE_READ(inode, i_size);
	if (now == before)
		return;
	bpf_map_update_elem(&sizes, &key, &now, BPF_ANY);
	if (now < before)
		return;
	struct shm_use *u = use_of(id, device, file);
	if (u) {
		__sync_fetch_and_add(&u->sized, 1);
		__sync_fetch_and_add(&u->bytes, now - before);
	}
}

/* A file of a tmpfs was opened: how long it is counts only from here on. */
static __always_inline void opened(struct file *file, struct inode *inode, __u32 id, __u32 device)
{
	__u32 mode = BPF_CORE_READ(file, f_mode);
	if (mode & FMODE_CREATED) {
		struct shm_use *u = use_of(id, device, file);
		if (u)
			__sync_fetch_and_add(&u->made, 1);
	} else if (mode & FMODE_WRITE) {
		struct shm_inode key = { .device = device, .generation = BPF_CORE_READ(inode, i_generation), .number = BPF_CORE_READ(inode, i_ino) };
		__u64 now = BPF_CORE_READ(inode, i_size);
		bpf_map_update_elem(&sizes, &key, &now, BPF_ANY);
	}
}

/* Inlined: Linux 6.1 does not know of what another function returns that it is no NULL, and misses the one that was reserved. */
static __always_inline struct full_event *failed(__u32 id, __u32 device, __u32 call, struct file *file)
{
	struct shm_use *u = use_of(id, device, file);
	if (!u || __sync_fetch_and_add(&u->failed, 1) >= MOST_FULL)
		return 0;
	struct full_event *f = bpf_ringbuf_reserve(&full, sizeof(*f), 0);
	if (!f) {
		__sync_fetch_and_add(&lost_events, 1);
		return 0;
	}
	__builtin_memset(f, 0, sizeof(*f));
	f->ts_ns = bpf_ktime_get_ns();
	f->id = id;
	f->call = call;
	f->device = device;
	f->at_shm = u->at_shm;
	return f;
}

static __always_inline void submit(struct full_event *f)
{
	__u64 wakes = BPF_RB_NO_WAKEUP;
	if (f->ts_ns - rung >= BELL_NS) {
		rung = f->ts_ns;
		wakes = BPF_RB_FORCE_WAKEUP;
	}
	bpf_ringbuf_submit(f, wakes);
}

/* Calls of which there is no descriptor: by their path. */
static __always_inline void by_path(struct proc *p, const char *path, int kind)
{
	char text[9 + NAME_BYTES] = {};
	const char shm[] = "/dev/shm/";
	if (bpf_probe_read_user_str(text, sizeof(text), path) <= 9)
		return;
	for (int i = 0; i < 9; i++)
		if (text[i] != shm[i])
			return;
	if (kind == SHM_UNLINK) {
		struct shm_use *u = use_of(p->id, 0, 0);
		if (u)
			__sync_fetch_and_add(&u->removed, 1);
		return;
	}
	struct full_event *f = failed(p->id, 0, SHM_OPEN, 0);
	if (f) {
		__builtin_memcpy(f->name, text + 9, NAME_BYTES);
		submit(f);
	}
}

/* Never attached: that of files.bpf.c goes on to it. */
SEC("raw_tp/sys_exit")
int BPF_PROG(shm_used, struct pt_regs *regs, long result)
{
	long number = NUMBER(regs);
	int kind = shm_call(number);
	if (!kind || (result < 0 && result != -ENOSPC))
		return 0;
	struct proc *p = current_proc();
	if (!p)
		return 0;
	if (kind == SHM_UNLINK || (kind == SHM_OPEN && result < 0)) {
		if (kind == SHM_OPEN || result == 0)
			by_path(p, (const char *)(number == OPEN || number == CREAT || number == UNLINK ? ARG0(regs) : ARG1(regs)), kind);
		return 0;
	}
	struct file *file = file_of(kind == SHM_OPEN ? result : (int)ARG0(regs));
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	struct super_block *sb = BPF_CORE_READ(inode, i_sb);
	if (BPF_CORE_READ(sb, s_magic) != TMPFS_MAGIC || (BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	__u32 device = BPF_CORE_READ(sb, s_dev);
	if (kind == SHM_OPEN)
		opened(file, inode, p->id, device);
	else if (result >= 0)
		grown(file, inode, p->id, device);
	if (result >= 0)
		return 0;
	struct full_event *f = failed(p->id, device, kind, file);
	if (!f)
		return 0;
	if (number != WRITEV && number != PWRITEV) /* these have a number of buffers */
		f->bytes = kind == SHM_ALLOCATE ? ARG3(regs) : kind == SHM_TRUNCATE ? ARG1(regs) : ARG2(regs);
	room_of(sb, &f->capacity, &f->used);
	bpf_probe_read_kernel_str(f->name, NAME_BYTES, BPF_CORE_READ(file, f_path.dentry, d_name.name));
	submit(f);
	return 0;
}
