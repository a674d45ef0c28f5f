package files

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -go-package files -type opened -type open_event -type py_stack -type py_process files ../../bpf/files.bpf.c -- -I../../bpf -Wall -mcpu=v3
