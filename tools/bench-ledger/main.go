// Bench-ledger writes the trace of a long training on many ranks, for
// tools/bench: a dataset of a million samples that a DistributedSampler deals
// out to all ranks, pass by pass, in batches of BATCH (256), twice and four times
// as many.
//
// usage: bench-ledger FOLDER SAMPLES RANKS [BATCH]
package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/dptrace/dptrace/traces"
)

const (
	dataset = 1_000_000 // samples
	perNode = 8         // ranks of one part
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench-ledger:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 && len(args) != 4 {
		return fmt.Errorf("usage: bench-ledger FOLDER SAMPLES RANKS [BATCH]")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	ranks, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("ranks: %w", err)
	}
	batch := 256
	if len(args) == 4 {
		if batch, err = strconv.Atoi(args[3]); err != nil || batch < 1 {
			return fmt.Errorf("batch: %q is no size", args[3])
		}
	}
	var nodes []*node
	for first := 0; first < ranks; first += perNode {
		w, err := traces.Create(args[0], fmt.Sprintf("node-%03d", first/perNode), traces.Options{RunID: "bench", BootID: fmt.Sprint(first)})
		if err != nil {
			return fmt.Errorf("trace: %w", err)
		}
		uneven := rand.New(rand.NewPCG(uint64(first), 3))
		nodes = append(nodes, &node{w: w, first: first, ranks: min(perNode, ranks-first), world: ranks, batch: batch, uneven: uneven})
	}
	for _, node := range nodes {
		node.begin()
	}
	order := make([]int64, dataset)
	for i := range order {
		order[i] = int64(i)
	}
	shuffler := rand.New(rand.NewPCG(1, 2))
	for pass := uint32(0); n > 0; pass++ {
		shuffler.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, node := range nodes {
			node.pass(pass, order[:min(n, dataset)])
		}
		n -= dataset
	}
	for _, node := range nodes {
		node.w.Append(traces.Meta{Head: node.head(0), Key: "exit_code", Value: "0"})
		if err := node.w.Seal(); err != nil {
			return fmt.Errorf("trace: %w", err)
		}
	}
	return nil
}

// node is the part of some ranks.
type node struct {
	w            *traces.Writer
	first, ranks int
	world        int
	batch        int // samples of the smallest
	now          int64
	uneven       *rand.Rand
	steps        [perNode]uint64 // of each rank
}

func (n *node) head(proc uint32) traces.Head {
	n.now += 1000
	return traces.Head{TsNS: n.now, Proc: proc}
}

func (n *node) begin() {
	for i := range n.ranks {
		proc, rank := uint32(i+1), int32(n.first+i)
		n.w.Append(
			traces.Process{
				Head:      n.head(proc),
				Pid:       1000 + int32(i),
				Kind:      "python",
				Hook:      "on",
				Python:    "3.11.2",
				Torch:     "2.15.0",
				Rank:      rank,
				LocalRank: int32(i),
				WorldSize: int32(n.world),
			},
		)
		n.w.Append(traces.Dist{Head: n.head(proc), Op: "ddp", Class: "Model", Backend: "nccl"})
		n.w.Append(traces.Dataset{Head: n.head(proc), Dataset: 1, Class: "__main__.Images", Length: dataset})
		n.w.Append(
			traces.Loader{
				Head:            n.head(proc),
				Loader:          1,
				Class:           "torch.utils.data.dataloader.DataLoader",
				DatasetClass:    "__main__.Images",
				DatasetID:       1,
				Length:          dataset,
				BatchSize:       int32(n.batch),
				InOrder:         true,
				Sampler:         "torch.utils.data.distributed.DistributedSampler",
				BatchSampler:    "torch.utils.data.sampler.BatchSampler",
				Samplers:        "torch.utils.data.sampler.BatchSampler > torch.utils.data.distributed.DistributedSampler",
				SamplerRank:     int64(rank),
				SamplerReplicas: int64(n.world),
				File:            "/home/me/train.py",
				Line:            88,
			},
		)
	}
}

// What a batch takes.
const (
	sampled   = 20_000 // ns
	fetched   = 2_000_000
	collated  = 500_000
	trained   = 5_000_000 // and up to a fifth more
	exhausted = 10_000
)

// pass deals out the samples of one pass.
func (n *node) pass(pass uint32, order []int64) {
	var indices []int64
	begin, end := n.now, n.now
	for i := range n.ranks { // one after another in the file, at one time
		proc := uint32(i + 1)
		n.now = begin
		n.w.Append(traces.Pass{Head: n.head(proc), Loader: 1, Pass: pass, Phase: "begin", SamplerEpoch: int64(pass)})
		batch := uint32(0)
		for at := n.first + i; at < len(order); {
			indices = indices[:0]
			for size := n.batch << (batch % 3); at < len(order) && len(indices) < size; at += n.world {
				indices = append(indices, order[at])
			}
			n.deliver(proc, pass, batch, indices)
			batch++
		}
		called := n.now
		n.now += exhausted
		n.next(proc, traces.BatchNext{Pass: pass, Batch: batch, Status: "stop"}, called)
		n.w.Append(traces.Pass{Head: n.head(proc), Loader: 1, Pass: pass, Phase: "end", End: "exhausted", Delivered: batch})
		end = max(end, n.now)
	}
	n.now = end
}

// deliver one batch, which is fetched in the main process, and train on it.
func (n *node) deliver(proc, pass, batch uint32, indices []int64) {
	called := n.now
	n.now += sampled
	n.w.Append(traces.BatchPut{Head: n.head(proc), Loader: 1, Pass: pass, Batch: batch, Worker: -1, DurNS: sampled, Indices: indices})
	n.w.Append(
		traces.BatchFetch{
			Head:      n.head(proc),
			Loader:    1,
			Pass:      pass,
			Worker:    -1,
			Batch:     batch,
			Fetch:     batch,
			FetchNS:   fetched,
			CollateNS: collated,
			Samples:   int32(len(indices)),
		},
	)
	n.now += fetched + collated
	n.next(proc, traces.BatchNext{Pass: pass, Batch: batch, Status: "ok", Rows: int32(len(indices))}, called)
	n.steps[proc-1]++
	n.now += trained + n.uneven.Int64N(trained/5)
}

// next is what the training loop gets; all of its batches so far were trained on.
func (n *node) next(proc uint32, r traces.BatchNext, called int64) {
	steps := n.steps[proc-1]
	r.Head = n.head(proc)
	r.CallNS = called
	r.Loader, r.Worker, r.Optimizer, r.Grad, r.Watched = 1, -1, 1, true, true
	r.Steps, r.Backwards = steps, steps
	if steps > 0 && (r.Batch > 0 || r.Pass > 0) {
		r.GradsFrom, r.GradsTo = steps-1, steps
	}
	n.w.Append(r)
}
