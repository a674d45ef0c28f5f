package offcpu_test

import (
	"maps"
	"testing"
	"time"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/evidence/offcpu"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

const sec = int64(time.Second)

// at is a time of the recording.
func at(s int64) traces.Head { return traces.Head{TsNS: s * sec} }

// fetch from one second on, for so long, after so long a wait for an index.
func fetch(from, took, idle int64) traces.BatchFetch {
	return traces.BatchFetch{Head: at(from), WaitNS: idle * sec, FetchNS: took * sec, Samples: 8}
}

// TestBlocked: what a worker waits for while it fetches, and not before, between
// and after its fetches.
func TestBlocked(t *testing.T) {
	fetches := []any{fetch(100, 10, 90), fetch(120, 10, 10)} // idle for 10 s, then for good
	for _, c := range []struct {
		name string
		rows []any
		want map[offcpu.Kind]int64 // s
	}{
		{"no kernel tier", fetches, nil},
		{"a forked worker, told at its end", append(fetches[:2:2], traces.OffCpu{Head: at(200), Inherits: true, ReadNS: 12 * sec, LockNS: 3 * sec, ChannelNS: 80 * sec}),
			map[offcpu.Kind]int64{offcpu.Reading: 12, offcpu.Locks: 3}}, // 70 of 80 behind its last fetch, 10 between them
		{"it waits for a socket as well", append(fetches[:2:2], traces.OffCpu{Head: at(130), Inherits: true, ChannelNS: 15 * sec}),
			map[offcpu.Kind]int64{offcpu.Channel: 5}},
		{"its feeder thread, at its end", append(fetches[:2:2], traces.OffCpu{Head: at(200), Inherits: true, ReadNS: 12 * sec, LockNS: 70 * sec, ChannelNS: 10 * sec}),
			map[offcpu.Kind]int64{offcpu.Reading: 12, offcpu.Locks: 10}}, // no more than the 10 s that nothing else explains
		{"a spawned worker, which has read modules before", append(fetches[:2:2],
			traces.OffCpu{Head: at(50), ReadNS: 30 * sec}, traces.OffCpu{Head: at(99), ReadNS: 40 * sec, ChannelNS: 2 * sec},
			traces.OffCpu{Head: at(115), ReadNS: 45 * sec, ChannelNS: 7 * sec}, traces.OffCpu{Head: at(130), ReadNS: 46 * sec, ChannelNS: 12 * sec, SleepNS: 7 * sec}),
			map[offcpu.Kind]int64{offcpu.Reading: 6, offcpu.Sleep: 7}},
		{"a spawned worker that is told of once only", append(fetches[:2:2], traces.OffCpu{Head: at(130), ReadNS: 46 * sec}), map[offcpu.Kind]int64{}},
		{"more than there was time", append(fetches[:2:2], traces.OffCpu{Head: at(130), Inherits: true, SleepNS: 400 * sec}), map[offcpu.Kind]int64{offcpu.Sleep: 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := detecttest.NewRun(t)
			main := run.Process(-1, 0).Proc
			const worker = 100
			run.Add(main, traces.Loader{Loader: 1, Length: 16, NumWorkers: 1, Batched: "yes", File: "/home/me/proj/train.py", Line: 88},
				traces.Pass{Loader: 1, Phase: "begin"}, traces.Worker{Loader: 1, Pid: 5000, Phase: "begin"})
			run.Add(worker, traces.Process{Pid: 5000, Kind: "worker", Hook: "on", Rank: -1}, traces.Worker{Pid: 5000, Phase: "ready"})
			for _, row := range c.rows {
				switch r := row.(type) {
				case traces.BatchFetch:
					r.Proc = worker
					run.W.Append(r)
				case traces.OffCpu:
					r.Proc = worker
					run.W.Append(r)
				}
			}
			run.W.Append(traces.OffCpu{Head: traces.Head{TsNS: 130 * sec, Proc: main}, ReadNS: 99 * sec}) // it fetches nothing
			run.Seal()
			e, err := collect.Read(run.Open(t), offcpu.Source)
			if err != nil {
				t.Fatal(err)
			}
			got := collect.Of(e, offcpu.Source).Of(collect.Of(e, timeline.Source).Loaders...)
			in := map[offcpu.Kind]int64{}
			for k, d := range got.In {
				in[k] = int64(d / time.Second)
			}
			if !maps.Equal(in, c.want) {
				t.Errorf("%v, want %v", in, c.want)
			}
			if c.want != nil && (got.Workers != 1 || got.Fetches != 20*time.Second) {
				t.Errorf("%+v", got)
			}
			if parts := got.Parts(); len(parts) != len(c.want) || len(parts) > 1 && parts[0].Share < parts[1].Share {
				t.Errorf("parts %+v", parts)
			}
		})
	}
}
