//go:build ignore

/* Who moves the position of an open file that several processes of the run have inherited: lseek(2) and read(2) use, and
   move, the one position of the open file description, which a fork does not copy. At the beginning of the system call,
   where it is still seen from where a read will start. Counted here, per open file and process; a record only when a
   second process moves one. read is hot: what is no read or seek goes first, then processes that neither inherited
   anything nor left it to others, then files that are open once, in one process. pread and mmap have no position. */
#include "core.h"
#define __VMLINUX_H__ 1
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "events.h"
#include "procs.h"

char LICENSE[] SEC("license") = "GPL";

__u64 runs; /* about how often the program has looked at a call of a process of the run */
__u64 lost_files; /* open files that found no room */
__u64 lost_events; /* files that found no room in the ring: nobody asks for their paths */
__u32 last_file; /* numbers of open files */

/* An open file description that a process has inherited and moved, by its address. That is used again when all have closed
   it; so whenever a process moves it after another one, it is looked up in its parent's descriptors, too: both have it. If its
   parent has it no more, it is looked up in those of the other one. */
struct description {
	__u64 inode;
	__u32 number; /* from 1; 0: the parent of the first has it not, and no second one that has it was seen */
	__u32 first, last; /* id of the process that moved it first, and last */
	__u32 told;
	__u64 task; /* of the first */
	__u32 fd, pad; /* its descriptor */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64); /* address of the struct file */
	__type(value, struct description);
} descriptions SEC(".maps");

struct mover {
	__u32 file; /* number of the description */
	__u32 id; /* of the process, see struct proc */
};

/* What one process did to one position. */
struct moves {
	__u64 seeks, reads;
	__u64 turns; /* of both: those before which another process had moved the position */
	__u64 taken; /* reads that began elsewhere than where the process had sought before, another process having moved it */
	__u64 places; /* of them those that sought another place than the one before */
	__u64 again; /* reads that would be among taken, but the process sought the same place again */
	__u64 loose; /* reads without a seek of their own, from where another process had left the position */
	__u64 asked; /* the same of asking for the position */
	__s64 target; /* of the last seek */
	__s64 missed, before; /* targets of the read that began elsewhere last, and of that which was counted last */
	__u32 sought; /* 1: no read since the last seek */
	__u32 open; /* 1 and more: reads since one that began elsewhere, which is not counted yet */
	__s32 fd;
	__s32 parent_fd; /* where its parent has the same open file; -1: it is the parent itself, which has inherited nothing; or its parent has closed it */
	__u64 task;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct mover);
	__type(value, struct moves);
} movers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 << 10);
} positions SEC(".maps");

const struct position_event *unused_position_event __attribute__((unused));

enum { S_IFMT = 0170000, S_IFREG = 0100000 }; /* include/uapi/linux/stat.h */
enum { FMODE_READ = 1, FMODE_ATOMIC_POS = 0x8000 }; /* include/linux/fs.h; the second: of regular files and folders */
enum { SEEK_SET = 0, SEEK_CUR = 1 };
enum { MOST_TRIED = 128 }; /* descriptors of a parent */
enum { PATIENCE = 64 }; /* reads after which one that began elsewhere is not done again */

struct call {
	__u32 fd;
	__s64 offset;
	__u32 whence;
	bool seek;
};

#if defined(__TARGET_ARCH_x86)
enum { READ = 0, LSEEK = 8, READV = 19 }; /* asm/unistd_64.h */

static __always_inline void asked(struct pt_regs *regs, struct call *c)
{
	c->fd = BPF_CORE_READ(regs, di);
	c->offset = BPF_CORE_READ(regs, si);
	c->whence = BPF_CORE_READ(regs, dx);
}
#elif defined(__TARGET_ARCH_arm64)
enum { READ = 63, LSEEK = 62, READV = 65 }; /* asm-generic/unistd.h */

static __always_inline void asked(struct pt_regs *regs, struct call *c)
{
	c->fd = BPF_CORE_READ(regs, orig_x0);
	c->offset = BPF_CORE_READ(regs, regs[1]);
	c->whence = BPF_CORE_READ(regs, regs[2]);
}
#endif

static __always_inline struct task_struct *current(void)
{
	return (void *)bpf_get_current_task();
}

