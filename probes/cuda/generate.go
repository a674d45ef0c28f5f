package cuda

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -go-package cuda -type cuda_event -type cuda_key -type cuda_count -type cuda_class -type cuda_after -type py_process -type py_stack -type py_site cuda ../../bpf/cuda.bpf.c -- -I../../bpf -Wall -mcpu=v3
