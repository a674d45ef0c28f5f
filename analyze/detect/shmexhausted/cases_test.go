package shmexhausted_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

const (
	mb     = int64(1 << 20)
	second = int64(1e9)
)

// scene is main processes, one for each rank, whose loader has two workers that are
// two batches ahead; a batch takes 4 MiB, of the 16 MiB of /dev/shm. Of ten batches
// one was delivered.
type scene struct {
	*detecttest.Run
	loader   traces.Loader
	batch    traces.BatchBytes
	rooms    []traces.ShmRoom // before the workers are started
	ranks    int
	batches  uint32 // of the pass
	kernel   bool
	blind    bool // no worker told what a batch takes
	oldTrace bool // how full /dev/shm was is not in it
}

// pids of rank 0: the main process is 1, the workers are 2 and 3.
func (s *scene) start() {
	tier := "hook"
	if s.kernel {
		tier = "kernel"
	}
	s.Meta("tier", tier)
	s.loader.File, s.loader.Line, s.loader.StartMethod = "/home/me/train.py", 8, "fork"
	for rank := range uint32(s.ranks) {
		main, pid := 1+10*rank, int32(100+10*rank)
		number := int32(rank)
		if s.ranks == 1 {
			number = -1
		}
		s.Add(main, traces.Process{Pid: pid, Ppid: 99, Kind: "target", Hook: "on", Cmdline: "python3 train.py", Exe: "/usr/bin/python3",
			Cwd: "/home/me", Torch: "2.15.0", Rank: number, LocalRank: number, WorldSize: int32(s.ranks)})
		if !s.oldTrace {
			for _, room := range s.rooms {
				s.Add(main, room)
			}
		}
		s.loader.Loader = 1
		s.Add(main, s.loader, traces.Pass{Loader: 1, Phase: "begin"})
		for i := range s.loader.NumWorkers {
			s.startWorker(main, pid, i)
		}
		for b := range s.batches {
			w := int32(b) % max(s.loader.NumWorkers, 1)
			s.Add(main, traces.BatchPut{Loader: 1, Batch: b, Worker: w, Indices: []int64{int64(b)}})
		}
		for i := range s.loader.NumWorkers {
			s.Add(main+1+uint32(i), traces.BatchFetch{Worker: i, Batch: uint32(i), Samples: 4})
		}
		s.Add(main, traces.BatchNext{Loader: 1, Worker: -2, Status: "ok", CallNS: s.Now(), Grad: true})
	}
	s.Wait(second)
}

func (s *scene) startWorker(main uint32, pid, i int32) {
	proc := main + 1 + uint32(i)
	s.Add(proc, traces.Process{Pid: pid + 1 + i, Ppid: pid, Kind: "worker", Hook: "on", Cmdline: "python3 train.py", Exe: "/usr/bin/python3",
		Cwd: "/home/me", Torch: "2.15.0", Rank: -1, LocalRank: -1})
	s.Add(main, traces.Worker{Loader: 1, Worker: i, Pid: pid + 1 + i, Phase: "begin"})
	s.Add(proc, traces.Worker{Worker: i, Pid: pid + 1 + i, Phase: "ready"})
	if !s.blind {
		b := s.batch
		b.Worker, b.Batch = i, uint32(i)
		s.Add(proc, b)
	}
}

// room is how full /dev/shm is from now on.
func (s *scene) room(free int64) {
	s.Add(1, traces.ShmRoom{Device: 7, Type: "tmpfs", Capacity: s.rooms[0].Capacity, Free: free, Nodes: -1})
}

// ended is an ordinary end of the pass.
func (s *scene) ended() {
	for rank := range uint32(s.ranks) {
		main := 1 + 10*rank
		for i := range s.loader.NumWorkers {
			s.Add(main, traces.Worker{Loader: 1, Worker: i, Pid: int32(101+10*rank) + i, Phase: "exit", Asked: "yes"})
			s.Add(main+1+uint32(i), traces.Exit{Source: "exitcode"})
		}
		s.Add(main, traces.BatchNext{Loader: 1, Batch: s.batches, Worker: -2, Status: "stop", CallNS: s.Now()},
			traces.Pass{Loader: 1, Phase: "end", End: "exhausted", Delivered: s.batches})
	}
	s.End("0")
}

