package cow

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64 -go-package cow -type block -type pages -type py_process -type py_stack -type py_site cow ../../bpf/cow.bpf.c -- -I../../bpf -Wall -mcpu=v3
