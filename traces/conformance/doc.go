// Package conformance holds traces against arrow-go, which shares no code with
// them: its reader must read what traces writes, traces what its writer writes,
// as far as FORMAT.md allows. It is a module of its own, so that dptrace does not
// need arrow-go; `make test-go` runs it.
package conformance