// died is the end of worker 1 by a signal, and of the run.
func (s *scene) died(signal int32, name string) {
	if s.kernel {
		s.Add(3, traces.Exit{ExitCode: -1, Signal: signal, Source: "kernel"})
	}
	s.broke("DataLoader worker (pid 102) is killed by signal: " + name + ". It is possible that dataloader's workers are out of shared memory.")
	s.Add(1, traces.Worker{Loader: 1, Worker: 1, Pid: 102, Phase: "exit", ExitCode: -signal, Asked: "no"})
	if !s.kernel {
		s.Add(3, traces.Exit{ExitCode: -1, Signal: signal, Source: "exitcode"})
	}
	s.Add(2, traces.Exit{Source: "exitcode"})
	s.End("1")
}

func (s *scene) broke(message string) {
	s.Add(1, traces.BatchNext{Loader: 1, Worker: -2, Status: "error", CallNS: s.Now()}, traces.Pass{Loader: 1, Phase: "end", End: "error", Delivered: 1},
		traces.Exception{Loader: 1, Worker: -2, Stage: "next", Sample: -1, Type: "RuntimeError", Message: message})
}

// raises is what worker 1 raised.
func (s *scene) raises(stage, kind, message string) {
	s.Add(3, traces.Exception{Worker: 1, Batch: 3, Stage: stage, Sample: -1, Type: kind, Message: message, File: "/usr/lib/torch/storage.py", Line: 423})
	s.broke("Caught " + kind + " in DataLoader worker process 1.")
}

// bus is a SIGBUS of worker 1.
func (s *scene) bus(f traces.Signal) {
	f.Signal, f.Address, f.SenderPid, f.SenderProc, f.SenderAncestor = 7, 0x7f0000, 102, 3, true
	if f.SiCode == 0 {
		f.SiCode = 2
	}
	s.Add(3, f, traces.Signal{Signal: 7, SiCode: -6, SenderPid: 102, SenderProc: 3, SenderAncestor: true})
	s.died(7, "Bus error")
}

// again is another pass of the loader, that comes to its end.
func (s *scene) again() {
	s.Add(1, traces.Pass{Loader: 1, Pass: 1, Phase: "begin"}, traces.BatchNext{Loader: 1, Pass: 1, Worker: -2, Status: "ok", CallNS: s.Now()},
		traces.BatchNext{Loader: 1, Pass: 1, Worker: -2, Status: "stop", CallNS: s.Now()},
		traces.Pass{Loader: 1, Pass: 1, Phase: "end", End: "exhausted", Delivered: 1})
}

const (
	allocate = "unable to allocate shared memory(shm) for file </torch_102_1_0>: No space left on device (28)"
	write    = "unable to write to file </torch_102_1_0>: No space left on device (28)"
)

var torchShm = traces.Signal{Mapping: "shm", MappingPath: "/dev/shm/torch_102_1_0", FileSize: 4 * mb, FileOffset: mb, ShmCapacity: 16 * mb, ShmUsed: 15 * mb}

func signal(change func(*traces.Signal)) traces.Signal {
	f := torchShm
	change(&f)
	return f
}

func large(s *scene) { s.rooms[0].Capacity, s.rooms[0].Free = 1024*mb, 1024*mb }

