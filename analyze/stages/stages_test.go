package stages_test

import (
	"fmt"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/stages"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

const ms = 1_000_000

func at(t int64) traces.Head { return traces.Head{TsNS: t * ms} }

// program is a process with two workers.
type program struct {
	*detecttest.Run
	main uint32
}

func play(t *testing.T) *program {
	p := &program{Run: detecttest.NewRun(t)}
	p.main = p.Process(-1, 0).Proc
	p.Add(p.main, traces.Loader{Head: at(10), Loader: 1, Length: 8, BatchSize: 1, NumWorkers: 2, File: "/a.py", Line: 7, StartMethod: "fork"})
	p.begin(0)
	return p
}

// begin begins a pass with new workers.
func (p *program) begin(pass uint32) {
	p.Add(p.main, traces.Pass{Head: at(int64(10 + 100*pass)), Loader: 1, Pass: pass, Phase: "begin"})
	for w := range uint32(2) {
		pid := int32(1002 + w + 10*pass)
		p.Add(p.worker(pass, w), traces.Process{Head: at(int64(10 + 100*pass)), Pid: pid, Ppid: 1001, Kind: "worker", Hook: "on", Rank: -1, LocalRank: -1})
		p.Add(p.main, traces.Worker{Head: at(int64(10 + 100*pass)), Loader: 1, Pass: pass, Worker: int32(w), Pid: pid, Phase: "begin"})
		p.Add(p.worker(pass, w), traces.Worker{Head: at(int64(11 + 100*pass)), Worker: int32(w), Pid: pid, Phase: "ready"})
	}
}

func (p *program) worker(pass, w uint32) uint32 { return 10 + 2*pass + w }

func (p *program) put(ts int64, pass, batch uint32) {
	p.Add(p.main, traces.BatchPut{Head: at(ts), Loader: 1, Pass: pass, Batch: batch, Worker: int32(batch % 2), Indices: []int64{int64(batch)}})
}

func (p *program) fetch(ts int64, pass, batch uint32, samples int32) {
	p.Add(p.worker(pass, batch%2), traces.BatchFetch{Head: at(ts), Worker: int32(batch % 2), Batch: batch, Fetch: batch / 2, FetchNS: ms, Samples: samples})
}

func (p *program) next(ts int64, pass, batch uint32, status string) {
	p.Add(p.main, traces.BatchNext{Head: at(ts), Loader: 1, Pass: pass, Batch: batch, Worker: -2, Status: status, CallNS: ts*ms - ms/2})
}

// batches is what is said of each, in the order in which it is said.
func batches(t *testing.T, p *program) (all []string) {
	t.Helper()
	run := p.Open(t)
	r, err := analyze.Run(run, nil, timeline.Source)
	if err != nil {
		t.Fatal(err)
	}
	if err := stages.Each(run, r.Timeline, stages.NewClock(run, r.Timeline), func(b *stages.Batch) error {
		text := fmt.Sprintf("%d.%d", b.Pass, b.Number)
		for i, s := range b.Stages {
			if s.Known() {
				text += " " + stages.Stage(i).String()
			}
		}
		if !b.Delivered {
			text += ", not delivered"
		}
		all = append(all, text)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEach(t *testing.T) {
	const whole = " index index_queue fetch collate wait step"
	for name, c := range map[string]struct {
		play func(p *program)
		want []string
	}{
		"in order": {func(p *program) {
			p.put(12, 0, 0)
			p.put(13, 0, 1)
			p.fetch(14, 0, 0, 1)
			p.fetch(15, 0, 1, 1)
			p.next(20, 0, 0, "ok")
			p.next(21, 0, 1, "ok")
			p.next(22, 0, 0, "stop")
		}, []string{"0.0" + whole, "0.1" + whole}},
		"rows of one worker are read late": {func(p *program) {
			p.put(12, 0, 0)
			p.put(13, 0, 1)
			p.fetch(30, 0, 1, 1) // first in its table: what follows is behind it
			p.fetch(14, 0, 0, 1)
			p.next(20, 0, 0, "ok")
			p.next(35, 0, 1, "ok")
			p.next(36, 0, 0, "stop")
		}, []string{"0.0" + whole, "0.1" + whole}},
		"out of order": {func(p *program) {
			p.put(12, 0, 0)
			p.put(13, 0, 1)
			p.fetch(14, 0, 0, 1)
			p.fetch(15, 0, 1, 1)
			p.next(20, 0, 1, "ok")
			p.next(21, 0, 0, "ok")
			p.next(22, 0, 0, "stop")
		}, []string{"0.1" + whole, "0.0" + whole}},
		"the last fetch of a stream brings nothing": {func(p *program) {
			p.put(12, 0, 0)
			p.put(13, 0, 1)
			p.fetch(14, 0, 0, 1)
			p.fetch(15, 0, 1, 0)
			p.next(20, 0, 0, "ok")
			p.next(22, 0, 0, "stop")
		}, []string{"0.0" + whole}},
		"broken off: what was fetched ahead comes when the next pass delivers": {func(p *program) {
			p.put(12, 0, 0)
			p.put(13, 0, 1)
			p.fetch(14, 0, 0, 1)
			p.fetch(15, 0, 1, 1)
			p.next(20, 0, 0, "ok")
			p.begin(1)
			p.put(112, 1, 0)
			p.fetch(114, 1, 0, 1)
			p.next(120, 1, 0, "ok")
			p.next(121, 1, 0, "stop")
		}, []string{"0.0" + whole, "0.1 index index_queue fetch collate, not delivered", "1.0" + whole}},
		"delivered twice": {func(p *program) {
			p.put(12, 0, 0)
			p.fetch(14, 0, 0, 1)
			p.next(20, 0, 0, "ok")
			p.next(21, 0, 0, "ok")
			p.next(22, 0, 0, "stop")
		}, []string{"0.0" + whole}},
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t)
			c.play(p)
			p.Seal()
			if got := batches(t, p); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("\ngot  %q\nwant %q", got, c.want)
			}
		})
	}
}