/* Of the calling process. Plain loads, as the helper that reads the kernel's memory takes most of the time that the program does;
   only here, as the verifier (Linux 6.18) goes through all names of the kernel's types for each pointer that is loaded from a task. */
static __always_inline struct file *file_of(__u32 fd)
{
	struct fdtable *table = bpf_get_current_task_btf()->files->fdt;
	struct file *file = 0;
	if (fd < table->max_fds)
		bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd);
	return file;
}

/* whether more than one descriptor is of this open file */
static __always_inline bool shared(struct file *file)
{
	struct file___counted *old = (void *)file;
	if (bpf_core_field_exists(old->f_count))
		return BPF_CORE_READ(old, f_count.counter) > 1;
	return BPF_CORE_READ(file, f_ref.refcnt.counter) > 0; /* since 6.13; it begins with 0 */
}

/* Whether a process, which may have ended, has an open file as fd: memory that is no task any more says no. */
static __always_inline bool has(struct task_struct *task, __u32 fd, struct file *file)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *its = 0;
	if (fd < BPF_CORE_READ(table, max_fds))
		bpf_probe_read_kernel(&its, sizeof(its), BPF_CORE_READ(table, fd) + fd);
	return its == file;
}

/* The first descriptors of a parent: in one piece, as the verifier takes long for a loop that reads them one by one. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64[MOST_TRIED]);
} parents SEC(".maps");

/* At which descriptor the parent of the calling process has a file open that this one has as fd; -1: it has not. */
__noinline int at_parent(__u64 file, __u32 fd)
{
	struct task_struct *parent = BPF_CORE_READ(current(), real_parent);
	if (has(parent, fd, (struct file *)file))
		return fd;
	__u32 zero = 0;
	__u64 *all = bpf_map_lookup_elem(&parents, &zero);
	if (!all)
		return -1;
	struct fdtable *table = BPF_CORE_READ(parent, files, fdt);
	__u32 n = BPF_CORE_READ(table, max_fds) < MOST_TRIED ? 64 : MOST_TRIED; /* 64 at least, include/linux/fdtable.h */
	if (bpf_probe_read_kernel(all, n * sizeof(*all), BPF_CORE_READ(table, fd)))
		return -1;
	for (__u32 i = 0; i < n; i++) /* another descriptor of the same open file: dup(2) */
		if (all[i] == file)
			return i;
	return -1;
}

static __always_inline struct description *described(struct file *file, struct inode *inode, struct proc *p, __u32 fd)
{
	__u64 key = (__u64)file, number = BPF_CORE_READ(inode, i_ino);
	struct description *d = bpf_map_lookup_elem(&descriptions, &key);
	if (d && d->inode == number && d->number)
		return d;
	if (!(p->flags & INHERITS)) /* of the parent only what its children move, too */
		return 0;
	if (d && d->inode == number && d->first == p->id)
		return 0;
	struct description fresh = { .inode = number, .first = p->id, .last = p->id, .task = (__u64)BPF_CORE_READ(current(), group_leader), .fd = fd };
	if (at_parent((__u64)file, fd) >= 0) {
		fresh.number = __sync_fetch_and_add(&last_file, 1) + 1;
	} else if (d && d->inode == number && has((void *)d->task, d->fd, file)) {
		fresh = *d;
		fresh.number = __sync_fetch_and_add(&last_file, 1) + 1;
	}
	if (bpf_map_update_elem(&descriptions, &key, &fresh, BPF_ANY)) {
		__sync_fetch_and_add(&lost_files, 1);
		return 0;
	}
	return fresh.number ? bpf_map_lookup_elem(&descriptions, &key) : 0;
}

static __always_inline struct moves *moves_of(struct mover *key, struct proc *p, struct file *file, __u32 fd)
{
	struct moves *m = bpf_map_lookup_elem(&movers, key);
	if (m)
		return m;
	struct moves none = { .fd = fd, .before = -1, .parent_fd = -1, .task = (__u64)BPF_CORE_READ(current(), group_leader) };
	if (p->flags & INHERITS)
		none.parent_fd = at_parent((__u64)file, fd);
	bpf_map_update_elem(&movers, key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&movers, key);
}

