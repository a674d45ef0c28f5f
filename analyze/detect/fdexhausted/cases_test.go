package fdexhausted_test

import (
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/fdexhausted"
	"github.com/dptrace/dptrace/traces"
)

// scene is a main process (number 1) whose loader has two workers (2 and 3):
// five batches are under way at most.
type scene struct {
	*detecttest.Run
	batch, number uint32
}

func newScene(t *testing.T, workers int32) *scene {
	s := &scene{Run: detecttest.NewRun(t)}
	s.Meta("tier", "hook")
	s.Add(1, traces.Process{Pid: 100, Ppid: 99, Kind: "target", Hook: "on", Cwd: "/home/me", Torch: "2.15.0", Rank: -1, LocalRank: -1})
	s.Add(1, traces.Loader{Loader: 1, NumWorkers: workers, Prefetch: 2, BatchSize: 2, Length: 10000, StartMethod: "fork",
		File: "/home/me/train.py", Line: 8,
		Persistent: !strings.HasPrefix(t.Name(), "TestCases/new_workers")},
		traces.Pass{Loader: 1, Phase: "begin"})
	for i := range workers {
		proc := uint32(2 + i)
		s.Add(proc, traces.Process{Pid: 101 + i, Ppid: 100, Kind: "worker", Hook: "on", Torch: "2.15.0", Rank: -1, LocalRank: -1})
		s.Add(1, traces.Worker{Loader: 1, Worker: i, Pid: 101 + i, Phase: "begin"})
		s.Add(proc, traces.Worker{Worker: i, Pid: 101 + i, Phase: "ready"})
	}
	return s
}

// deliver some batches, 10 ms each.
func (s *scene) deliver(n int) {
	for range n {
		s.Wait(10_000_000)
		s.Add(1, traces.BatchNext{Loader: 1, Pass: s.number, Batch: s.batch, Worker: -2, Status: "ok", CallNS: s.Now(), Grad: true})
		s.batch++
	}
}

// open is a count of the main process' descriptors, most of them of one kind.
func (s *scene) open(n int64, kind func(*traces.Descriptor)) {
	d := traces.Descriptor{Open: n, Limit: 1024, Hard: 4096, Looked: 64, Refused: -1}
	kind(&d)
	s.Add(1, d)
}

func tensors(d *traces.Descriptor) { d.Shared = 60 }
func files(d *traces.Descriptor)   { d.File, d.Sample = 60, "/data/7.jpg" }
func sockets(d *traces.Descriptor) { d.Socket, d.Shared = 62, 1 }
func few(d *traces.Descriptor)     { d.Looked = 0 }

// keep is some batches, and what the process has open after each twentieth.
func (s *scene) keep(n int, from, each int64, kind func(*traces.Descriptor)) {
	for i := range n / 20 {
		s.open(from+each*int64(20*i), kind)
		s.deliver(20)
	}
	s.open(from+each*int64(n), kind)
	s.deliver(1)
}

// pass ends one and begins the next, for the same workers.
func (s *scene) pass(n uint32) {
	s.Add(1, traces.Pass{Loader: 1, Pass: n - 1, Phase: "end", End: "exhausted", Delivered: s.batch})
	s.Wait(1_000_000)
	s.Add(1, traces.Pass{Loader: 1, Pass: n, Phase: "begin"})
	s.number = n
}

// grow is some batches, and what the first worker has open after each twentieth.
func (s *scene) grow(n int, from, hundred int64, kind func(*traces.Descriptor)) {
	for i := range n/20 + 1 {
		if i > 0 {
			s.deliver(20)
		}
		d := traces.Descriptor{Open: from + hundred*int64(20*i)/100, Limit: 300, Hard: 4096, Looked: 64, Refused: -1}
		kind(&d)
		s.Add(2, d)
	}
	s.open(20, few)
	s.deliver(1)
}

