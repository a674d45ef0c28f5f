// Package e2e holds what only whole runs can show: `dptrace record` of real
// PyTorch programs and what `dptrace report` then says. Its tests need a Python
// that imports torch: DPTRACE_PYTHON, else python3.
//
// `make test-all` runs all but TestGPU and TestRandomGrowth, which are `make
// gpu-check` and `make growth-check`; `make test` (go test -short) runs a failing
// program for each rule, and those cases that say that they are run often. A
// recorded program always starts as a user's does: its hook must be there before
// torch is imported, and its process descend from the recorder that watches it.
package e2e
