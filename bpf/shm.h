/* The system calls that change shared memory. */
#ifndef SHM_H
#define SHM_H

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
