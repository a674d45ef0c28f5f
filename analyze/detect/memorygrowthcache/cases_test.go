package memorygrowthcache_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/memorygrowthcache"
	"github.com/dptrace/dptrace/traces"
)

const (
	kb  = 1 << 10
	mb  = 1 << 20
	gib = 1 << 30
)

// kept is a container. How many items it holds after so many batches of a process,
// of which so many are of its present pass, is what items says.
type kept struct {
	path, function, class string
	items                 func(served, inPass int) int
	each                  int64 // bytes of an item
	cap                   int64 // 0: none
	bound                 string
	graph                 bool
	only                  int  // number of the worker that has it, plus one; 0: all
	main                  bool // the main process has it
	held                  bool // its items were there before
	shared                bool // its items are in shared memory
}

// scene is a played DataLoader whose processes were looked at. Batches are of 8
// samples, and take a second.
type scene struct {
	workers, passes, batches int // batches of a worker in a pass
	mortal                   bool
	iterable                 bool
	length                   int64 // of the dataset; 0: what a pass gives
	ranks                    int
	looks                    int // at each process in a pass; 0 is 8
	limit, usage             int64
	indices                  func(pass, batch, worker int) int64 // the first of a batch; nil: the same worker always gets the same
	anon                     func(served int) int64              // beside what is kept
	alone                    bool                                // anon is of the first worker alone
	unknown                  bool                                // the kernel tells no anonymous memory
	cut                      string
	stop                     int // batches of a worker after which a pass is broken off
	keep                     []kept
}

// each is a container that holds some items for each batch.
func each(n int) func(int, int) int { return func(served, _ int) int { return n * served } }

// upTo holds eight items for each batch, at most so many.
func upTo(most int) func(int, int) int {
	return func(served, _ int) int { return min(8*served, most) }
}

// with changes a container.
func (k kept) with(change func(*kept)) kept {
	change(&k)
	return k
}

var (
	cache    = kept{path: "dataset.cache", class: "dict", items: each(8), each: 400 * kb}
	list     = kept{path: "dataset.log", class: "list", items: each(8), each: 400 * kb}
	memo     = kept{path: "__main__.load", class: "functools._lru_cache_wrapper", items: each(8), each: 400 * kb}
	losses   = kept{path: "losses", function: "__main__.main", class: "list", items: each(8), each: 400 * kb, main: true}
	ordinary = scene{workers: 2, passes: 2, batches: 60, limit: 4 * gib, usage: gib}
)

func (s scene) with(change func(*scene)) scene {
	change(&s)
	return s
}

// keeps is a scene in which something is kept.
func keeps(all ...kept) scene { return ordinary.with(func(s *scene) { s.keep = all }) }

func (s scene) play(run *Run) {
	if s.limit > 0 {
		run.Limit("cgroup", "/job", s.limit, s.usage)
	}
	if s.looks == 0 {
		s.looks = 8
	}
	for rank := range max(s.ranks, 1) {
		p := run.Process(-1, 0)
		if s.ranks > 0 {
			p = run.Process(rank, s.ranks)
		}
		s.on(run, p)
	}
	if s.limit > 0 {
		run.Limit("cgroup", "/job", s.limit, s.usage)
	}
	run.End("0")
}

