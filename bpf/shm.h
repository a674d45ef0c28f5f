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

#endif
