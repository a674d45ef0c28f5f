package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// roomy is how much memory reading and judging a trace may take before it is collected more often than Go does by
// itself, which lets the heap grow to twice what is in use.
const roomy = 192 << 20

// boundMemory collects more often where much is in use: from then on a third may be garbage. GOMEMLIMIT and
// GOGC, if they are set, decide alone.
func boundMemory() {
	if os.Getenv("GOMEMLIMIT") != "" || os.Getenv("GOGC") != "" {
		return
	}
	debug.SetMemoryLimit(roomy)
	afterCollection(func(live int64) { debug.SetMemoryLimit(max(roomy, live+live/3)) })
}

// afterCollection calls fn with what is in use in the heap, in bytes, after each collection.
func afterCollection(fn func(live int64)) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var again func(struct{})
	again = func(struct{}) {
		metrics.Read(sample)
		fn(int64(sample[0].Value.Uint64()))
		watched := new([16]byte) // nobody has it: it is gone with the next collection
		runtime.AddCleanup(watched, again, struct{}{})
	}
	again(struct{}{})
}