// on plays the loader in one main process.
func (s scene) on(run *Run, main *Process) {
	if s.length == 0 {
		s.length = int64(8 * s.batches * max(s.workers, 1))
	}
	run.Add(main.Proc, traces.Loader{Loader: 1, Class: "torch.utils.data.dataloader.DataLoader", DatasetClass: "__main__.Photos", Length: s.length,
		BatchSize: 8, NumWorkers: int32(s.workers), Persistent: !s.mortal && s.workers > 0, Iterable: s.iterable, StartMethod: "fork",
		File: "/home/me/proj/train.py", Line: 88})
	var workers []*Process
	delivered := 0
	for pass := range s.passes {
		run.Add(main.Proc, traces.Pass{Loader: 1, Pass: uint32(pass), Phase: "begin"})
		if s.mortal || pass == 0 {
			workers = nil
			for i := range s.workers {
				w := run.Process(-1, 0)
				workers = append(workers, w)
				pid := int32(1000 + w.Proc%60)
				run.Add(main.Proc, traces.Worker{Loader: 1, Pass: uint32(pass), Worker: int32(i), Pid: pid, Phase: "begin"})
				run.Add(w.Proc, traces.Worker{Worker: int32(i), Pid: pid, Phase: "ready"})
			}
		}
		batches, end := s.batches, "exhausted"
		if s.stop > 0 {
			batches, end = s.stop, "dropped"
		}
		for b := range batches {
			s.batch(run, main, workers, pass, b, delivered)
			delivered += max(s.workers, 1)
			if s.looks > 0 && b%max(batches/s.looks, 1) == 0 {
				s.look(run, main, workers, pass, b, delivered)
			}
		}
		run.Add(main.Proc, traces.Pass{Loader: 1, Pass: uint32(pass), Phase: "end", End: end, Delivered: uint32(batches * max(s.workers, 1))})
	}
}

// batch plays one batch of each worker.
func (s scene) batch(run *Run, main *Process, workers []*Process, pass, b, delivered int) {
	n := max(s.workers, 1)
	for i := range n {
		number, batch := int32(i), uint32(b*n+i)
		if s.workers == 0 {
			number = -1
		}
		if !s.iterable {
			first := int64(8 * (b*n + i))
			if s.indices != nil {
				first = s.indices(pass, b, i)
			}
			put := traces.BatchPut{Loader: 1, Pass: uint32(pass), Batch: batch, Worker: number}
			for k := range int64(8) {
				put.Indices = append(put.Indices, first+k)
			}
			run.Add(main.Proc, put)
		}
		fetch := traces.BatchFetch{Loader: 1, Pass: uint32(pass), Worker: number, Batch: batch, Fetch: uint32(b), FetchNS: 1e6, Samples: 8}
		if number < 0 {
			run.Add(main.Proc, fetch)
		} else {
			fetch.Loader, fetch.Pass = 0, s.local(pass)
			run.Add(workers[i].Proc, fetch)
		}
		run.Add(main.Proc, traces.BatchNext{Loader: 1, Pass: uint32(pass), Batch: batch, Worker: number, Status: "ok", Grad: true, Rows: 8,
			Steps: uint64(delivered + i + 1), Optimizer: 1})
	}
	run.Wait(1e9)
}

// local is the number that a worker gives a pass.
func (s scene) local(pass int) uint32 {
	if s.mortal {
		return 0
	}
	return uint32(pass)
}

// look looks at all processes.
func (s scene) look(run *Run, main *Process, workers []*Process, pass, b, delivered int) {
	served := pass*s.batches + b + 1
	if s.mortal {
		served = b + 1
	}
	if s.stop > 0 && !s.mortal {
		served = pass*s.stop + b + 1
	}
	for i, w := range workers {
		s.one(run, w, i, traces.Footprint{Pass: s.local(pass), Worker: int32(i), Served: int64(served)}, served, b+1)
	}
	s.one(run, main, -1, traces.Footprint{Loader: 1, Pass: uint32(pass), Worker: -1, Served: int64(delivered)}, delivered, b+1)
}

func (s scene) one(run *Run, p *Process, worker int, at traces.Footprint, served, inPass int) {
	at.When, at.Cut, at.Anon, at.Containers = "window", s.cut, 200*mb, 20
	if s.anon != nil && (!s.alone || worker == 0) {
		at.Anon += s.anon(served)
	}
	for _, k := range s.keep {
		if k.main != (worker < 0) || k.only > 0 && k.only != worker+1 {
			continue
		}
		items := int64(k.items(served, inPass))
		first := int64(k.items(1, 1))
		switch {
		case k.held:
		case k.shared:
			at.Shm += items * k.each
		default:
			at.Anon += items * k.each
		}
		row := traces.Container{Loader: at.Loader, Pass: at.Pass, Worker: at.Worker, Served: at.Served, Path: k.path, Function: k.function, Class: k.class,
			Items: items, FirstItems: first, FirstServed: 1, AddedBytes: max(items-first, 0) * k.each, Graph: k.graph, Cap: -1, Bound: k.bound}
		if k.cap > 0 {
			row.Cap = k.cap
		}
		if k.shared {
			row.AddedBytes, row.SharedBytes = 0, row.AddedBytes
		}
		if items > first || served > 1 {
			run.Add(p.Proc, row)
		}
	}
	if s.unknown {
		at.Anon, at.Swap = -1, -1
	}
	run.Add(p.Proc, at)
}

