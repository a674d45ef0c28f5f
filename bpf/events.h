/* All that crosses from the kernel side to Go. bpf2go makes the Go types from this file. */
#ifndef EVENTS_H
#define EVENTS_H

enum kind { KIND_FORK = 1, KIND_EXEC, KIND_EXIT, KIND_SIGNAL, KIND_OOM, KINDS };

/* Begins every event: which process it is about. */
struct event {
	__u64 ts_ns; /* CLOCK_MONOTONIC */
	__u32 kind;
	__u32 id; /* of the process, see struct proc */
	__u32 pid; /* of its thread group, in the recorder's pid namespace; 0: not visible there */
	__u32 pad;
	__u64 start_ns; /* CLOCK_BOOTTIME */
};

struct fork_event {
	struct event e; /* the child */
	__u32 parent_id, ppid;
	__u64 flags; /* of clone(2) */
	__u8 comm[16];
};

struct exec_event {
	struct event e;
	__u32 ppid, args_length; /* bytes of args that are filled */
	__u8 exe[256];
	__u8 args[512]; /* separated by zeros */
};

struct exit_event {
	struct event e;
	__s32 status; /* as wait(2) gives it */
	__u32 pad;
	__u64 user, kernel, after_fork; /* see struct proc */
	__u64 faults; /* page faults of all kinds, in its whole life */
};

#define PATH_NAMES 6
#define NAME_BYTES 40

/* What is mapped at an address. */
struct mapping {
	__u32 found; /* 1: what follows is known; 2: nothing is mapped there; 0: not known */
	__u32 heap; /* 1: it is that of brk(2) */
	__u64 start, end, flags, magic; /* magic: of the file system, 0 without file */
	__u64 size, offset; /* of the file, and where in it the address is; bytes */
	__u64 capacity, used; /* of a tmpfs: pages; 0: no limit */
	__u64 at_shm; /* as in struct shm_use */
	__u8 names[PATH_NAMES][NAME_BYTES]; /* of the file and the folders above it, the innermost first */
};

struct signal_event {
	struct event e; /* to whom */
	__s32 signal, code;
	__u32 sender_id, sender_pid; /* 0: not of the run; the kernel, or not visible to the recorder */
	__u32 ancestor; /* 1: the sender is the process itself or an ancestor of it within the run */
	__u32 pad;
	__u8 comm[16]; /* of the sender */
	__u64 address; /* of a fault */
	struct mapping mapping;
};

struct oom_event {
	struct event e;
	__u8 comm[16];
};

#define PY_FRAMES 12
#define PY_NONE 0xffffffff

/* Where the main thread of a process keeps its Python frames: probes/frames. Offsets in bytes. */
struct py_process {
	__u64 thread; /* address of its PyThreadState */
	__u32 first; /* in it: of the pointer to the frame that runs, or to what has that */
	__u32 second; /* in the latter; PY_NONE: there is no such thing */
	__u32 code, previous, instruction; /* in a frame */
	__u32 index; /* 1: instruction is an int; 0: an address */
};

/* Of such a stack. */
struct py_site {
	__u32 number; /* unlike that of any other of its probe, from FIRST_SITE */
	__u32 seen; /* how often it was looked at */
};

/* What a thread was executing, the innermost first. */
struct py_stack {
	__u32 id; /* of the process, see struct proc */
	__u32 pad;
	__u64 code[PY_FRAMES], instruction[PY_FRAMES]; /* 0: there is no such frame, or it could not be read */
};

#define MOST_FILES 4096 /* of a process that are told: beyond it more of the same are opened */

/* A file that a process has opened for the first time, in a ring of its own. */
struct open_event {
	__u64 ts_ns; /* CLOCK_MONOTONIC */
	__u32 id, pid; /* of the process, see struct proc */
	__u32 device, generation, pad; /* with number: see struct opened */
	__s32 folder; /* descriptor that a relative path begins in; AT_FDCWD: the working directory */
	__u64 number;
	struct py_stack stack; /* what opens it, in a process that was not forked: workers open millions */
	__u8 path[512]; /* as the program gave it */
};

#define MOST_FULL 64 /* failures of a process that are told one by one */

enum shm_call { SHM_OPEN = 1, SHM_TRUNCATE, SHM_ALLOCATE, SHM_WRITE };

/* A call that found no room in a tmpfs. */
struct full_event {
	__u64 ts_ns; /* CLOCK_MONOTONIC */
	__u32 id, call;
	__u32 device, at_shm; /* the kernel's own dev_t, 0: not known; and as in struct shm_use */
	__u64 bytes; /* that were asked for */
	__u64 capacity, used; /* pages; 0: no limit, or not known */
	__u8 name[NAME_BYTES]; /* of the file */
};

