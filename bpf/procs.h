/* The processes of the run, shared by all programs: who is followed, and what was counted for each. */
#ifndef PROCS_H
#define PROCS_H

enum {
	INHERITS = 1, /* forked, with a copy of its parent's memory, and has not called exec */
	FORKED = 2, /* has forked a child that got a copy of its memory: its pages were write-protected anew */
};

struct proc {
	__u32 id; /* from 1, never used again: pids are */
	__u32 flags;
	__u32 pid; /* as the recorder sees it */
	__u32 files; /* that it has opened for reading, each counted once */
	__u64 user, kernel; /* write faults on present pages since the fork, by the program and inside of system calls */
	__u64 after_fork; /* the same after it has forked itself: copies and mere write-protection look alike */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, __u32); /* tgid in the initial pid namespace */
	__type(value, struct proc);
} procs SEC(".maps");

static __always_inline struct proc *proc_of(__u32 tgid)
{
	return bpf_map_lookup_elem(&procs, &tgid);
}

static __always_inline struct proc *current_proc(void)
{
	return proc_of(bpf_get_current_pid_tgid() >> 32);
}

#endif
