package sharedfileposition_test

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/sharedfileposition"
	"github.com/dptrace/dptrace/traces"
)

// scene is a main process (number 1) whose loader has two workers in each of two
// passes: numbers 2 and 3, then 4 and 5.
type scene struct{ *detecttest.Run }

func newScene(t *testing.T, tier, method string) scene {
	s := scene{detecttest.NewRun(t)}
	s.Meta("tier", tier)
	s.Add(1, traces.Process{Pid: 100, Ppid: 99, Kind: "target", Hook: "on", Cwd: "/home/me", Torch: "2.15.0", Rank: -1, LocalRank: -1})
	s.Add(1, traces.Loader{Loader: 1, NumWorkers: 2, Prefetch: 2, BatchSize: 2, Length: 100, StartMethod: method, File: "/home/me/train.py", Line: 8})
	for pass := range uint32(2) {
		s.Add(1, traces.Pass{Loader: 1, Pass: pass, Phase: "begin"})
		for i := range int32(2) {
			proc, pid := 2+2*pass+uint32(i), 101+2*int32(pass)+i
			s.Add(proc, traces.Process{Pid: pid, Ppid: 100, Kind: "worker", Hook: "on", Torch: "2.15.0", Rank: -1, LocalRank: -1})
			s.Add(1, traces.Worker{Loader: 1, Pass: pass, Worker: i, Pid: pid, Phase: "begin"})
			s.Add(proc, traces.Worker{Worker: i, Pid: pid, Phase: "ready"})
		}
		for b := range uint32(4) {
			s.Add(1, traces.BatchPut{Loader: 1, Pass: pass, Batch: b, Worker: int32(b % 2), Indices: []int64{int64(2 * b), int64(2*b + 1)}})
			s.Add(2+2*pass+b%2, traces.BatchFetch{Worker: int32(b % 2), Batch: b, Fetch: b / 2, Samples: 2})
			s.Add(1, traces.BatchNext{Loader: 1, Pass: pass, Batch: b, Worker: -2, Status: "ok", CallNS: s.Now(), Grad: true})
		}
		s.Add(1, traces.Pass{Loader: 1, Pass: pass, Phase: "end", End: "exhausted", Delivered: 4})
	}
	return s
}

// counted says that the kernel looked.
func (s scene) counted() { s.Add(0, traces.Overhead{Probe: "positions"}) }

// moved is what a process did to an open file.
func (s scene) moved(proc, file uint32, p traces.Position) {
	p.File, p.Path, p.Fd, p.Source, p.Final = file, "/data/train.bin", 5, "kernel", true
	p.Origin = cmp.Or(p.Origin, "inherited")
	s.Add(proc, p)
}

// astray is that reads of two workers went astray.
func (s scene) astray() {
	for proc := range uint32(4) {
		s.moved(2+proc, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9, Taken: 5, Places: 5, Sought: int64(proc)})
	}
}

// digests is what the fetches of both passes gave, as far as equal numbers are equal contents.
func (s scene) digests(what func(pass int, index int64) int64) {
	for pass := range 2 {
		for b := range uint32(4) {
			s.Add(2+2*uint32(pass)+b%2, detecttest.Digest(traces.Digest{Worker: int32(b % 2), Batch: b, Fetch: b / 2},
				[]int64{int64(2 * b), int64(2*b + 1)}, func(i int64) detecttest.What { return detecttest.What{Content: fmt.Sprint(what(pass, i))} }))
		}
	}
}

// opened is how often a process has opened the file, and what did that first.
func (s scene) opened(proc uint32, count uint64) {
	s.Add(proc, traces.Opened{Path: "/data/train.bin", Count: 1, Source: "kernel", Site: 1 << 31})
	s.Add(proc, traces.CallSite{Site: 1 << 31, Frames: "/usr/lib/python3.11/gzip.py:191 GzipFile.__init__\n/home/me/data.py:7 Records.__init__\n/home/me/train.py:8 <module>"})
	s.Add(proc, traces.Opened{Path: "/data/train.bin", Count: count, Source: "kernel"})
}

