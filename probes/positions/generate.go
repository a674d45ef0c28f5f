package positions

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -go-package positions -type mover -type moves -type position_event positions ../../bpf/positions.bpf.c -- -I../../bpf -Wall -mcpu=v3
