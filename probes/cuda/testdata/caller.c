/* Calls one function of a stand-in for libcuda at a rate, and writes how much CPU time its thread took for a call.
   usage: caller LIBRARY copy|launch CALLS CALLS_PER_SECOND FILE */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(int argc, char **argv)
{
	enum { EVERY_NS = 1000000 };
	if (argc != 6)
		return 2;
	void *library = dlopen(argv[1], RTLD_NOW);
	if (!library)
		return 3;
	int copies = !strcmp(argv[2], "copy");
	int (*copy)(uint64_t, const void *, size_t, void *) = dlsym(library, "cuMemcpyHtoDAsync_v2");
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
		dlsym(library, "cuLaunchKernel");
	long calls = atol(argv[3]), rate = atol(argv[4]), at_once = rate / (1000000000 / EVERY_NS);
	uint64_t spent = 0, next = clock_ns(CLOCK_MONOTONIC);
	for (long done = 0; done < calls; done += at_once) {
		uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		for (long i = 0; i < at_once; i++)
			if (copies)
				copy(1, argv, 1 << 20, 0);
			else
				launch(0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
		spent += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
		next += EVERY_NS;
		struct timespec at = {next / 1000000000, next % 1000000000};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
	}
	FILE *f = fopen(argv[5], "w");
	fprintf(f, "%.1f\n", (double)spent / calls);
	return fclose(f) != 0;
}
