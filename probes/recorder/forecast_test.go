package recorder

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

type nowhere struct{}

func (nowhere) Append(any) {}

const mb = 1 << 20

// A loader of 2 workers with 2 batches each ahead, of 4 MiB, unless a case changes that.
func TestForecast(t *testing.T) {
	type facts struct {
		loader   traces.Loader
		batch    traces.BatchBytes
		shm      procfs.Shm
		before   int64 // free when the workers were started
		ranks    int
		backward bool // rows of the workers come before those of their parent
		inTurn   bool // each rank ends before the next begins
		late     bool // all have ended before the rows of the workers come
	}
	for name, tc := range map[string]struct {
		change func(*facts)
		want   string // "" nothing is said
	}{
		"fits":                     {func(f *facts) { f.shm.Capacity, f.shm.Free, f.before = 64*mb, 64*mb, 64*mb }, ""},
		"read after the end":       {func(f *facts) { f.late = true }, "21.0 MB"},
		"fits to the byte":         {func(f *facts) { f.shm.Capacity, f.shm.Free, f.before = 20*mb, 20*mb, 20*mb }, ""},
		"does not":                 {func(f *facts) {}, "up to 5 batches of 4.2 MB at once take 21.0 MB, 16.8 MB of 16.8 MB were free"},
		"which size":               {func(f *facts) {}, "docker run --shm-size=64m does"},
		"what fits":                {func(f *facts) {}, "num_workers=1, prefetch_factor=1 fits"},
		"nothing fits":             {func(f *facts) { f.batch.Bytes = 9 * mb }, "Not even one worker fits"},
		"rows the other way round": {func(f *facts) { f.backward = true }, "21.0 MB"},
		"batches are there":        {func(f *facts) { f.shm.Capacity, f.shm.Free, f.before = 24*mb, 4*mb, 24*mb }, ""},
		"others have filled it":    {func(f *facts) { f.shm.Capacity, f.shm.Free, f.before = 64*mb, 8*mb, 8*mb }, "8.4 MB of 67.1 MB were free"},
		"it was made larger":       {func(f *facts) { f.shm.Capacity, f.shm.Free = 64*mb, 60*mb }, ""},
		"no workers":               {func(f *facts) { f.loader.NumWorkers = 0 }, ""},
		"through the pipe":         {func(f *facts) { f.batch.Bytes = 0 }, ""},
		"shared by the dataset":    {func(f *facts) { f.batch.Shared = 3 * mb }, ""},
		"a short pass":             {func(f *facts) { f.loader.Length, f.loader.BatchSize = 12, 4 }, ""},
		"no tmpfs":                 {func(f *facts) { f.shm.Tmpfs = false }, ""},
		"ranks share it":           {func(f *facts) { f.ranks, f.shm.Capacity, f.shm.Free, f.before = 2, 32*mb, 32*mb, 32*mb }, "up to 10 batches"},
		"one after another":        {func(f *facts) { f.ranks, f.inTurn, f.shm.Capacity, f.shm.Free, f.before = 2, true, 32*mb, 32*mb, 32*mb }, ""},
		"one rank alone fits":      {func(f *facts) { f.shm.Capacity, f.shm.Free, f.before = 32*mb, 32*mb, 32*mb }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts{loader: traces.Loader{Loader: 1, File: "/home/me/train.py", Line: 12, NumWorkers: 2, Prefetch: 2, Length: 1000, BatchSize: 4},
				batch:  traces.BatchBytes{Bytes: 4 * mb},
				shm:    procfs.Shm{Device: 7, Tmpfs: true, Capacity: 16 * mb, Free: 16 * mb, Nodes: -1},
				before: 16 * mb, ranks: 1}
			tc.change(&f)
			var said []string
			out := newForecast(nowhere{}, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
			out.look = func(int32) (procfs.Shm, error) { return f.shm, nil }
			capacity := f.shm.Capacity
			if name == "it was made larger" {
				capacity = 16 * mb
			}
			out.Append(traces.ShmRoom{Head: traces.Head{TsNS: 1}, Device: 7, Capacity: capacity, Free: f.before})
			out.Append(traces.ShmRoom{Head: traces.Head{TsNS: 9}, Device: 7, Capacity: capacity, Free: f.shm.Free})
			for rank := range uint32(f.ranks) {
				l := f.loader
				l.Proc = 1 + rank
				rows := []any{&l}
				for i := range uint32(2) {
					rows = append(rows, &traces.Worker{Head: traces.Head{TsNS: 5, Proc: 1 + rank}, Loader: 1, Pid: int32(100 + 10*rank + i), Phase: "begin"})
				}
				for i := range uint32(2) {
					h := traces.Head{TsNS: 6, Proc: 10 + 10*rank + i}
					b := f.batch
					b.Head = h
					ends := []any{&traces.Worker{Head: traces.Head{TsNS: 7, Proc: 1 + rank}, Loader: 1, Pid: int32(100 + 10*rank + i), Phase: "exit"},
						traces.Exit{Head: h}, traces.Exit{Head: traces.Head{Proc: 1 + rank}}}
					of := []any{&traces.Worker{Head: h, Pid: int32(100 + 10*rank + i), Phase: "ready"}, &b}
					if f.late {
						of = append(ends, of...)
					}
					if f.backward {
						rows = append(of, rows...)
					} else {
						rows = append(rows, of...)
					}
				}
				for _, r := range rows {
					out.Append(r)
				}
				if f.inTurn {
					out.Append(traces.Exit{Head: traces.Head{Proc: 1 + rank}})
				}
			}
			if got := strings.Join(said, "\n"); tc.want == "" && got != "" || !strings.Contains(got, tc.want) || len(said) > 1 {
				t.Errorf("said %q, want %q", said, tc.want)
			}
		})
	}
}