// The last ones are correct programs that look like the bug, and bugs in disguise.
var cases = []struct {
	name string
	set  func(*scene) // before it begins; nil: nothing
	play func(*scene)
	want string
	says []string
}{
	{"fits", large, (*scene).ended, "clean", []string{"5 batches of 4.2 MB at once take 21.0 MB; 1.07 GB were free"}},
	{"does not fit", nil, (*scene).ended, "likely", []string{"up to 21.0 MB in it, 16.8 MB were free", "2 x 2 + 1 = 5", "float32 4.2 MB",
		"num_workers=1, prefetch_factor=1", "uint8 in place of float32", "which fits", "--shm-size=64m", "shm_size: 64m", "sizeLimit: 64Mi",
		"never get ahead", "not:file_system", "not:became shorter", "not:tries sizes"}},
	{"SIGBUS, kernel tier", func(s *scene) { s.kernel = true }, func(s *scene) { s.bus(torchShm) }, "proven",
		[]string{"worker 1 died of it (SIGBUS)", "within /dev/shm/torch_102_1_0, where no page was left: 15.7 MB of 16.8 MB were in use", "needs 21.0 MB"}},
	{"SIGBUS, hook tier, seen with little left", func(s *scene) { s.rooms[0].Capacity, s.rooms[0].Free = 32*mb, 32*mb },
		func(s *scene) { s.room(18 * mb); s.bus2() }, "likely", []string{"18.9 MB of 33.6 MB were free at that time, and 5 batches of 4.2 MB at once take 21.0 MB"}},
	{"SIGBUS, hook tier, seen half full", func(s *scene) { s.rooms[0].Capacity, s.rooms[0].Free = 64*mb, 64*mb },
		func(s *scene) { s.room(24 * mb); s.bus2() }, "cannot-tell", []string{"worker 1 was ended by SIGBUS; whether in /dev/shm"}},
	{"SIGBUS, hook tier, seen full", nil, func(s *scene) { s.room(0); s.bus2() }, "likely", []string{"0 KB of 16.8 MB were free", "became shorter"}},
	{"ENOSPC, torch 2.15", nil, func(s *scene) { s.raises("collate", "RuntimeError", allocate); s.End("1") }, "proven",
		[]string{"could not hand over its batch", "found no room for /dev/shm/torch_102_1_0"}},
	{"ENOSPC, torch 1.13", nil, func(s *scene) { s.raises("collate", "RuntimeError", write); s.End("1") }, "proven", nil},
	{"torch says another error's text", nil, func(s *scene) {
		s.raises("collate", "RuntimeError", "unable to allocate shared memory(shm) for file </torch_102_1_0>: Success (0)")
		s.End("1")
	}, "proven", nil},
	{"lost in the thread that hands it over", func(s *scene) { s.kernel = true }, func(s *scene) {
		s.Add(3, traces.ShmFull{Device: 7, Call: "write", Name: "torch_102_1_0", Bytes: 1, Capacity: 16 * mb, Used: 16 * mb})
		s.End("143")
	}, "proven", []string{"worker 1's batch was lost", "its loop waited for a batch that was lost"}},
	{"the file of the program's own", nil, func(s *scene) {
		s.raises("fetch", "OSError", "[Errno 28] No space left on device: '/dev/shm/cache/7.npy'")
		s.End("1")
	}, "proven", []string{"a file of the program's own in /dev/shm"}},
	{"its write, by what the kernel saw", func(s *scene) { large(s); s.kernel = true }, func(s *scene) {
		s.Add(3, traces.ShmFull{Device: 7, Call: "write", Name: "7.npy", Bytes: 4096, Capacity: 16 * mb, Used: 16 * mb})
		s.raises("fetch", "OSError", "[Errno 28] No space left on device")
		s.End("1")
	}, "proven", []string{"/dev/shm/7.npy", "batches that the loop keeps, or other files and programs"}},
	{"left over by the dead", nil, func(s *scene) {
		s.Add(0, traces.ShmFile{Device: 7, Name: "torch_4711_9_0", Bytes: 9 * mb, Pid: 4711, Owner: "dead", Phase: "end", Links: 1},
			traces.ShmFile{Device: 7, Name: "torch_55_9_0", Bytes: 2 * mb, Pid: 55, Owner: "alive", Phase: "end"})
		s.ended()
	}, "likely", []string{"9.4 MB of it lie in 1 file whose processes are dead", "rm '/dev/shm/torch_4711_9_0'", "not:torch_55"}},
	{"float64", func(s *scene) { s.batch.Dtypes = "float64=4194304" }, (*scene).ended, "likely", []string{"float32 in place of float64", "12.6 MB at most"}},
	{"not one worker fits", func(s *scene) { s.batch.Bytes = 12 * mb }, (*scene).ended, "likely", []string{"num_workers=0"}},
	{"no workers", func(s *scene) { s.loader.NumWorkers = 0 }, func(s *scene) { s.End("0") }, "not-applicable", nil},
	{"an older trace", func(s *scene) { s.oldTrace = true }, (*scene).ended, "cannot-tell", []string{"was not seen"}},
	{"no worker told", func(s *scene) { s.blind = true }, (*scene).ended, "cannot-tell", []string{"no worker has told"}},

	{"hostile: a cache in /dev/shm until it is full", func(s *scene) { large(s); s.kernel = true }, func(s *scene) {
		s.Add(3, traces.ShmFull{Device: 7, Call: "write", Name: "sample_17", Bytes: 4096, Capacity: 1024 * mb, Used: 1024 * mb})
		s.ended()
	}, "clean", nil},
	{"hostile: a mapped file in /dev/shm became shorter", func(s *scene) { large(s); s.kernel = true }, func(s *scene) {
		s.bus(signal(func(f *traces.Signal) {
			f.MappingPath, f.FileSize, f.FileOffset, f.ShmUsed = "/dev/shm/x.npy", 100, 8192, 0
		}))
	}, "clean", nil},
	{"hostile: the same while it is nearly full", func(s *scene) { large(s); s.kernel = true }, func(s *scene) {
		s.bus(signal(func(f *traces.Signal) { f.FileSize, f.FileOffset = 4097, 8192 }))
	}, "clean", nil},
	{"hostile: in a file on disk", func(s *scene) { large(s); s.kernel = true }, func(s *scene) {
		s.bus(traces.Signal{Mapping: "file", MappingPath: "/data/x.bin", FileSize: 100, FileOffset: 8192})
	}, "clean", nil},
	{"hostile: in another tmpfs", func(s *scene) { large(s); s.kernel = true }, func(s *scene) {
		s.bus(signal(func(f *traces.Signal) { f.MappingPath = "/tmp/x.npy" }))
	}, "clean", nil},
	{"hostile: broken memory", func(s *scene) { large(s); s.kernel = true }, func(s *scene) {
		s.bus(signal(func(f *traces.Signal) { f.SiCode = 4 }))
	}, "clean", nil},
	{"hostile: SIGBUS by kill(1)", func(s *scene) { large(s); s.kernel = true }, func(s *scene) {
		s.Add(3, traces.Signal{Signal: 7, SenderPid: 4242, SenderComm: "kill"})
		s.died(7, "Bus error")
	}, "clean", nil},
	{"hostile: SIGBUS in the hook tier, and /dev/shm is not full", large, func(s *scene) { s.bus2() }, "clean", nil},
	{"hostile: the disk is full, not /dev/shm", large, func(s *scene) {
		s.raises("fetch", "OSError", "[Errno 28] No space left on device: '/data/cache/7.npy'")
		s.End("1")
	}, "clean", nil},
	{"fits by less than a batch", func(s *scene) { s.rooms[0].Capacity, s.rooms[0].Free = 23*mb, 23*mb }, (*scene).ended, "cannot-tell",
		[]string{"not enough for one more"}},
	{"fits with one more", func(s *scene) { s.rooms[0].Capacity, s.rooms[0].Free = 24*mb, 24*mb }, (*scene).ended, "clean", nil},
	{"hostile: arrays, through the pipe", func(s *scene) { s.batch.Bytes, s.batch.Dtypes = 0, "" }, (*scene).ended, "clean", []string{"no tensors of their own"}},
	{"hostile: the dataset's own shared tensor", func(s *scene) { s.batch.Shared = 4 * mb }, (*scene).ended, "clean", nil},
	{"hostile: a pass of three batches", func(s *scene) { s.batches = 3 }, (*scene).ended, "clean", nil},
	{"hostile: made larger while it runs", nil, func(s *scene) { s.rooms[0].Capacity = 64 * mb; s.room(60 * mb); s.ended() }, "clean", nil},
	{"hostile: part of a batch is of a class of its own", func(s *scene) { large(s); s.batch.Whole = false }, (*scene).ended, "cannot-tell", nil},
	{"hostile: it tries sizes and goes on", nil, func(s *scene) {
		s.raises("collate", "RuntimeError", allocate)
		s.again()
		s.End("0")
	}, "likely", []string{"tries sizes"}},
	{"hostile: ranks share it, and each alone fits", func(s *scene) { s.ranks = 2; s.rooms[0].Capacity, s.rooms[0].Free = 32*mb, 32*mb },
		(*scene).ended, "likely", []string{"2 ranks share it", "up to 41.9 MB"}},
	{"hostile: others have most of it", func(s *scene) { s.rooms[0].Capacity, s.rooms[0].Free = 1024*mb, 8*mb }, (*scene).ended, "likely",
		[]string{"up to 21.0 MB in it, 8.4 MB were free", "of which 8.4 MB were free"}},
	{"hostile: the loop keeps batches", func(s *scene) { s.rooms[0].Capacity, s.rooms[0].Free = 64*mb, 64*mb }, func(s *scene) {
		s.raises("collate", "RuntimeError", allocate)
		s.End("1")
	}, "proven", []string{"batches that the loop keeps", "clone()"}},
	{"hostile: a namespace of its own, and the host's is full", func(s *scene) {
		large(s)
		s.rooms = append([]traces.ShmRoom{{Device: 3, Type: "tmpfs", Capacity: mb, Nodes: -1}}, s.rooms...)
	}, (*scene).ended, "clean", nil},
	{"hostile: the killer took a worker, and it does not fit either", func(s *scene) { s.kernel = true }, func(s *scene) {
		s.Add(3, traces.Signal{Signal: 9, SenderPid: 4242, SenderComm: "reaper"})
		s.died(9, "Killed")
	}, "likely", nil},
}