/* What a process has done in a tmpfs so far. */
struct shm_key {
	__u32 id; /* of the process, see struct proc */
	__u32 device; /* as above; 0: of calls that have but a path, which begins with /dev/shm/ */
};
struct shm_use {
	__u64 made, removed; /* files, and names of files */
	__u64 sized, bytes; /* calls that made a file longer, and by how much */
	__u64 failed; /* calls, for want of room */
	__u64 at_shm; /* 1: it is mounted on a folder named shm; 0: only the recorder can find out whether it is at /dev/shm */
};

/* An open file whose position a second process has moved, in a ring of its own. */
struct position_event {
	__u64 ts_ns; /* CLOCK_MONOTONIC */
	__u32 file; /* number of the open file */
	__u32 pid; /* of the second process */
	__s32 fd; /* its descriptor */
	__u32 first, second; /* ids of the processes, see struct proc */
	__u32 device; /* with number: the inode */
	__u64 number;
	__u8 name[64]; /* of the file, without its folders; the process may be gone when it is asked */
};

/* What a thread waits for off its processor, see bpf/offcpu.bpf.c. */
enum off_kind {
	OFF_READ, /* bytes of a file or a block device, in a call that reads them */
	OFF_PAGE, /* a page of a mapping, or of its own memory that was swapped out */
	OFF_NAME, /* a file by its name: open, stat, folders */
	OFF_CHANNEL, /* a pipe, a socket, a device; poll and its kind */
	OFF_LOCK, /* futex: a lock, or another thread */
	OFF_SLEEP,
	OFF_CHILD, /* a child's end */
	OFF_WRITE, /* writing to files */
	OFF_OTHER,
	OFF_KINDS,
};

/* What a watched function of CUDA does: see bpf/cuda.bpf.c and probes/cuda/functions.go. */
enum cuda_class {
	CUDA_COPY = 1, /* (target, source, bytes, stream) */
	CUDA_COPY_NOW, /* the same without a stream: it waits */
	CUDA_COPY_2D, /* (struct, stream) */
	CUDA_COPY_2D_NOW, /* (struct) */
	CUDA_COPY_BATCH, /* (targets, sources, sizes, count, ...) */
	CUDA_STREAM_SYNC, /* (stream) */
	CUDA_CONTEXT_SYNC, /* () */
	CUDA_EVENT_SYNC, /* (event) */
	CUDA_EVENT, /* counted: an event is recorded, or a stream waits for one */
	CUDA_COPY_DEVICE, /* counted: a copy within or between devices */
	CUDA_LAUNCH, /* counted: the ninth argument is the stream */
	CUDA_LAUNCH_EX, /* counted: (struct, ...), the stream lies in it */
	CUDA_LAUNCH_GRAPH, /* counted: (graph, stream) */
	CUDA_PINNED, /* (address of the answer, bytes) */
	CUDA_MANAGED, /* the same */
	CUDA_REGISTERED, /* (address, bytes) */
	CUDA_FREED, /* (address) */
	CUDA_UNREGISTERED, /* (address) */
	CUDA_CAPTURE, /* () of this thread begins */
	CUDA_CAPTURED, /* () ends */
	CUDA_RUNTIME, /* of libcudart, counted */
	CUDA_RUNTIME_COPY, /* counted; the fourth argument is the direction: cudaMemcpyKind */
};

#define CUDA_SMALL 65536 /* bytes: copies up to here are only counted */

enum cuda_after { CUDA_ONLY_AFTER = 1, CUDA_ALSO_AFTER }; /* the record says no more; or it is of a copy or of memory, too */

struct cuda_event {
	__u64 ts_ns, dur_ns; /* CLOCK_MONOTONIC, of the call */
	__u32 id, pid; /* of the process, see struct proc */
	__u32 thread, main; /* thread in the initial pid namespace; 1: it is the first of its process */
	__u32 function; /* number that the probe gave it */
	enum cuda_class class;
	__s32 result; /* of the call; 0 of what is only seen to begin */
	__u32 direction; /* of a copy, as the runtime was asked for it: cudaMemcpyKind + 1; 0: the runtime was not asked. In two dimensions
	                    source and target memory as CUmemorytype: 16 * source + target */
	__u64 source, target, bytes, rows, stream; /* of a copy; source and bytes of memory */
	__u64 gap_ns; /* of the first call of a thread after a copy that was told: since that copy ended */
	__u32 after; /* CUDA_…_AFTER: this is the first call after such a copy; 0: it is not */
	__u32 compute; /* stream of the thread's latest launch: 1 the copy's, 2 another one, 0 none was seen */
	__u32 capturing;
	__u32 site; /* of a copy: number of what the thread was executing, see struct py_stack; 0: not looked at, or not known */
};

struct cuda_key {
	__u32 id, function;
};
struct cuda_count {
	__u64 calls, ns, bytes, small, small_ns, failed;
};

#endif
