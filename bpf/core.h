/* The few kernel types that the programs read, instead of all of vmlinux.h. Layouts are those of the running kernel: CO-RE
   looks each field up by name when a program is loaded, also inside of anonymous structs. Only what is read is declared. */
#ifndef CORE_H
#define CORE_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;
#define true 1
#define false 0

/* include/uapi/linux/bpf.h */
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_PROG_ARRAY = 3, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

#define CORE __attribute__((preserve_access_index))

/* The registers of a system call. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r10, dx, si, di, orig_ax;
} CORE;
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	__u64 regs[31], orig_x0;
	int syscallno;
} CORE;
#endif

struct ns_common {
	unsigned int inum;
} CORE;
struct pid_namespace {
	struct ns_common ns;
} CORE;
struct upid {
	int nr;
	struct pid_namespace *ns;
} CORE;
struct pid {
	unsigned int level;
	struct upid numbers[1]; /* as many as level + 1 */
} CORE;

enum { PIDTYPE_TGID = 1 }; /* include/linux/pid_types.h, since 4.20 */

typedef struct {
	int counter;
} atomic_t;
struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
	unsigned long min_flt, maj_flt; /* of threads that have ended */
	struct pid *pids[4];
} CORE;
enum { SIGNAL_GROUP_EXIT = 4 }; /* include/linux/sched/signal.h */

struct mm_struct {
	unsigned long arg_start, arg_end, start_brk, brk;
} CORE;
struct file;
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} CORE;
struct files_struct {
	struct fdtable *fdt;
} CORE;
struct sched_info {
	unsigned long long run_delay; /* ns that it could have run and had no processor */
} CORE;
struct task_struct {
	int pid, tgid, exit_code;
	unsigned int __state; /* since 5.14 */
	unsigned int flags;
	struct sched_info sched_info;
	unsigned long min_flt, maj_flt;
	char comm[16];
	__u64 start_boottime; /* ns; /proc/PID/stat shows it in ticks. real_start_time before 5.5 */
	struct mm_struct *mm;
	struct task_struct *real_parent, *group_leader;
	struct signal_struct *signal;
	struct files_struct *files;
} CORE;
struct task_struct___before_5_14 {
	long state;
} CORE;
struct linux_binprm {
	const char *interp; /* the program: of a script its interpreter */
} CORE;

struct kernel_siginfo {
	int si_signo, si_code;
} CORE;
/* The address is deep in unions: __sifields._sigfault._addr; SIGSEGV and SIGBUS have it right behind the three ints, aligned. */

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
	void *s_fs_info;
} CORE;
struct inode {
	__u16 i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
	__u32 i_generation;
	__s64 i_size;
} CORE;
struct percpu_counter {
	__s64 count; /* without what each processor has not added yet */
} CORE;
struct shmem_sb_info { /* s_fs_info of a tmpfs, include/linux/shmem_fs.h */
	unsigned long max_blocks; /* pages; 0: no limit */
	struct percpu_counter used_blocks;
} CORE;
enum { TMPFS_MAGIC = 0x01021994 }; /* include/uapi/linux/magic.h */
struct qstr {
	__u32 len;
	const unsigned char *name;
} CORE;
struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
} CORE;
struct vfsmount {
	int mnt_flags;
} CORE;
struct mount { /* fs/mount.h */
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
} CORE;
struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
} CORE;
typedef struct {
	__s64 counter;
} atomic64_t;
typedef struct {
	atomic64_t refcnt;
} file_ref_t;
struct file {
	unsigned int f_mode;
	struct inode *f_inode;
	struct path f_path;
	__s64 f_pos;
	file_ref_t f_ref; /* since 6.13 */
} CORE;
struct file___counted {
	atomic64_t f_count; /* before */
} CORE;
struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_flags, vm_pgoff;
	struct file *vm_file;
} CORE;
enum { PAGE_SHIFT = 12 }; /* of x86-64 and of most of arm64 */
enum { VM_SHARED = 8, VM_GROWSDOWN = 0x100 }; /* include/linux/mm.h */

#endif
