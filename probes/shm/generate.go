package shm

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -go-package shm -type full_event -type shm_key -type shm_use -type shm_call shm ../../bpf/shm.bpf.c -- -I../../bpf -Wall -mcpu=v3
