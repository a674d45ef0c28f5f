/* A stand-in for NVIDIA's libcuda.so.1, for tests: what it exports looks to a probe as the driver's exports do (branches 535 and
   550: a stub that compares, branches and jumps through a table), and takes as long as a model of one device says. Streams are
   queues that end at some time; host memory is copied at 24 GB/s if it is pinned, else at 6 GB/s after all that is queued, by
   the caller; of at most 64 KiB the caller never waits. FAKE_CUDA_MODEL=0: nothing takes any time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef int result;
typedef uint64_t address;
typedef void *stream;

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_READY = 600 };
enum { PAGEABLE, PINNED, DEVICE, MANAGED };
enum { STREAMS = 64, RANGES = 4096, EVENTS = 4096, SMALL = 65536, LAST_PART = 4 << 20 };

static const double PINNED_BYTES_PER_NS = 24, PAGEABLE_BYTES_PER_NS = 6;
static const uint64_t CALL_NS = 1500;

__attribute__((visibility("hidden"))) int fake_flag; /* that the stubs look at; the driver sets it to 0x321cba00 as it is unloaded */
static int model = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void wait_until(uint64_t t)
{
	struct timespec at = {t / 1000000000, t % 1000000000};
	if (model)
		while (now() < t)
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
}

__attribute__((constructor)) static void begin(void)
{
	const char *value = getenv("FAKE_CUDA_MODEL");
	if (value)
		model = atoi(value);
}

static struct queue {
	stream handle;
	uint64_t ends;
} queues[STREAMS];
static int n_queues;

static struct queue *queue_of(stream s)
{
	for (int i = 0; i < n_queues; i++)
		if (queues[i].handle == s)
			return &queues[i];
	if (n_queues == STREAMS)
		abort();
	queues[n_queues].handle = s;
	return &queues[n_queues++];
}

static struct range {
	address at;
	uint64_t bytes;
	int kind;
} ranges[RANGES];
static int n_ranges;

static result add(address at, uint64_t bytes, int kind)
{
	pthread_mutex_lock(&lock);
	if (n_ranges == RANGES)
		abort();
	ranges[n_ranges++] = (struct range){at, bytes, kind};
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}

static result removed(address at)
{
	result r = INVALID_VALUE;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < n_ranges; i++)
		if (ranges[i].at == at) {
			ranges[i] = ranges[--n_ranges];
			r = SUCCESS;
			break;
		}
	pthread_mutex_unlock(&lock);
	return r;
}

static int kind_of(address at)
{
	for (int i = 0; i < n_ranges; i++)
		if (at >= ranges[i].at && at < ranges[i].at + ranges[i].bytes)
			return ranges[i].kind;
	return PAGEABLE;
}

static uint64_t later(uint64_t a, uint64_t b) { return a > b ? a : b; }

static result copy(address to, address from, uint64_t bytes, stream s, int waits)
{
	static uint64_t engine; /* when it is free again */
	if (!model)
		return SUCCESS;
	pthread_mutex_lock(&lock);
	int to_device = kind_of(from) != DEVICE, host = kind_of(to_device ? from : to);
	struct queue *q = queue_of(s);
	uint64_t t = now(), begins = later(later(q->ends, engine), t), until = t + CALL_NS;
	uint64_t ends = begins + bytes / (host == PAGEABLE && bytes > SMALL ? PAGEABLE_BYTES_PER_NS : PINNED_BYTES_PER_NS);
	q->ends = engine = ends;
	if (host == PAGEABLE && bytes > SMALL) /* all but the last part is staged when it returns */
		until = to_device ? ends - (bytes < LAST_PART ? bytes : LAST_PART) / PINNED_BYTES_PER_NS : ends;
	else if (waits && bytes > SMALL)
		until = ends;
	pthread_mutex_unlock(&lock);
	wait_until(until);
	return SUCCESS;
}

/* CUDA_MEMCPY2D of cuda.h. */
struct copy_2d {
	size_t source_x, source_y;
	int source_memory;
	const void *source_host;
	address source_device;
	void *source_array;
	size_t source_pitch, target_x, target_y;
	int target_memory;
	void *target_host;
	address target_device;
	void *target_array;
	size_t target_pitch, width, height;
};

static result copy_rows(const struct copy_2d *c, stream s, int waits)
{
	enum { HOST = 1 };
	address from = c->source_memory == HOST ? (address)c->source_host : c->source_device;
	address to = c->target_memory == HOST ? (address)c->target_host : c->target_device;
	return copy(to, from, c->width * c->height, s, waits);
}

