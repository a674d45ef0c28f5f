//go:build ignore

/* What processes of the run ask of the CUDA driver: copies between host and device, what waits for them, and the memory that is
   pinned. Uprobes on what libcuda exports, as cuGetProcAddress gives out the same addresses: they see the calls of any
   language and of a runtime that is linked statically. Counted are all calls; a record is written of copies of more than
   64 KiB, of the call that comes next in the same thread, and of memory. Launches are seen to begin only, and copies in
   libcudart: these tell the direction of a copy that the driver is not told, and are a second count of the first.

   The cookie of a probe is the number that probes/cuda/functions.go gives the function, and its class. */
#include "core.h"
#define __VMLINUX_H__ 1
#include <bpf/bpf_helpers.h>

#include "events.h"
#include "procs.h"
#define FIRST_SITE 1
#include "python.h"

char LICENSE[] SEC("license") = "GPL";

enum { BPF_MAP_TYPE_TASK_STORAGE = 29, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

__u64 lost_events; /* records that found no room in the ring */
__u64 lost_counts; /* calls that found no room in counts */
__u64 limited_events; /* records of copies that were left out, as they came too often */
__u64 lost_calls; /* calls of threads that could not be noted, as memory was short */
__u64 last_event; /* ns: when a record was written last */

const volatile __u64 most_copies; /* that have records in WINDOW_NS, of all processes together; others are counted like all calls */
#define WINDOW_NS 100000000
__u64 window_began, window_copies;

#define RING_BYTES (2 << 20)
#define BELL_BYTES (512 << 10)
#define BELL_NS 100000000

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, RING_BYTES);
} cuda_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 16384);
	__type(key, struct cuda_key);
	__type(value, struct cuda_count);
} counts SEC(".maps");

const struct cuda_event *unused_cuda_event __attribute__((unused));
const enum cuda_after *unused_cuda_after __attribute__((unused));
const enum cuda_class *unused_cuda_class __attribute__((unused));

/* A call of the driver that has begun in a thread. The driver does not call its own exports. */
struct call {
	__u64 began; /* ns; 0: none */
	__u64 source, target, bytes, rows, stream;
	__u32 function, class, direction, pad;
};

