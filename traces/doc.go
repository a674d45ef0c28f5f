// Package traces writes and reads the trace of a run: a folder NAME.dptrace/
// with one part per recorder, in it one Arrow IPC stream per table and segment
// beside an index of checksums. FORMAT.md is the public description.
//
// The encoding is Arrow's, but neither side uses an Arrow library. Its writer
// keeps a zstd encoder for each table (2.3 MB each, measured with arrow-go
// 18.8), its reader must not see bytes that were not checked, and checking the
// offsets of strings means decompressing them, after which decoding is a copy.
// The tests of conformance/ hold both sides against arrow-go.
package traces
