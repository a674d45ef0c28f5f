package offcpu

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -go-package offcpu -type off_cpu -type off_kind offcpu ../../bpf/offcpu.bpf.c -- -I../../bpf -Wall -mcpu=v3
