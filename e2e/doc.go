// Package e2e holds what only whole runs can show: `dptrace record` of real
// PyTorch programs and what `dptrace report` then says. Its tests need a Python
// that imports torch: DPTRACE_PYTHON, else python3.
package e2e
