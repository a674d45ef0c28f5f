/* Which lines of Python the main thread of a process is executing: its frames, as addresses. What they are of is read from
   its memory by probes/frames. Frames are memory that is in use, so reading them does not fault; offsets that are wrong give
   nothing, or addresses that are of no code. */
#ifndef PYTHON_H
#define PYTHON_H

#include "events.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, __u32); /* pid, as the recorder sees it */
	__type(value, struct py_process);
} pythons SEC(".maps");

/* What the first thread of a process, which this must be, executes; false: not known. The stack is all zeros before. */
static __always_inline bool walk(struct py_stack *s, __u32 pid)
{
	struct py_process *p = bpf_map_lookup_elem(&pythons, &pid);
	if (!p)
		return false;
	__u64 frame = 0;
	bpf_probe_read_user(&frame, sizeof(frame), (void *)(p->thread + p->first));
	if (p->second != PY_NONE && frame)
		bpf_probe_read_user(&frame, sizeof(frame), (void *)(frame + p->second));
	for (int i = 0; i < PY_FRAMES && frame; i++) {
		__u64 address = frame;
		frame = 0;
		if (bpf_probe_read_user(&s->code[i], 8, (void *)(address + p->code)))
			break;
		bpf_probe_read_user(&s->instruction[i], 8 - 4 * (p->index & 1), (void *)(address + p->instruction));
		bpf_probe_read_user(&frame, sizeof(frame), (void *)(address + p->previous));
	}
	return s->code[0];
}

#ifdef FIRST_SITE /* by whoever numbers them: numbers are of all probes */
__u64 lost_sites; /* stacks that found no room in sites */
__u64 last_site;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct py_stack);
	__type(value, struct py_site);
} sites SEC(".maps");

/* The number of what walk finds; 0: not known. */
static __always_inline __u32 site(__u32 id, __u32 pid)
{
	struct py_stack s = {.id = id};
	if (!walk(&s, pid))
		return 0;
	struct py_site *known = bpf_map_lookup_elem(&sites, &s);
	if (!known) {
		struct py_site fresh = {.number = FIRST_SITE + __sync_fetch_and_add(&last_site, 1)};
		bpf_map_update_elem(&sites, &s, &fresh, BPF_NOEXIST);
		known = bpf_map_lookup_elem(&sites, &s);
		if (!known) {
			__sync_fetch_and_add(&lost_sites, 1);
			return 0;
		}
	}
	__sync_fetch_and_add(&known->seen, 1);
	return known->number;
}
#endif

#endif