struct thread {
	struct call driver;
	__u32 id, pid; /* of its process, see struct proc; 0: not asked yet */
	__u64 copied; /* ns: when the copy ended that was told and that no call has come after yet; 0: none */
	__u64 compute; /* stream of the latest launch */
	__u32 launched; /* 1: there was one */
	__u32 direction; /* of the runtime's copy that has begun, + 1 */
	__u32 capturing;
	__u32 copies; /* that came often */
	__u64 last_copy; /* ns: when the latest ended */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

/* The registers, as include/uapi/asm/ptrace.h has them: their places are the kernel's promise. */
#if defined(__TARGET_ARCH_x86)
struct registers {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#define ARG0(r) ((r)->di)
#define ARG1(r) ((r)->si)
#define ARG2(r) ((r)->dx)
#define ARG3(r) ((r)->cx)
#define RESULT(r) ((__s32)(r)->ax)
/* Of integer arguments six come in registers; then the stack, behind the return address. */
static __always_inline __u64 ninth(struct registers *r)
{
	__u64 value = 0;
	bpf_probe_read_user(&value, sizeof(value), (void *)(r->sp + 8 + 2 * 8));
	return value;
}
#elif defined(__TARGET_ARCH_arm64)
struct registers {
	__u64 regs[31], sp, pc, pstate;
};
#define ARG0(r) ((r)->regs[0])
#define ARG1(r) ((r)->regs[1])
#define ARG2(r) ((r)->regs[2])
#define ARG3(r) ((r)->regs[3])
#define RESULT(r) ((__s32)(r)->regs[0])
/* Eight in registers, then the stack. */
static __always_inline __u64 ninth(struct registers *r)
{
	__u64 value = 0;
	bpf_probe_read_user(&value, sizeof(value), (void *)r->sp);
	return value;
}
#endif

/* CUDA_MEMCPY2D of cuda.h. */
struct copy_2d {
	__u64 source_x, source_y;
	__u32 source_memory, pad;
	__u64 source_host, source_device, source_array, source_pitch;
	__u64 target_x, target_y;
	__u32 target_memory, pad2;
	__u64 target_host, target_device, target_array, target_pitch;
	__u64 width, height; /* bytes, rows */
};
enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2 }; /* CUmemorytype */

static __always_inline void count(__u32 id, __u32 function, __u64 ns, __u64 bytes, bool copy, bool failed)
{
	struct cuda_key key = {id, function};
	struct cuda_count *c = bpf_map_lookup_elem(&counts, &key);
	if (!c) {
		struct cuda_count none = {};
		bpf_map_update_elem(&counts, &key, &none, BPF_NOEXIST);
		c = bpf_map_lookup_elem(&counts, &key);
		if (!c) {
			__sync_fetch_and_add(&lost_counts, 1);
			return;
		}
	}
	__sync_fetch_and_add(&c->calls, 1);
	if (ns)
		__sync_fetch_and_add(&c->ns, ns);
	if (failed)
		__sync_fetch_and_add(&c->failed, 1);
	if (!copy)
		return;
	__sync_fetch_and_add(&c->bytes, bytes);
	if (bytes <= CUDA_SMALL) {
		__sync_fetch_and_add(&c->small, 1);
		__sync_fetch_and_add(&c->small_ns, ns);
	}
}

static __always_inline struct cuda_event *event(struct thread *t, __u64 now)
{
	struct cuda_event *e = bpf_ringbuf_reserve(&cuda_calls, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&lost_events, 1);
		return 0;
	}
	__u64 both = bpf_get_current_pid_tgid();
	__builtin_memset(e, 0, sizeof(*e));
	e->ts_ns = now;
	e->id = t->id;
	e->pid = t->pid;
	e->thread = both;
	e->main = (__u32)both == both >> 32;
	return e;
}

