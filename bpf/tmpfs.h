/* How full a tmpfs is, as far as its counter has been added up, and whether it is mounted as shm. */
#ifndef TMPFS_H
#define TMPFS_H

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

/* Whether a file lies in what is mounted on a folder named shm. The mount may be gone with its processes before the recorder can
   look. A function of its own, as the verifier looks at such once. */
__noinline int at_shm(__u64 its)
{
	struct file *file = (void *)its;
	struct vfsmount *mnt = BPF_CORE_READ(file, f_path.mnt);
	struct mount *m = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
	for (int i = 0; i < 4; i++) {
		struct dentry *on = BPF_CORE_READ(m, mnt_mountpoint);
		if (BPF_CORE_READ(on, d_parent) == on) { /* the root of another mount, which it hides */
			m = BPF_CORE_READ(m, mnt_parent);
			continue;
		}
		__u32 name = 0;
		if (BPF_CORE_READ(on, d_name.len) != 3 || bpf_probe_read_kernel(&name, 3, BPF_CORE_READ(on, d_name.name)))
			return false;
		return name == ('s' | 'h' << 8 | 'm' << 16);
	}
	return false;
}

#endif