// seen is what looks at a position told.
func (s scene) seen(proc uint32, looks, moved, back uint64) {
	p := traces.Position{Looks: looks, Moved: moved, Back: back, Sought: -1, Source: "fdinfo", Final: true}
	if looks > 1 {
		p.File, p.Path, p.Fd, p.Origin = 1, "/data/train.bin", 5, "inherited"
	}
	s.Add(proc, p)
}

var cases = []struct {
	name, tier string
	play       func(scene)
	want       string
	says       []string
}{
	// Bugs.
	{"reads go astray", "kernel", func(s scene) {
		for proc := range uint32(4) {
			s.moved(2+proc, 1, traces.Position{Seeks: 100, Reads: 100, Turns: 60, Taken: 20, Places: 20, Sought: 4096 * int64(proc)})
		}
	}, "proven", []string{"80 reads began at the wrong place of train.bin", "80 of 400 reads (20 %)", "Workers 0 and 1 move", "4 processes", "os.pread", "not:another process have"}},
	{"one each, at two places", "kernel", func(s scene) {
		s.moved(2, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 6, Taken: 1, Places: 1, Sought: 4096})
		s.moved(3, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 6, Taken: 1, Places: 1, Sought: 8192})
	}, "proven", nil},
	{"a worker and the main process", "kernel", func(s scene) {
		s.moved(1, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9, Taken: 5, Places: 5, Sought: 1})
		s.moved(2, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9})
	}, "proven", []string{"Worker 0 and another process"}},
	{"the main process alone takes what the worker only sought", "kernel", func(s scene) {
		s.moved(1, 1, traces.Position{Seeks: 10, Turns: 9})
		s.moved(3, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9, Taken: 5, Places: 5, Sought: 1})
	}, "proven", []string{"Worker 1 and another process"}},
	{"counted as they go on, and the recording was cut", "cut", func(s scene) {
		for _, n := range []uint64{2, 20} {
			s.moved(2, 1, traces.Position{Seeks: n, Reads: n, Turns: n, Taken: n, Places: n, Sought: 1})
			s.moved(3, 1, traces.Position{Seeks: n, Reads: n, Turns: n, Taken: n, Places: n, Sought: 2})
		}
	}, "proven", []string{"40 of 40 reads"}},
	{"opened at a line that the kernel saw", "kernel", func(s scene) {
		s.opened(1, 1)
		s.moved(2, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9, Taken: 5, Places: 5, Sought: 1})
		s.moved(3, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9})
	}, "proven", []string{"train.bin was opened at data.py:7 (Records.__init__), called from train.py:8, before the workers were forked"}},
	{"opened twice: which of them is shared was not looked at", "kernel", func(s scene) {
		s.opened(1, 2)
		s.moved(2, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9, Taken: 5, Places: 5, Sought: 1})
		s.moved(3, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9})
	}, "proven", []string{"train.bin was opened, first at data.py:7 (Records.__init__), called from train.py:8, before"}},
	{"opened at a line of a worker's, which is another open file", "kernel", func(s scene) {
		s.opened(2, 1)
		s.moved(2, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9, Taken: 5, Places: 5, Sought: 1})
		s.moved(3, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9})
	}, "proven", []string{"train.bin was opened before the workers were forked"}},
	{"samples that come out differently", "kernel", func(s scene) {
		s.astray()
		s.digests(func(pass int, i int64) int64 { return i + 100*int64(pass)*(i%4/2) })
	}, "proven", []string{"Of 8 samples whose content is known of two times or more, 4 did not come out the same each time. Random transforms do that, too."}},
	{"samples that come out the same", "kernel", func(s scene) {
		s.astray()
		s.digests(func(_ int, i int64) int64 { return i })
	}, "proven", []string{"Of 8 samples whose content is known of two times or more, none came out differently"}},
	{"samples that nobody looked at", "kernel", func(s scene) { s.astray() }, "proven", []string{"not:came out"}},
	{"closed by the main process since", "kernel", func(s scene) {
		for proc := range uint32(2) {
			s.moved(2+proc, 1, traces.Position{Origin: "shared", Seeks: 10, Reads: 10, Turns: 9, Taken: 5, Places: 5, Sought: int64(proc)})
		}
	}, "proven", []string{"was opened before the workers were forked, and closed there since: 2 processes"}},
	{"two files", "kernel", func(s scene) {
		for file := range uint32(2) {
			s.moved(2, 1+file, traces.Position{Seeks: 10, Reads: 10, Turns: 9, Taken: 5, Places: 5, Sought: 1})
			s.moved(3, 1+file, traces.Position{Seeks: 10, Reads: 10, Turns: 9})
		}
	}, "proven", nil},
	{"under forkserver, whose preloaded module has opened it", "forkserver", func(s scene) {
		s.moved(2, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9, Taken: 5, Places: 5, Sought: 1})
		s.moved(3, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9})
	}, "proven", nil},

	// Sure of the fact, not of the harm.
	{"all rewind to one place, and share the rest out", "kernel", func(s scene) {
		s.moved(2, 1, traces.Position{Seeks: 5, Reads: 100, Turns: 60, Taken: 4, Places: 1, Sought: 128, Loose: 50})
		s.moved(3, 1, traces.Position{Seeks: 5, Reads: 100, Turns: 60, Taken: 3, Places: 1, Sought: 128, Loose: 50})
	}, "likely", []string{"share the rest of the file out", "not:one process alone"}},
	{"it moves, hook tier", "hook", func(s scene) {
		for proc := range uint32(4) {
			s.seen(2+proc, 20, 18, 9)
		}
	}, "likely", []string{"further back", "one process alone reads the file", "behind a lock", "visible in the kernel tier only"}},
	{"one process seen, of two; the other's rows are of another file", "kernel", func(s scene) {
		s.moved(2, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 1, Taken: 1, Places: 1, Sought: 128})
		s.moved(3, 2, traces.Position{Seeks: 10, Reads: 10, Turns: 1})
	}, "likely", nil},

	{"buffered, behind a lock", "kernel", func(s scene) {
		for proc := range uint32(4) {
			s.moved(2+proc, 1, traces.Position{Seeks: 100, Reads: 200, Turns: 150, Sought: -1, Loose: 90})
		}
	}, "likely", []string{"360 reads began where another process had left it in train.bin", "a lock does not help", "share the rest of the file out",
		"not:one process alone", "not:behind a lock that"}},

	// Worth knowing.
	{"a queue of records, with a look at its header by each", "kernel", func(s scene) {
		for proc := range uint32(4) {
			s.moved(2+proc, 1, traces.Position{Seeks: 2, Reads: 100, Turns: 60, Sought: -1, Loose: 60})
		}
	}, "note", []string{"240 of 400 reads began where another process had left the position"}},
	{"a queue of records", "kernel", func(s scene) {
		s.moved(2, 1, traces.Position{Reads: 100, Turns: 60, Sought: -1, Loose: 60})
		s.moved(3, 1, traces.Position{Reads: 100, Turns: 60, Sought: -1, Loose: 60})
	}, "note", []string{"120 of 200 reads began where another process had left the position"}},
	{"done again until it is right", "kernel", func(s scene) {
		s.moved(2, 1, traces.Position{Seeks: 110, Reads: 110, Turns: 60, Sought: -1, Again: 10})
		s.moved(3, 1, traces.Position{Seeks: 100, Reads: 100, Turns: 60, Sought: -1})
	}, "note", []string{"10 went astray and were done again"}},

	// No bug.
	{"a lock around each seek and its read", "kernel", func(s scene) {
		for proc := range uint32(4) {
			s.moved(2+proc, 1, traces.Position{Seeks: 100, Reads: 100, Turns: 60, Sought: -1})
		}
	}, "cannot-tell", []string{"1 open file", "all of 400 reads began where they were to", "a lock, or it went well by chance"}},
	{"seeks alone: what is read has a position of its own", "kernel", func(s scene) {
		for proc := range uint32(4) {
			s.moved(2+proc, 1, traces.Position{Seeks: 100, Turns: 60, Sought: -1})
		}
	}, "clean", nil},
	{"one worker in each pass, one after the other", "kernel", func(s scene) {
		s.moved(2, 1, traces.Position{Reads: 100, Sought: -1})
		s.moved(4, 1, traces.Position{Reads: 100, Turns: 1, Loose: 1, Sought: -1})
	}, "clean", nil},
	{"nothing is shared", "kernel", func(scene) {}, "clean", []string{"no open file"}},
	{"processes that are no workers", "kernel", func(s scene) {
		s.Add(8, traces.Process{Pid: 200, Ppid: 99, Kind: "python", Hook: "on", Rank: -1, LocalRank: -1})
		s.Add(9, traces.Process{Pid: 201, Ppid: 99, Kind: "python", Hook: "on", Rank: -1, LocalRank: -1})
		s.moved(8, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9, Taken: 5, Places: 5, Sought: 1})
		s.moved(9, 1, traces.Position{Seeks: 10, Reads: 10, Turns: 9, Taken: 5, Places: 5, Sought: 1})
	}, "clean", nil},
	{"nothing inherited, hook tier", "hook", func(s scene) {
		for proc := range uint32(4) {
			s.seen(2+proc, 1, 0, 0)
		}
	}, "clean", []string{"no data file was open"}},
	{"spawned workers inherit nothing", "spawn", func(scene) {}, "not-applicable", nil},

	// Not known.
	{"some reads of those who seek begin where another process has left the position", "kernel", func(s scene) {
		for proc := range uint32(4) {
			s.moved(2+proc, 1, traces.Position{Seeks: 100, Reads: 100, Turns: 60, Sought: -1, Loose: uint64(proc / 2)})
		}
	}, "cannot-tell", []string{"2 times a process went on from where another one had left the position"}},
	{"some ask where they are after they have read", "kernel", func(s scene) {
		for proc := range uint32(4) {
			s.moved(2+proc, 1, traces.Position{Seeks: 100, Reads: 100, Turns: 60, Sought: -1, Asked: 1})
		}
	}, "cannot-tell", []string{"4 times a process went on from where another one had left the position (400 reads)"}},
	{"it does not move, hook tier", "hook", func(s scene) {
		for proc := range uint32(4) {
			s.seen(2+proc, 20, 0, 0)
		}
	}, "cannot-tell", []string{"visible in the kernel tier only"}},
	{"it only moves on, hook tier", "hook", func(s scene) {
		for proc := range uint32(4) {
			s.seen(2+proc, 20, 15, 1)
		}
	}, "cannot-tell", nil},
	{"one of the workers was not looked at", "hook", func(s scene) {
		for proc := range uint32(3) {
			s.seen(2+proc, 1, 0, 0)
		}
	}, "cannot-tell", []string{"1 of 4 workers"}},
	{"an older trace", "hook", func(scene) {}, "cannot-tell", []string{"all 4 workers"}},
	{"an older trace of the kernel tier", "older", func(scene) {}, "cannot-tell", nil},
	{"counts were lost", "kernel", func(s scene) {
		s.Add(0, traces.Lost{Source: "kernel", Table: "position", Count: 1, Reason: "the ring of the positions probe was full"})
	}, "cannot-tell", []string{"ring of the positions probe"}},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			method, tier := "fork", c.tier
			switch c.tier {
			case "spawn", "forkserver":
				method, tier = c.tier, "kernel"
			case "cut", "older":
				tier = "kernel"
			}
			s := newScene(t, tier, method)
			if tier == "kernel" && c.tier != "older" {
				s.counted()
			}
			c.play(s)
			if c.tier != "cut" {
				s.End("0")
			}
			r, err := analyze.Run(s.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			detecttest.Verdict(t, r.Findings, r.Checks, sharedfileposition.Rule.ID, c.want, c.says)
		})
	}
}
