package process

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -go-package process -type kind -type event -type fork_event -type exec_event -type exit_event -type mapping -type signal_event -type oom_event process ../../bpf/process.bpf.c -- -I../../bpf -Wall -mcpu=v3