/* Whether two processes have the open file now: the calling one, and its parent or that which moved it last. */
static __always_inline bool held(struct description *d, struct moves *m, struct file *file)
{
	if (m->parent_fd >= 0 && has(BPF_CORE_READ(current(), real_parent), m->parent_fd, file))
		return true;
	struct mover before = { .file = d->number, .id = d->last };
	struct moves *its = bpf_map_lookup_elem(&movers, &before);
	return has((void *)(its ? its->task : d->task), its ? its->fd : d->fd, file);
}

/* A second process moves it: the recorder asks for its path while it is open. */
static __always_inline void tell(struct description *d, struct proc *p, struct file *file, struct inode *inode, __s32 fd)
{
	d->told = 1;
	struct position_event *e = bpf_ringbuf_reserve(&positions, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&lost_events, 1);
		return;
	}
	e->ts_ns = bpf_ktime_get_ns();
	e->file = d->number;
	e->pid = p->pid;
	e->fd = fd;
	e->first = d->first;
	e->second = p->id;
	e->device = BPF_CORE_READ(inode, i_sb, s_dev);
	e->number = d->inode;
	__builtin_memset(e->name, 0, sizeof(e->name));
	bpf_probe_read_kernel_str(e->name, sizeof(e->name), BPF_CORE_READ(file, f_path.dentry, d_name.name));
	bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
}

/* A read that began elsewhere counts once it is clear that the process does not do it again. */
static __always_inline void settle(struct moves *m)
{
	m->taken++;
	if (m->missed != m->before)
		m->places++;
	m->before = m->missed;
	m->open = 0;
}

static __always_inline void seek(struct moves *m, struct call *c)
{
	m->seeks++;
	m->sought = c->whence == SEEK_SET && c->offset >= 0;
	m->target = c->offset;
	if (m->open && m->sought && c->offset == m->missed) {
		m->again++;
		m->open = 0;
	} else if (m->open && m->sought) {
		settle(m);
	}
}

/* tell(), as of np.fromfile, which seeks to where it was told to be: as a read, it is to be where the process has sought. */
static __always_inline void ask(struct moves *m, __s64 position, bool others)
{
	if (m->open && ++m->open > PATIENCE)
		settle(m);
	if (m->sought && others && position != m->target) {
		m->missed = m->target;
		m->open = 1;
		m->sought = 0;
	} else if (!m->sought && others && m->reads) {
		m->asked++;
	}
}

static __always_inline void read_from(struct moves *m, __s64 position, bool others)
{
	m->reads++;
	if (m->open && ++m->open > PATIENCE)
		settle(m);
	if (m->sought && others && position != m->target) {
		m->missed = m->target;
		m->open = 1;
	}
	bool unseen = m->parent_fd < 0 && m->reads == 1 && !m->seeks; /* it may have sought before anybody knew that others have the file */
	if (!m->sought && others && !unseen)
		m->loose++;
	m->sought = 0;
}

SEC("raw_tp/sys_enter")
int BPF_PROG(positions_moved, struct pt_regs *regs, long id)
{
	if (id != READ && id != LSEEK && id != READV)
		return 0;
	struct proc *p = current_proc();
	if (!p)
		return 0;
	if (!(p->flags & (INHERITS | FORKED)))
		return 0;
	struct call c = { .seek = id == LSEEK };
	asked(regs, &c);
	runs++; /* about: two processors may write the same number */
	struct file *file = file_of(c.fd);
	__u32 mode = BPF_CORE_READ(file, f_mode);
	if ((mode & (FMODE_READ | FMODE_ATOMIC_POS)) != (FMODE_READ | FMODE_ATOMIC_POS) || !shared(file))
		return 0;
	struct inode *inode = BPF_CORE_READ(file, f_inode);
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	struct description *d = described(file, inode, p, c.fd);
	if (!d)
		return 0;
	struct mover key = { .file = d->number, .id = p->id };
	struct moves *m = moves_of(&key, p, file, c.fd);
	if (!m)
		return 0;
	bool others = d->last != p->id;
	if (others && !held(d, m, file))
		return 0;
	m->fd = c.fd;
	__s64 position = BPF_CORE_READ(file, f_pos);
	if (c.seek && c.whence == SEEK_CUR && !c.offset) {
		ask(m, position, others);
		return 0; /* nothing was moved */
	}
	if (c.seek)
		seek(m, &c);
	else
		read_from(m, position, others);
	if (others)
		m->turns++;
	d->last = p->id;
	if (!d->told && p->id != d->first)
		tell(d, p, file, inode, c.fd);
	return 0;
}