/* The reader looks by the clock while something comes; the first record after a pause wakes it, and a ring that fills. */
static __always_inline void submit(struct cuda_event *e, __u64 now)
{
	__u64 last = last_event;
	last_event = now;
	bool wake = now - last > BELL_NS || bpf_ringbuf_query(&cuda_calls, 0) > BELL_BYTES;
	bpf_ringbuf_submit(e, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

/* The first call of a thread after a copy that was told, if it has no record of its own. */
static __always_inline void comes_next(struct thread *t, __u32 function, __u32 class, __u64 began, __u64 ns, __u64 stream)
{
	__u64 copied = t->copied;
	t->copied = 0;
	if (!copied)
		return;
	struct cuda_event *e = event(t, began);
	if (!e)
		return;
	e->after = CUDA_ONLY_AFTER;
	e->dur_ns = ns;
	e->function = function;
	e->class = class;
	e->stream = stream;
	e->gap_ns = began > copied ? began - copied : 0;
	submit(e, began + ns);
}

static __always_inline bool copies(__u32 class)
{
	return class >= CUDA_COPY && class <= CUDA_COPY_BATCH;
}

static __always_inline bool waits(__u32 class)
{
	return class >= CUDA_STREAM_SYNC && class <= CUDA_EVENT_SYNC;
}

static __always_inline void read_2d(struct call *c, __u64 address)
{
	struct copy_2d d = {};
	if (bpf_probe_read_user(&d, sizeof(d), (void *)address))
		return;
	c->source = d.source_memory == MEMORY_HOST ? d.source_host : d.source_device;
	c->target = d.target_memory == MEMORY_HOST ? d.target_host : d.target_device;
	c->source += d.source_y * d.source_pitch + d.source_x;
	c->target += d.target_y * d.target_pitch + d.target_x;
	c->rows = d.height;
	c->bytes = d.width * d.height;
	c->direction = 16 * (d.source_memory & 15) + (d.target_memory & 15);
}

#define BATCH 16 /* copies of one call whose sizes are added up; of more the rest is taken to be like them */

static __always_inline void read_batch(struct call *c, struct registers *r)
{
	__u64 sizes[BATCH] = {}, n = ARG3(r), read = n < BATCH ? n : BATCH, sum = 0;
	bpf_probe_read_user(&c->target, 8, (void *)ARG0(r));
	bpf_probe_read_user(&c->source, 8, (void *)ARG1(r));
	bpf_probe_read_user(sizes, (read & 31) * 8 <= sizeof(sizes) ? (read & 31) * 8 : sizeof(sizes), (void *)ARG2(r));
	for (int i = 0; i < BATCH; i++)
		sum += sizes[i];
	c->rows = n;
	c->bytes = n > BATCH ? sum / BATCH * n : sum;
}

/* A call of the driver begins. */
static __always_inline void begins(struct thread *t, struct registers *r, __u32 function, __u32 class, __u64 now)
{
	struct call *c = &t->driver;
	c->began = now;
	c->function = function;
	c->class = class;
	c->source = c->target = c->bytes = c->stream = 0;
	c->rows = 1;
	c->direction = t->direction;
	switch (class) {
	case CUDA_COPY:
		c->stream = ARG3(r);
		__attribute__((fallthrough));
	case CUDA_COPY_NOW:
		c->target = ARG0(r);
		c->source = ARG1(r);
		c->bytes = ARG2(r);
		break;
	case CUDA_COPY_2D:
		c->stream = ARG1(r);
		__attribute__((fallthrough));
	case CUDA_COPY_2D_NOW:
		read_2d(c, ARG0(r));
		break;
	case CUDA_COPY_BATCH:
		read_batch(c, r);
		break;
	case CUDA_STREAM_SYNC:
		c->stream = ARG0(r);
		break;
	default: /* of memory: its address, or where that will be written, and bytes */
		c->source = ARG0(r);
		c->bytes = ARG1(r);
	}
}

/* Two processors may both begin a window: then a few more are told. */
static __always_inline bool too_many(__u64 now)
{
	if ((__s64)(now - window_began) > WINDOW_NS) {
		window_began = now;
		window_copies = 0;
	}
	if (__sync_fetch_and_add(&window_copies, 1) < most_copies)
		return false;
	__sync_fetch_and_add(&limited_events, 1);
	return true;
}

#define OFTEN_NS 100000

/* Whether it is looked who asks for a copy, which takes as long again as to tell of it: of those that come often by chance. */
static __always_inline bool looked_at(struct thread *t, __u64 now)
{
	__u64 last = t->last_copy;
	t->last_copy = now;
	return now - last > OFTEN_NS || t->copies++ < 64 || !(bpf_get_prandom_u32() & 15);
}

static __always_inline void ends(struct thread *t, struct registers *r, __u64 now)
{
	struct call *c = &t->driver;
	__u64 began = c->began, ns = now - began;
	__u32 class = c->class;
	__s32 result = RESULT(r);
	c->began = 0;
	bool copy = copies(class);
	count(t->id, c->function, ns, c->bytes, copy, result != 0);
	bool captures = class == CUDA_CAPTURE || class == CUDA_CAPTURED;
	if (captures && !result)
		t->capturing = class == CUDA_CAPTURE;
	if (captures || (copy ? c->bytes <= CUDA_SMALL : waits(class) || result)) {
		comes_next(t, c->function, class, began, ns, c->stream);
		return;
	}
	if (copy && too_many(now)) {
		t->copied = 0;
		return;
	}
	struct cuda_event *e = event(t, began);
	if (!e)
		return;
	if (t->copied) {
		e->after = CUDA_ALSO_AFTER;
		e->gap_ns = began > t->copied ? began - t->copied : 0;
	}
	t->copied = copy ? now : 0;
	e->dur_ns = ns;
	e->function = c->function;
	e->class = class;
	e->result = result;
	e->direction = c->direction;
	e->source = c->source;
	e->target = c->target;
	e->bytes = c->bytes;
	e->rows = c->rows;
	e->stream = c->stream;
	e->capturing = t->capturing;
	if (t->launched)
		e->compute = t->compute == c->stream ? 1 : 2;
	if (class == CUDA_PINNED || class == CUDA_MANAGED)
		bpf_probe_read_user(&e->source, 8, (void *)c->source);
	if (copy && e->main && looked_at(t, now))
		e->site = site(t->id, t->pid);
	submit(e, now);
}

/* A launch, or what is told of an event: seen to begin only. */
static __always_inline void passes(struct thread *t, struct registers *r, __u32 function, __u32 class)
{
	count(t->id, function, 0, 0, false, false);
	if (t->copied)
		comes_next(t, function, class, bpf_ktime_get_ns(), 0, 0);
	switch (class) {
	case CUDA_LAUNCH:
		t->compute = ninth(r);
		t->launched = 1;
		break;
	case CUDA_LAUNCH_EX:
		bpf_probe_read_user(&t->compute, 8, (void *)(ARG0(r) + 32)); /* CUlaunchConfig.hStream */
		t->launched = 1;
		break;
	case CUDA_LAUNCH_GRAPH:
		t->compute = ARG1(r);
		t->launched = 1;
		break;
	}
}

#define FUNCTION(cookie) ((cookie) & 0xffff)
#define CLASS(cookie) ((cookie) >> 16 & 0xffff)

/* What is known of this thread; none: it is not of the run. */
static __always_inline struct thread *this_thread(void)
{
	struct thread *t = bpf_task_storage_get(&threads, (void *)bpf_get_current_task_btf(), 0, 0);
	if (t && t->id)
		return t;
	struct proc *p = current_proc();
	if (!p)
		return 0;
	t = bpf_task_storage_get(&threads, (void *)bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		__sync_fetch_and_add(&lost_calls, 1);
		return 0;
	}
	t->id = p->id;
	t->pid = p->pid;
	return t;
}

static __always_inline int enter(struct registers *r, __u64 cookie)
{
	struct thread *t = this_thread();
	if (!t)
		return 0;
	__u32 class = CLASS(cookie);
	if (class >= CUDA_EVENT && class <= CUDA_LAUNCH_GRAPH) {
		passes(t, r, FUNCTION(cookie), class);
	} else if (class == CUDA_RUNTIME || class == CUDA_RUNTIME_COPY) {
		count(t->id, FUNCTION(cookie), 0, class == CUDA_RUNTIME_COPY ? ARG2(r) : 0, class == CUDA_RUNTIME_COPY, false);
		t->direction = class == CUDA_RUNTIME_COPY ? (__u32)ARG3(r) + 1 : 0;
	} else {
		begins(t, r, FUNCTION(cookie), class, bpf_ktime_get_ns());
	}
	return 0;
}

static __always_inline int leave(struct registers *r, __u64 cookie)
{
	struct thread *t = bpf_task_storage_get(&threads, (void *)bpf_get_current_task_btf(), 0, 0);
	if (!t)
		return 0;
	if (CLASS(cookie) == CUDA_RUNTIME_COPY)
		t->direction = 0;
	else if (t->driver.began && t->driver.function == FUNCTION(cookie))
		ends(t, r, bpf_ktime_get_ns());
	return 0;
}

/* All functions with one link, since 6.6. */
SEC("uprobe.multi/enter")
int enter_all(struct registers *r) { return enter(r, bpf_get_attach_cookie(r)); }

SEC("uretprobe.multi/leave")
int leave_all(struct registers *r) { return leave(r, bpf_get_attach_cookie(r)); }

/* One perf event for each. */
SEC("uprobe/enter")
int enter_one(struct registers *r) { return enter(r, bpf_get_attach_cookie(r)); }

SEC("uretprobe/leave")
int leave_one(struct registers *r) { return leave(r, bpf_get_attach_cookie(r)); }