// keys is how many of so many keys have been drawn: eight for each batch.
func keys(all int) func(int, int) int {
	return func(served, _ int) int { return int(float64(all) * -math.Expm1(-8*float64(served)/float64(all))) }
}

// curriculum asks for the samples of 30 batches twice, then for these and as many new ones once.
func curriculum(pass, batch, worker int) int64 {
	return int64(8 * (2*(batch/2+30*pass*(batch%2)) + worker))
}

// others shifts a worker's samples in each pass by those of so many of its batches: that
// share of them is new to it.
func others(batches int) func(pass, batch, worker int) int64 {
	return func(pass, batch, worker int) int64 { return int64(8 * (2*(batch+batches*pass) + worker)) }
}

// cases: want is the certainty or the status, and words that must be in what is said; those behind "not:" must not.
var cases = []struct {
	name string
	scene
	want string
	says []string
}{
	// What is proven.
	{"a dictionary", keeps(cache), "proven", []string{"dataset.cache keeps growing in 2 workers", "100 % of the samples had been asked of the same process before",
		"while len(self.cache) >=", "the limit is reached in", "A batch added 8 items in pass 0 and 8 in pass 1"}},
	{"a list", keeps(list), "proven", []string{"dataset.log keeps growing", "self.log = collections.deque(maxlen="}},
	{"a function's cache without an end", keeps(memo), "proven", []string{"__main__.load", "@functools.lru_cache(maxsize="}},
	{"a set", keeps(cache.with(func(k *kept) { k.path, k.class = "dataset.seen", "set" })), "proven", []string{"self.seen.pop()"}},
	{"lists by label", keeps(list.with(func(k *kept) { k.path = "dataset.by_label[*]" })), "proven", []string{"del items[:-"}},
	{"six passes", keeps(cache).with(func(s *scene) { s.passes, s.batches = 6, 20 }), "proven", []string{"in pass 5"}},
	{"half of the samples are old", keeps(cache).with(func(s *scene) { s.indices = others(30) }), "proven", []string{"50 %"}},
	{"in one worker of two", keeps(cache.with(func(k *kept) { k.only, k.each = 2, 800*kb })), "proven", []string{"in 1 worker"}},
	{"a stream whose workers append", keeps(list).with(func(s *scene) { s.iterable, s.length = true, -1 }), "proven", []string{"dataset.log"}},
	{"two ranks of one host", keeps(cache.with(func(k *kept) { k.each = 200 * kb })).with(func(s *scene) { s.ranks = 2 }), "proven",
		[]string{"4 workers"}},
	{"beside what is bounded", keeps(cache, list.with(func(k *kept) { k.path, k.items = "dataset.buffer", upTo(80) })), "proven",
		[]string{"dataset.cache", "not:dataset.buffer"}},

	// Excuses. First: it stops later.
	{"the code measures it", keeps(cache.with(func(k *kept) { k.bound = "measures" })), "likely", []string{"it stops at a length"}},
	{"no code names it", keeps(cache.with(func(k *kept) { k.bound = "unknown" })), "likely", []string{"it stops at a length"}},
	{"nothing of the code ends it", keeps(cache.with(func(k *kept) { k.bound = "" })), "proven", []string{"not:it stops at a length"}},
	// Second: something for each sample or key, once.
	{"other samples in each pass", keeps(cache).with(func(s *scene) { s.indices = others(60) }), "likely", []string{"something for each sample or key"}},
	{"a third of the samples is old", keeps(cache).with(func(s *scene) { s.indices = others(40) }), "likely", []string{"something for each sample or key"}},
	{"all samples are old", keeps(cache).with(func(s *scene) { s.passes = 3 }), "proven", []string{"not:something for each sample"}},
	// Third: the program wants it.
	{"outputs that the loop keeps", keeps(losses), "likely", []string{"losses in main()", "what the program wants to have", "the main process"}},
	{"the same in workers", keeps(losses.with(func(k *kept) { k.main, k.path, k.function = false, "dataset.losses", "" })), "proven", nil},
	{"batches that the loop keeps, which are in shared memory", keeps(losses.with(func(k *kept) { k.shared = true })), "likely",
		[]string{"losses in main()", "by 760 MB so far", "what the program wants to have"}},
	{"the same of workers, in shared memory", keeps(list.with(func(k *kept) { k.shared = true })), "proven", []string{"dataset.log keeps growing"}},
	// Fourth: the allocator.
	{"memory without a name", ordinary.with(func(s *scene) { s.anon = func(served int) int64 { return int64(served) * 4 * mb } }), "likely",
		[]string{"no container dptrace can reach", "the memory allocator keeps"}},
	{"tensors with their graph", keeps(list.with(func(k *kept) { k.graph = true })), "likely", []string{"grad_fn", ".item()", "allocator"}},
	{"tensors without", keeps(list.with(func(k *kept) { k.graph = false })), "proven", []string{"not:grad_fn"}},

	// What is a bug only if it goes on so.
	{"the limit is near", keeps(cache.with(func(k *kept) { k.each = 100 * kb })).with(func(s *scene) { s.limit, s.usage = 64*gib, 60*gib }), "likely",
		[]string{"the limit is reached in"}},
	{"the first pass will not fit", keeps(cache).with(func(s *scene) { s.passes, s.length = 1, 20000 }), "likely", []string{"does not fit", "forecast"}},
	{"a maxsize that does not fit", keeps(memo.with(func(k *kept) { k.cap = 100_000 })), "likely", []string{"fills up to its 100,000 items", "A smaller maxsize"}},
	{"a stream in its first pass", keeps(list).with(func(s *scene) { s.iterable, s.length, s.passes = true, -1, 1 }), "likely", []string{"dataset.log"}},

	// Notes.
	{"below 5 %", keeps(cache.with(func(k *kept) { k.each = 20 * kb })).with(func(s *scene) { s.limit = 1024 * gib }), "note", []string{"dataset.cache"}},
	{"no limit is known", keeps(cache).with(func(s *scene) { s.limit = 0 }), "note", []string{"dataset.cache"}},
	{"the first pass, which fits", keeps(cache).with(func(s *scene) { s.passes = 1 }), "note", []string{"grows with the samples", "In one pass nobody can tell"}},
	{"workers of each pass anew", keeps(list).with(func(s *scene) { s.mortal, s.passes = true, 3 }), "note", []string{"until the pass is over", "begin anew"}},
	{"a maxsize that fits", keeps(memo.with(func(k *kept) { k.cap = 1200 })), "note", []string{"fills up to its 1,200 items"}},
	{"losses as numbers", keeps(losses.with(func(k *kept) { k.each = 200 * kb })).with(func(s *scene) { s.limit = 4096 * gib }), "note", nil},

	// What is clean.
	{"nothing", keeps(), "clean", []string{"54 looks at 3 processes"}},
	{"a plateau", keeps(cache.with(func(k *kept) { k.items = upTo(200) })), "clean", []string{"1 container of those that grew stopped"}},
	{"emptied at each pass", keeps(cache.with(func(k *kept) { k.items = func(_, inPass int) int { return 8 * inPass } })), "clean", nil},
	{"emptied at thirty batches", keeps(list.with(func(k *kept) { k.items = func(served, _ int) int { return 8 * (served % 30) } })), "clean", nil},
	{"a deque that is full", keeps(kept{path: "dataset.last", class: "collections.deque", items: upTo(100), each: 400 * kb, cap: 100}), "clean", nil},
	{"a function's cache that is full", keeps(memo.with(func(k *kept) { k.cap, k.items = 400, upTo(400) })), "clean", nil},
	{"full after one pass", keeps(cache.with(func(k *kept) { k.items = upTo(480) })).with(func(s *scene) { s.passes = 4 }), "clean", nil},
	{"what is loaded first", keeps().with(func(s *scene) { s.anon = func(served int) int64 { return int64(min(served, 20)) * 30 * mb } }), "clean", nil},
	{"references to shared memory that was there", keeps(list.with(func(k *kept) { k.held, k.shared = true, true })), "clean", nil},
	{"small growth", keeps(cache.with(func(k *kept) { k.each = 4 * kb })), "clean", []string{"took little"}},
	{"references to what was there", keeps(list.with(func(k *kept) { k.each = 0 })), "clean", nil},

	// Hostile: correct programs that look like it, and bugs in disguise.
	{"sixteen turns of each sample, which will fit", keeps(cache.with(func(k *kept) { k.items = keys(16 * 480) })).with(func(s *scene) { s.limit = 8 * gib }),
		"likely", []string{"something for each sample or key"}},
	{"a thousand turns, which never will", keeps(cache.with(func(k *kept) { k.items = keys(1000 * 480) })), "proven", nil},
	{"the easy samples first, again and again", keeps(cache.with(func(k *kept) { k.items = each(4) })).with(func(s *scene) { s.indices = curriculum }),
		"likely", []string{"something for each sample or key"}},
	{"what is known of a stream, which goes on in the next pass", keeps(cache).with(func(s *scene) { s.iterable, s.length = true, -1 }), "likely",
		[]string{"something for each sample or key"}},
	{"references to what was there, and a model that is loaded late", keeps(list.with(func(k *kept) { k.held = true })).with(func(s *scene) {
		s.anon = func(served int) int64 { return int64(min(served, 40)) * 10 * mb }
	}), "clean", nil},
	{"emptied once, and never again", keeps(list.with(func(k *kept) {
		k.items = func(served, _ int) int {
			if served < 10 {
				return 8 * served
			}
			return 8 * (served - 9)
		}
	})), "likely", nil},
	{"memory without a name, in one worker of two", ordinary.with(func(s *scene) {
		s.anon, s.alone = func(served int) int64 { return int64(served) * 4 * mb }, true
	}), "likely", []string{"The memory of 1 worker grows"}},
	{"in the second worker it hardly grows", keeps(list.with(func(k *kept) { k.only = 1 }), list.with(func(k *kept) {
		k.only, k.items = 2, func(served, _ int) int { return min(8*served, 25) }
	})), "likely", nil},

	// What cannot be told.
	{"looked at once", keeps(cache).with(func(s *scene) { s.passes, s.looks = 1, 1 }), "cannot-tell", []string{"looked at twice"}},
	{"too seldom", keeps(cache).with(func(s *scene) { s.passes, s.looks = 1, 2 }), "cannot-tell", []string{"looked at too seldom"}},
	{"an older trace", keeps(cache).with(func(s *scene) { s.looks = -1 }), "cannot-tell", []string{"an older dptrace"}},
	{"too many objects", keeps().with(func(s *scene) { s.cut = "objects" }), "cannot-tell", []string{"too many objects"}},
	{"too little time", keeps().with(func(s *scene) { s.cut = "time" }), "cannot-tell", []string{"not all containers were looked at: the look would have taken too long"}},
	{"too many objects, and a leak", keeps(cache).with(func(s *scene) { s.cut = "objects" }), "proven", nil},
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			c.play(run)
			verdict(t, run, c.want, c.says)
		})
	}
}

func verdict(t *testing.T, run *Run, want string, says []string) {
	t.Helper()
	r, err := analyze.Run(run.Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	Verdict(t, r.Findings, r.Checks, memorygrowthcache.Rule.ID, want, says)
}

// TestLost: what was seen stands, and that nothing is there nobody can say.
func TestLost(t *testing.T) {
	for _, table := range []string{"container", "footprint"} {
		for want, keep := range map[string][]kept{"cannot-tell": nil, "proven": {cache}} {
			t.Run(fmt.Sprint(table, " ", want), func(t *testing.T) {
				run := NewRun(t)
				run.Lost("hook", table, 3)
				keeps(keep...).play(run)
				verdict(t, run, want, nil)
			})
		}
	}
}
