package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// Two workers, each of which copies 60 to 110 MB of the objects of a dataset
// where that can happen: more than 5 % of memoryLimit in all.
const (
	clean = "memory-growth-cow clean; dataset-copied-per-worker not-applicable"
	grown = "memory-growth-cow proven dataset.records; dataset-copied-per-worker not-applicable"
	// In the kernel tier with the lines that write.
	written = "memory-growth-cow proven dataset.records executing: records.py; dataset-copied-per-worker not-applicable"
	seems   = "memory-growth-cow likely dataset.records; dataset-copied-per-worker not-applicable"
	copied  = "dataset-copied-per-worker proven"
	silent  = "" // neither proven nor likely, whatever the rule

	copiedTwice = "memory-growth-cow likely 2 processes forked to run read copied args[0].records"
	small       = "memory-growth-cow not-applicable; dataset-copied-per-worker clean"
)

var memoryCases = []tierCase{
	// What workers copy of Python objects that they only read. The hook tier sees
	// private pages; that they are copies is proven for what two workers have
	// beyond what there was: not enough where other objects lie on the same blocks.
	{name: "dicts", often: true, command: "python records.py dicts fork", limited: true, hook: seems, kernel: written},
	{name: "dicts, three passes of the same workers", command: "python records.py dicts fork --passes 3 --persistent", limited: true,
		hook: seems, kernel: written},
	{name: "tuples", command: "python records.py tuples fork --megabytes 170", limited: true, hook: seems, kernel: written},
	{name: "strings", command: "python records.py strings fork", limited: true, hook: grown, kernel: "same"},
	{name: "mapping", command: "python records.py mapping fork --megabytes 120", limited: true, hook: seems, kernel: written},
	{name: "object array", command: "python records.py objects fork", limited: true, hook: grown, kernel: "same"},
	{name: "a few dicts", command: "python records.py dicts fork --megabytes 2", limited: true, hook: clean, kernel: "same"},

	// The same without objects, and growth of other kinds.
	{name: "numpy twin", often: true, command: "python records.py numpy fork --megabytes 40", limited: true, hook: clean, kernel: "same"},
	{name: "bytes twin", command: "python records.py blob fork --megabytes 40", limited: true, hook: clean, kernel: "same"},
	{name: "growing cache", command: "python cache.py", limited: true, hook: clean, kernel: "same"},
	{name: "garbage collector", command: "python collect.py", limited: true, hook: clean, kernel: "same"},

	// Processes that the program forks itself: what they copy counts where their parent holds it still.
	{name: "start_processes", command: "python forked.py dicts", limited: true,
		hook: "memory-growth-cow likely 2 processes forked to run read args[0].records themselves", kernel: copiedTwice},
	{name: "a global of Process.run", command: "python forked.py module", limited: true,
		hook: "memory-growth-cow likely 2 processes forked to run Adder __main__.TABLE themselves", kernel: "memory-growth-cow likely Adder copied __main__.TABLE"},
	{name: "columns of start_processes", command: "python forked.py columns", limited: true, hook: silent, kernel: "same"},
	{name: "processes that do not read", command: "python forked.py idle", limited: true, hook: silent, kernel: "same"},
	{name: "records that are handed over", command: "python forked.py handed", limited: true, hook: silent, kernel: "same"},
	{name: "records in whose place are others", command: "python forked.py reused", limited: true, hook: silent, kernel: "same"},
	{name: "a parent that has ended", command: "python forked.py ends", limited: true, hook: silent, kernel: "same"},

	// What is pickled into each worker.
	{name: "dicts, spawn", command: "python records.py dicts spawn --passes 2 --megabytes 60", limited: true, hook: copied, kernel: "same"},
	{name: "dicts, forkserver", command: "python records.py dicts forkserver --megabytes 60", limited: true, hook: copied, kernel: "same"},
	{name: "dicts, spawn, three passes of the same workers", command: "python records.py dicts spawn --passes 3 --persistent --megabytes 60",
		limited: true, hook: copied, kernel: "same"},
	{name: "numpy, spawn", command: "python records.py numpy spawn --megabytes 60", limited: true, hook: copied, kernel: "same"},
	{name: "a few dicts, spawn", command: "python records.py dicts spawn --megabytes 1", limited: true, hook: small, kernel: "same"},
}

// TestMemory runs the memory rules' programs in both tiers. Those that copy
// objects write down how much: the trace must say the same.
func TestMemory(t *testing.T) {
	eachTier(t, "memory", memoryCases, func(t *testing.T, c tierCase, f form, r tierRun) {
		if c.kernel == written || c.hook == grown {
			compareCopied(t, f, r)
		}
	})
}

// compareCopied compares, for each worker: in the kernel tier all that it has
// copied since the fork with its own smaps_rollup; in the hook tier what
// it has copied of its dataset with the pages that hold the objects, to 5 %.
func compareCopied(t *testing.T, f form, r tierRun) {
	t.Helper()
	run, err := traces.Open(r.trace)
	if err != nil {
		t.Fatal(err)
	}
	pids := map[uint32]int32{}
	page := int64(os.Getpagesize())
	counted := map[uint32]map[string]int64{} // by process and kind of mapping
	private := map[uint32]*[2]int64{}        // by process: first and last
	err = run.Each([]string{"process", "cow", "private"}, func(b traces.Batch) error {
		switch rows := b.Rows.(type) {
		case []traces.Process:
			for _, row := range rows {
				pids[row.Proc] = row.Pid
			}
		case []traces.Cow:
			for _, row := range rows {
				if counted[row.Proc] == nil {
					counted[row.Proc] = map[string]int64{}
				}
				counted[row.Proc][row.Mapping] = page * int64(row.User+row.Kernel)
			}
		case []traces.Private:
			for _, row := range rows {
				if row.Extent != 0 {
					continue
				}
				if private[row.Proc] == nil {
					private[row.Proc] = &[2]int64{row.Private, row.Private}
				}
				private[row.Proc][1] = row.Private
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pages := truth(t, filepath.Join(r.folder, "pages"))
	compared := 0
	for proc, pid := range pids {
		file := filepath.Join(r.folder, fmt.Sprintf("copied.%d", pid))
		if _, err := os.Stat(file); err != nil {
			continue // no worker
		}
		// A page is a worker's alone, too, when all others that shared it have copied theirs: on a busy machine up to 7 %
		// of what smaps_rollup calls private was never copied. That none is missed, to the page, is tested in probes/cow.
		got, want, less, more := int64(0), truth(t, file), 0.1, 0.01
		if f.tier == "kernel" {
			for _, kind := range []string{"heap", "anon", "stack", "file", "unknown"} {
				got += counted[proc][kind]
			}
		} else {
			want, less, more = pages, 0.05, 0.05
			if p := private[proc]; p != nil {
				got = p[1] - p[0]
			}
		}
		compared++
		off := float64(got-want) / float64(want)
		t.Logf("pid %d: %d bytes copied, in truth %d: %+.2f %%; kinds %v", pid, got, want, 100*off, counted[proc])
		if off < -less || off > more {
			t.Errorf("pid %d: %d bytes copied, want %d, at most %.0f %% less and %.0f %% more", pid, got, want, 100*less, 100*more)
		}
	}
	if compared < 2 {
		t.Errorf("%d workers compared, want 2", compared)
	}
}

// truth is a number that the program has written.
func truth(t *testing.T, file string) int64 {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