static result launch(uint64_t us, stream s)
{
	if (!model)
		return SUCCESS;
	pthread_mutex_lock(&lock);
	struct queue *q = queue_of(s);
	q->ends = later(q->ends, now()) + us * 1000;
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}

static result wait_for(stream s)
{
	pthread_mutex_lock(&lock);
	uint64_t ends = queue_of(s)->ends;
	pthread_mutex_unlock(&lock);
	wait_until(ends);
	return SUCCESS;
}

static uint64_t events[EVENTS];
static int n_events;

#define IMPLEMENT(name, ...) result fake_##name(__VA_ARGS__)
IMPLEMENT(cuInit, unsigned flags) { return SUCCESS; }
IMPLEMENT(cuDriverGetVersion, int *version) { *version = 13000; return SUCCESS; }
IMPLEMENT(cuMemAlloc_v2, address *at, size_t bytes)
{
	static address next = 0x7e0000000000;
	pthread_mutex_lock(&lock);
	*at = next;
	next += (bytes + 0x1fffff) & ~0x1fffffull;
	pthread_mutex_unlock(&lock);
	return add(*at, bytes, DEVICE);
}
IMPLEMENT(cuMemFree_v2, address at) { return removed(at); }
IMPLEMENT(cuMemHostAlloc, void **at, size_t bytes, unsigned flags)
{
	*at = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return add((address)*at, bytes, PINNED);
}
IMPLEMENT(cuMemAllocHost_v2, void **at, size_t bytes) { return fake_cuMemHostAlloc(at, bytes, 0); }
IMPLEMENT(cuMemFreeHost, void *at) { return removed((address)at); }
IMPLEMENT(cuMemHostRegister_v2, void *at, size_t bytes, unsigned flags) { return bytes ? add((address)at, bytes, PINNED) : INVALID_VALUE; }
IMPLEMENT(cuMemHostUnregister, void *at) { return removed((address)at); }
IMPLEMENT(cuMemAllocManaged, address *at, size_t bytes, unsigned flags)
{
	*at = (address)mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return add(*at, bytes, MANAGED);
}
IMPLEMENT(cuMemcpyHtoDAsync_v2, address to, const void *from, size_t bytes, stream s) { return copy(to, (address)from, bytes, s, 0); }
IMPLEMENT(cuMemcpyHtoD_v2, address to, const void *from, size_t bytes) { return copy(to, (address)from, bytes, 0, 1); }
IMPLEMENT(cuMemcpyDtoHAsync_v2, void *to, address from, size_t bytes, stream s) { return copy((address)to, from, bytes, s, 0); }
IMPLEMENT(cuMemcpyDtoH_v2, void *to, address from, size_t bytes) { return copy((address)to, from, bytes, 0, 1); }
IMPLEMENT(cuMemcpyDtoDAsync_v2, address to, address from, size_t bytes, stream s) { return copy(to, from, bytes, s, 0); }
IMPLEMENT(cuMemcpyAsync, address to, address from, size_t bytes, stream s) { return copy(to, from, bytes, s, 0); }
IMPLEMENT(cuMemcpy, address to, address from, size_t bytes) { return copy(to, from, bytes, 0, 1); }
IMPLEMENT(cuMemcpy2DAsync_v2, const struct copy_2d *c, stream s) { return copy_rows(c, s, 0); }
IMPLEMENT(cuMemcpy2D_v2, const struct copy_2d *c) { return copy_rows(c, 0, 1); }
IMPLEMENT(cuMemcpyBatchAsync_v2, address *to, address *from, size_t *bytes, size_t count, void *attributes, size_t *indices, size_t n, stream s)
{
	for (size_t i = 0; i < count; i++)
		copy(to[i], from[i], bytes[i], s, 0);
	return SUCCESS;
}
/* The function stands for how many microseconds it takes. */
IMPLEMENT(cuLaunchKernel, void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, stream s, void **a,
	void **e) { return launch((uint64_t)f, s); }