// bus2 is a SIGBUS of worker 1 of which only the exit code is known.
func (s *scene) bus2() { s.died(7, "Bus error") }

func newScene(t *testing.T) *scene {
	return &scene{Run: detecttest.NewRun(t), ranks: 1, batches: 10,
		loader: traces.Loader{NumWorkers: 2, Prefetch: 2, BatchSize: 4, Length: 400},
		batch:  traces.BatchBytes{Bytes: 4 * mb, Tensors: 1, Dtypes: "float32=4194304", Whole: true, Sharing: "file_descriptor"},
		rooms:  []traces.ShmRoom{{Device: 7, Type: "tmpfs", Capacity: 16 * mb, Free: 16 * mb, Nodes: -1}}}
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			if c.set != nil {
				c.set(s)
			}
			s.start()
			c.play(s)
			result, err := analyze.Run(s.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			detecttest.Verdict(t, result.Findings, result.Checks, "shm-exhausted", c.want, c.says)
		})
	}
}

// What worker-killed says of a death is said here where it is the same, and stays
// where it is another one.
func TestWorkerKilled(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(*scene)
		want bool // worker-killed has a finding of its own
	}{
		"SIGBUS in a full /dev/shm": {func(s *scene) { s.bus(torchShm) }, false},
		"SIGBUS in a file":          {func(s *scene) { s.bus(traces.Signal{Mapping: "file", MappingPath: "/data/x.bin"}) }, true},
		"SIGKILL": {func(s *scene) {
			s.Add(3, traces.Signal{Signal: 9, SenderPid: 4242, SenderComm: "reaper"})
			s.died(9, "Killed")
		}, true},
		"SIGBUS, and another worker by SIGKILL": {func(s *scene) {
			s.Add(2, traces.Signal{Signal: 9, SenderPid: 4242, SenderComm: "reaper"}, traces.Exit{ExitCode: -1, Signal: 9, Source: "kernel"})
			s.bus(torchShm)
		}, true},
		"nobody died": {func(s *scene) { s.raises("collate", "RuntimeError", allocate); s.End("1") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.kernel = true
			s.start()
			tc.play(s)
			result, err := analyze.Run(s.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			killed, exhausted := false, false
			for _, f := range result.Findings {
				killed = killed || f.Rule == "worker-killed"
				exhausted = exhausted || f.Rule == "shm-exhausted"
			}
			if killed != tc.want || !exhausted {
				t.Errorf("worker-killed %v, shm-exhausted %v", killed, exhausted)
			}
		})
	}
}
