/* How full a tmpfs is, as far as its counter has been added up. */
#ifndef SHM_H
#define SHM_H

static __always_inline void room_of(struct super_block *sb, __u64 *capacity, __u64 *used)
{
	*capacity = *used = 0;
	if (BPF_CORE_READ(sb, s_magic) != TMPFS_MAGIC || !bpf_core_field_exists(struct shmem_sb_info, used_blocks))
		return;
	struct shmem_sb_info *info = BPF_CORE_READ(sb, s_fs_info);
	*capacity = BPF_CORE_READ(info, max_blocks);
	__s64 count = BPF_CORE_READ(info, used_blocks.count);
	if (count > 0)
		*used = count;
}

/* Whether a file lies in what is mounted on a folder named shm. The mount may be gone with its processes before the recorder can look. */
static __always_inline bool at_shm(struct file *file)
{
	struct vfsmount *mnt = BPF_CORE_READ(file, f_path.mnt);
	struct mount *m = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
	for (int i = 0; i < 4; i++) {
		struct dentry *on = BPF_CORE_READ(m, mnt_mountpoint);
		if (BPF_CORE_READ(on, d_parent) == on) { /* the root of another mount, which it hides */
			m = BPF_CORE_READ(m, mnt_parent);
			continue;
		}
		char name[4] = {};
		if (BPF_CORE_READ(on, d_name.len) != 3 || bpf_probe_read_kernel(name, 3, BPF_CORE_READ(on, d_name.name)))
			return false;
		return name[0] == 's' && name[1] == 'h' && name[2] == 'm';
	}
	return false;
}

enum { ENOSPC = 28 }; /* include/uapi/asm-generic/errno-base.h */
enum { SHM_UNLINK = SHM_WRITE + 1 };

/* The numbers are those of asm/unistd.h. A program of 32 bits has others and is not seen. */
#if defined(__TARGET_ARCH_x86)
#define NUMBER(regs) ((long)BPF_CORE_READ(regs, orig_ax))
#define ARG0(regs) BPF_CORE_READ(regs, di)
#define ARG1(regs) BPF_CORE_READ(regs, si)
#define ARG2(regs) BPF_CORE_READ(regs, dx)
#define ARG3(regs) BPF_CORE_READ(regs, r10)
enum { OPEN = 2, CREAT = 85, OPENAT = 257, OPENAT2 = 437, FTRUNCATE = 77, FALLOCATE = 285, WRITE = 1, PWRITE64 = 18, WRITEV = 20, PWRITEV = 296, UNLINK = 87, UNLINKAT = 263 };
#elif defined(__TARGET_ARCH_arm64)
#define NUMBER(regs) ((long)BPF_CORE_READ(regs, syscallno))
#define ARG0(regs) BPF_CORE_READ(regs, orig_x0)
#define ARG1(regs) BPF_CORE_READ(regs, regs[1])
#define ARG2(regs) BPF_CORE_READ(regs, regs[2])
#define ARG3(regs) BPF_CORE_READ(regs, regs[3])
enum { OPEN = -2, CREAT = -3, OPENAT = 56, OPENAT2 = 437, FTRUNCATE = 46, FALLOCATE = 47, WRITE = 64, PWRITE64 = 68, WRITEV = 66, PWRITEV = 70, UNLINK = -4, UNLINKAT = 35 };
#endif

/* What a system call may do to shared memory; 0: nothing. */
static __always_inline int shm_call(long number)
{
	if (number == WRITE || number == PWRITE64 || number == WRITEV || number == PWRITEV)
		return SHM_WRITE;
	if (number == OPENAT || number == OPEN || number == OPENAT2 || number == CREAT)
		return SHM_OPEN;
	if (number == FTRUNCATE)
		return SHM_TRUNCATE;
	if (number == FALLOCATE)
		return SHM_ALLOCATE;
	return number == UNLINK || number == UNLINKAT ? SHM_UNLINK : 0;
}

#endif