struct launch_config {
	unsigned grid[3], block[3], shared;
	stream s;
};
IMPLEMENT(cuLaunchKernelEx, const struct launch_config *c, void *f, void **a, void **e) { return launch((uint64_t)f, c->s); }
IMPLEMENT(cuGraphLaunch, void *graph, stream s) { return launch(100, s); }
IMPLEMENT(cuStreamCreate, stream *s, unsigned flags)
{
	static uintptr_t handle = 0x55550000;
	*s = (stream)(handle += 0x100);
	return SUCCESS;
}
IMPLEMENT(cuStreamBeginCapture_v2, stream s, int mode) { return SUCCESS; }
IMPLEMENT(cuStreamEndCapture, stream s, void **graph) { *graph = (void *)1; return SUCCESS; }
IMPLEMENT(cuStreamSynchronize, stream s) { return wait_for(s); }
IMPLEMENT(cuCtxSynchronize, void)
{
	for (int i = 0; i < n_queues; i++)
		wait_until(queues[i].ends);
	return SUCCESS;
}
IMPLEMENT(cuEventCreate, void **event, unsigned flags)
{
	if (n_events == EVENTS)
		abort();
	*event = (void *)(uintptr_t)n_events++;
	return SUCCESS;
}
IMPLEMENT(cuEventRecord, void *event, stream s)
{
	pthread_mutex_lock(&lock);
	events[(uintptr_t)event] = queue_of(s)->ends;
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}
IMPLEMENT(cuEventQuery, void *event) { return now() < events[(uintptr_t)event] ? NOT_READY : SUCCESS; }
IMPLEMENT(cuEventSynchronize, void *event) { wait_until(events[(uintptr_t)event]); return SUCCESS; }
IMPLEMENT(cuStreamWaitEvent, stream s, void *event, unsigned flags)
{
	pthread_mutex_lock(&lock);
	struct queue *q = queue_of(s);
	q->ends = later(q->ends, events[(uintptr_t)event]);
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}

#define EXPORTS(X) \
	X(cuInit) X(cuDriverGetVersion) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemHostAlloc) X(cuMemAllocHost_v2) X(cuMemFreeHost) \
	X(cuMemHostRegister_v2) X(cuMemHostUnregister) X(cuMemAllocManaged) X(cuMemcpyHtoDAsync_v2) X(cuMemcpyHtoD_v2) \
	X(cuMemcpyDtoHAsync_v2) X(cuMemcpyDtoH_v2) X(cuMemcpyDtoDAsync_v2) X(cuMemcpyAsync) X(cuMemcpy) X(cuMemcpy2DAsync_v2) \
	X(cuMemcpy2D_v2) X(cuMemcpyBatchAsync_v2) X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuGraphLaunch) X(cuStreamCreate) \
	X(cuStreamBeginCapture_v2) X(cuStreamEndCapture) X(cuStreamSynchronize) X(cuCtxSynchronize) X(cuEventCreate) X(cuEventRecord) \
	X(cuEventQuery) X(cuEventSynchronize) X(cuStreamWaitEvent) X(cuGetProcAddress_v2)

/* As the driver does: what it hands out is what it exports, in the newest version. */
result cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status);
IMPLEMENT(cuGetProcAddress_v2, const char *name, void **found, int version, uint64_t flags, int *status)
{
	char versioned[128];
	Dl_info self;
	if (!dladdr((void *)cuGetProcAddress_v2, &self))
		return INVALID_VALUE;
	void *library = dlopen(self.dli_fname, RTLD_NOLOAD | RTLD_NOW);
	snprintf(versioned, sizeof(versioned), "%s_v2", name);
	*found = dlsym(library, versioned);
	if (!*found)
		*found = dlsym(library, name);
	if (status)
		*status = *found ? 0 : 1;
	return SUCCESS;
}

#define POINTER(name) __attribute__((visibility("hidden"))) void *table_##name = (void *)fake_##name;
EXPORTS(POINTER)

#if defined(__x86_64__)
#define STUB(name) \
	__asm__(".text\n.globl " #name "\n.type " #name ",@function\n.p2align 4\n" #name ":\n" \
		"	cmpl $0x321cba00, fake_flag(%rip)\n	je 1f\n	jmp *table_" #name "(%rip)\n" \
		"1:	mov $4, %eax\n	ret\n.size " #name ",.-" #name "\n");
#elif defined(__aarch64__)
#define STUB(name) \
	__asm__(".text\n.globl " #name "\n.type " #name ",%function\n.p2align 4\n" #name ":\n" \
		"	adrp x16, table_" #name "\n	ldr x16, [x16, :lo12:table_" #name "]\n	br x16\n.size " #name ",.-" #name "\n");
#endif
EXPORTS(STUB)
