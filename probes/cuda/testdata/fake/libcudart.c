/* A stand-in for NVIDIA's libcudart, for tests. It reaches the driver as the real one does: dlopen, then cuGetProcAddress, then
   pointers: never by the dynamic linker. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

typedef int result;
typedef result (*function)();

static function get, to_device, to_host, any, allocate, wait_stream, wait_all, pin, unpin, know, forget, run;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static function of(const char *name)
{
	void *found = 0;
	int status;
	get(name, &found, 13000, 0ul, &status);
	return (function)found;
}

static void begin(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	get = (function)dlsym(driver, "cuGetProcAddress_v2");
	to_device = of("cuMemcpyHtoDAsync");
	to_host = of("cuMemcpyDtoHAsync");
	any = of("cuMemcpyAsync");
	allocate = of("cuMemAlloc");
	wait_stream = of("cuStreamSynchronize");
	wait_all = of("cuCtxSynchronize");
	pin = of("cuMemHostAlloc");
	unpin = of("cuMemFreeHost");
	know = of("cuMemHostRegister");
	forget = of("cuMemHostUnregister");
	run = of("cuLaunchKernel");
}

#define BEGIN pthread_once(&once, begin)
enum { TO_DEVICE = 1, TO_HOST = 2 };

result cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	BEGIN;
	return (kind == TO_DEVICE ? to_device : kind == TO_HOST ? to_host : any)(to, from, bytes, stream);
}
result cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
	BEGIN;
	return any(to, from, bytes, (void *)0);
}
result cudaStreamSynchronize(void *stream) { BEGIN; return wait_stream(stream); }
/* What torch does for a copy that is waited for (c10/cuda/CUDAFunctions.h, memcpy_and_sync): no time goes by between the two. */
result copy_and_wait(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	result r = cudaMemcpyAsync(to, from, bytes, kind, stream);
	return r ? r : cudaStreamSynchronize(stream);
}
result cudaDeviceSynchronize(void) { BEGIN; return wait_all(); }
result cudaMalloc(void **at, size_t bytes) { BEGIN; return allocate(at, bytes); }
result cudaHostAlloc(void **at, size_t bytes, unsigned flags) { BEGIN; return pin(at, bytes, flags); }
result cudaFreeHost(void *at) { BEGIN; return unpin(at); }
result cudaHostRegister(void *at, size_t bytes, unsigned flags) { BEGIN; return know(at, bytes, flags); }
result cudaHostUnregister(void *at) { BEGIN; return forget(at); }
struct dim { unsigned x, y, z; };
result cudaLaunchKernel(const void *f, struct dim grid, struct dim block, void **arguments, size_t shared, void *stream)
{
	BEGIN;
	return run(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, stream, arguments, (void **)0);
}