// fail is an error of the loader's, in the main process or in a worker.
func (s *scene) fail(proc uint32, message string, open, limit, shared int64) {
	e := traces.Exception{Loader: 1, Worker: -2, Stage: "next", Sample: -1, Type: "RuntimeError", Message: message, File: "/usr/lib/torch/x.py", Line: 7,
		Open: open, Limit: limit, Shared: shared}
	if proc > 1 {
		e.Loader, e.Worker, e.Stage = 0, int32(proc-2), "fetch"
	}
	switch message {
	case emfile:
		e.Type = "OSError"
	case eof:
		e.Type, e.File = "EOFError", "/usr/lib/python3.11/multiprocessing/reduction.py"
	}
	s.Wait(1000)
	s.Add(proc, e)
	s.Add(1, traces.Pass{Loader: 1, Phase: "end", End: "error", Delivered: s.batch})
}

const (
	ancdata = "received 0 items of ancdata"
	torch   = "Too many open files. Communication with the workers is no longer possible. Please increase the limit using `ulimit -n` in the shell"
	emfile  = "24, Too many open files"
	eof     = ""
	slow    = "DataLoader timed out after 3 seconds"
	shm     = "unable to open shared memory object </torch_1_2_300> in read-write mode: Too many open files (24)"
)

var cases = []struct {
	name string
	play func(*scene)
	want string
	says []string
}{
	// It failed.
	{"batches are kept", func(s *scene) {
		s.keep(300, 20, 3, tensors)
		s.fail(1, torch, 1010, 1024, 990)
	}, "proven", []string{"1,010 of 1,024", "as it keeps what each batch brings", "3.", "clone()", "after 301 batches", "not:ulimit"}},
	{"kept, so fast that it was counted once", func(s *scene) {
		s.open(20, few)
		s.deliver(100)
		s.fail(1, ancdata, 1000, 1024, 980)
	}, "proven", []string{"after 100 batches, and 5 are under way at most", "clone()"}},
	{"a working set: the first batches", func(s *scene) {
		s.deliver(2)
		s.fail(1, ancdata, 985, 1024, 960)
	}, "proven", []string{"985 of 1,024", "ulimit -n 4096", "file_system", "not:clone"}},
	{"a worker: more tensors than descriptors in a batch", func(s *scene) {
		s.fail(2, shm, 1022, 1024, 1000)
	}, "proven", []string{"Worker 0 ran out", "ulimit -n", "cannot send its error", "not:clone"}},
	{"a worker whose half batch was closed when it was counted", func(s *scene) {
		s.fail(2, shm, 296, 1024, 250)
	}, "proven", []string{"Worker 0 ran out"}},
	{"a worker that opens a file for each sample", func(s *scene) {
		s.deliver(200)
		s.Add(2, traces.Descriptor{Open: 900, Limit: 1024, Looked: 64, File: 64, Sample: "/data/7.jpg", Refused: -1})
		s.fail(2, emfile, 1024, 1024, 4)
	}, "proven", []string{"Worker 0 ran out", "files, as /data/7.jpg", "with open", "not:ulimit"}},
	{"the loop keeps files open", func(s *scene) {
		s.keep(300, 20, 3, files)
		s.fail(1, torch, 1020, 1024, 12)
	}, "proven", []string{"1,020 of 1,024, as it opens more with each batch", "files, as /data/7.jpg", "with open", "not:clone",
		"not:batch brings"}},
	{"the loop keeps sockets open", func(s *scene) {
		s.keep(300, 20, 3, sockets)
		s.fail(1, torch, 1020, 1024, 2)
	}, "proven", []string{"as it opens more with each batch", "sockets", "create_connection", "not:with open", "not:batch brings"}},
	{"the limit is beyond the hard one", func(s *scene) {
		s.open(900, func(d *traces.Descriptor) { d.Hard, d.Shared = 1024, 60 })
		s.deliver(1)
		s.fail(1, ancdata, 1000, 1024, 980)
	}, "proven", []string{"the hard limit is 1024"}},

	{"a worker cannot send, which only the kernel sees", func(s *scene) {
		s.Meta("tier", "kernel")
		s.open(20, few)
		s.deliver(5)
		s.Add(3, traces.Descriptor{Open: 340, Limit: 400, Refused: -1})
		s.Add(3, traces.Descriptor{Refused: 7})
		s.fail(1, eof, 0, 0, 0)
	}, "proven", []string{"Worker 1 ran out", "refused it 7 calls", "EOFError", "after 5 batches", "340 of 400", "ulimit -n"}},
	{"a worker sends nothing, and no more is seen than that it is full", func(s *scene) {
		s.open(20, few)
		s.deliver(5)
		s.Add(3, traces.Descriptor{Open: 1024, Limit: 1024, Refused: -1})
		s.fail(1, slow, 0, 0, 0)
	}, "likely", []string{"Worker 1 has 1,024 of 1,024", "did not come to its end"}},
	{"a worker that is refused sends nothing", func(s *scene) {
		s.open(20, few)
		s.deliver(5)
		s.Add(3, traces.Descriptor{Refused: 7})
		s.fail(1, slow, 0, 0, 0)
	}, "likely", []string{"refused it 7 calls"}},
	{"a worker is refused, and the loop does not end", func(s *scene) {
		s.open(20, few)
		s.deliver(5)
		s.Add(3, traces.Descriptor{Refused: 7})
	}, "likely", []string{"Worker 1 ran out"}},

	// It says so, and nobody counted.
	{"an error of an older hook", func(s *scene) {
		s.deliver(50)
		s.fail(1, ancdata, 0, 0, 0)
	}, "likely", []string{"ended first"}},

	{"ancdata, half of the descriptors", func(s *scene) {
		s.deliver(2)
		s.fail(1, ancdata, 600, 1024, 580)
	}, "likely", []string{"ended first"}},

	// It will.
	{"batches are kept, and the program ended before the limit", func(s *scene) { s.keep(200, 20, 3, tensors) }, "likely",
		[]string{"keeps 3.", "limit of 1,024", "lets go of what it keeps", "not:ended first"}},

	{"files are kept, and the program ended before the limit", func(s *scene) { s.keep(200, 20, 3, files) }, "likely",
		[]string{"opens 3.0 descriptors more with each batch", "limit of 1,024", "with open"}},
	{"a worker keeps files, in its second pass as in its first", func(s *scene) {
		s.grow(300, 18, 25, files)
		s.pass(1)
		s.grow(300, 93, 25, files)
	}, "likely", []string{"Worker 0 keeps 25 descriptors more after every 100 batches: at this pace its limit of 300", "from 23 to 168",
		"2 passes", "files, as /data/7.jpg", "with open", "not:training process keeps"}},
	{"a worker keeps tensors that it sends", func(s *scene) {
		s.grow(300, 18, 25, tensors)
		s.pass(1)
		s.grow(300, 93, 25, tensors)
	}, "likely", []string{"self.kept[i] = x.clone()"}},

	// It may.
	{"a worker opens files, and one pass was seen", func(s *scene) { s.grow(400, 18, 30, files) }, "cannot-tell",
		[]string{"worker 0 rose from 24 to 138 of 300 in 380 batches", "after its first pass was not seen"}},
	{"a worker opens files, and the second pass has just begun", func(s *scene) {
		s.grow(400, 18, 30, files)
		s.pass(1)
		s.grow(20, 138, 30, files)
	}, "cannot-tell", []string{"after its first pass was not seen"}},

	// It did not, and will not.
	{"a worker opens all files of its dataset in the first pass", func(s *scene) {
		s.grow(300, 18, 50, files)
		s.pass(1)
		s.grow(300, 168, 0, files)
	}, "clean", []string{"worker 0 had 168 of 300"}},
	{"the same, and the second pass is short", func(s *scene) {
		s.grow(300, 18, 50, files)
		s.pass(1)
		s.grow(100, 168, 0, files)
	}, "clean", nil},
	{"a worker's pool of files that is full soon", func(s *scene) { s.grow(100, 18, 200, files); s.grow(400, 218, 0, files) }, "clean", nil},
	{"a worker's files are let go of at the end of each pass", func(s *scene) {
		s.grow(300, 18, 25, files)
		s.pass(1)
		s.grow(300, 18, 25, files)
	}, "clean", nil},
	{"new workers for each pass", func(s *scene) { s.grow(400, 18, 30, files); s.pass(1); s.deliver(400) }, "clean", nil},
	{"a plateau", func(s *scene) {
		s.keep(160, 20, 3, tensors)
		for range 20 {
			s.open(500, tensors)
			s.deliver(40)
		}
	}, "clean", []string{"the training process had 500 of 1,024"}},
	{"nobody counted after it had grown", func(s *scene) { s.keep(100, 20, 3, tensors); s.deliver(400) }, "clean", nil},
	{"a list for each pass, let go of at its end", func(s *scene) {
		for range 3 {
			s.keep(160, 20, 3, tensors)
		}
	}, "clean", nil},
	{"what is under way", func(s *scene) {
		s.open(20, few)
		s.deliver(1)
		for range 20 {
			s.open(300, tensors)
			s.open(280, tensors)
			s.deliver(20)
		}
	}, "clean", nil},
	{"slow growth, far from the limit", func(s *scene) { s.keep(2000, 20, 0, tensors); s.keep(100, 20, 1, tensors) }, "clean", nil},
	{"a high limit", func(s *scene) {
		s.keep(400, 20, 3, func(d *traces.Descriptor) { d.Shared, d.Limit = 60, 1<<20 })
	}, "clean", nil},
	{"the limit was raised as it grew", func(s *scene) {
		s.keep(300, 20, 3, tensors)
		s.open(925, func(d *traces.Descriptor) { d.Limit = 65536 })
		s.deliver(1)
	}, "clean", nil},
	{"somebody else's error with such words", func(s *scene) {
		s.open(20, few)
		s.deliver(20)
		s.Add(1, traces.Exception{Loader: 1, Worker: -2, Stage: "next", Sample: -1, Type: "ValueError", Message: "received 0 items of ancdata", Open: 20, Limit: 1024})
	}, "clean", nil},
	{"another loader's", func(s *scene) {
		s.open(20, few)
		s.deliver(20)
		s.Add(1, traces.Exception{Loader: 2, Worker: -2, Stage: "next", Sample: -1, Type: "RuntimeError", Message: ancdata, Open: 1020, Limit: 1024})
	}, "clean", nil},
	{"no workers", func(s *scene) { s.open(20, few); s.deliver(20) }, "not-applicable", nil},

	// Worth knowing.
	{"the program tries how many it may open", func(s *scene) {
		s.open(20, few)
		s.deliver(20)
		s.Add(1, traces.Descriptor{Refused: 1})
	}, "note", []string{"expects to be refused"}},
	{"ancdata, of a worker that ended", func(s *scene) {
		s.open(20, few)
		s.deliver(20)
		s.fail(1, ancdata, 40, 1024, 20)
	}, "note", []string{"40 of 1,024", "worker-killed"}},
	{"EMFILE of inotify", func(s *scene) {
		s.open(20, few)
		s.deliver(20)
		s.fail(2, emfile, 30, 1024, 3)
	}, "note", []string{"inotify"}},
	{"nearly full", func(s *scene) {
		s.open(20, few)
		s.deliver(5)
		s.open(900, tensors)
		s.deliver(500)
	}, "note", []string{"900 of 1,024"}},

	{"the loop ended without a word, hook tier", func(s *scene) {
		s.open(20, few)
		s.deliver(5)
		s.fail(1, eof, 0, 0, 0)
	}, "cannot-tell", []string{"EOFError", "kernel tier"}},
	{"no batch came, hook tier", func(s *scene) {
		s.open(20, few)
		s.deliver(5)
		s.fail(1, slow, 0, 0, 0)
	}, "cannot-tell", []string{"kernel tier"}},
	{"nobody counted", func(s *scene) { s.deliver(20) }, "cannot-tell", []string{"were not counted"}},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			workers := int32(2)
			if c.name == "no workers" {
				workers = 0
			}
			s := newScene(t, workers)
			c.play(s)
			s.End("0")
			r, err := analyze.Run(s.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			detecttest.Verdict(t, r.Findings, r.Checks, fdexhausted.Rule.ID, c.want, c.says)
		})
	}
}
