// Bench-ledger writes the trace of a long training on many ranks, for
// tools/bench: a dataset of a million samples that a DistributedSampler deals
// out to all ranks, pass by pass, in batches of 256 to 1024.
//
// usage: bench-ledger FOLDER SAMPLES RANKS
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
	if len(args) != 3 {
		return fmt.Errorf("usage: bench-ledger FOLDER SAMPLES RANKS")
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	ranks, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("ranks: %w", err)
	}
	var nodes []*node
	for first := 0; first < ranks; first += perNode {
		w, err := traces.Create(args[0], fmt.Sprintf("node-%03d", first/perNode), traces.Options{RunID: "bench", BootID: fmt.Sprint(first)})
		if err != nil {
			return fmt.Errorf("trace: %w", err)
		}
		nodes = append(nodes, &node{w: w, first: first, ranks: min(perNode, ranks-first), world: ranks})
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
	now          int64
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
				BatchSize:       256,
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

// pass deals out the samples of one pass.
func (n *node) pass(pass uint32, order []int64) {
	var indices []int64
	for i := range n.ranks {
		proc := uint32(i + 1)
		n.w.Append(traces.Pass{Head: n.head(proc), Loader: 1, Pass: pass, Phase: "begin", SamplerEpoch: int64(pass)})
		steps, batch := uint64(pass)*uint64(len(order)), uint32(0)
		for at := n.first + i; at < len(order); {
			indices = indices[:0]
			for size := 256 << (batch % 3); at < len(order) && len(indices) < size; at += n.world {
				indices = append(indices, order[at])
			}
			n.w.Append(traces.BatchPut{Head: n.head(proc), Loader: 1, Pass: pass, Batch: batch, Worker: -1, Indices: indices})
			n.w.Append(
				traces.BatchFetch{Head: n.head(proc), Loader: 1, Pass: pass, Worker: -1, Batch: batch, Fetch: batch, Samples: int32(len(indices))},
			)
			n.w.Append(
				traces.BatchNext{
					Head:      n.head(proc),
					Loader:    1,
					Pass:      pass,
					Batch:     batch,
					Worker:    -1,
					Status:    "ok",
					Steps:     steps,
					Optimizer: 1,
					Grad:      true,
				},
			)
			steps++
			batch++
		}
		n.w.Append(
			traces.BatchNext{
				Head:      n.head(proc),
				Loader:    1,
				Pass:      pass,
				Batch:     batch,
				Worker:    -1,
				Status:    "stop",
				Steps:     steps,
				Optimizer: 1,
				Grad:      true,
			},
		)
		n.w.Append(traces.Pass{Head: n.head(proc), Loader: 1, Pass: pass, Phase: "end", End: "exhausted", Delivered: batch})
	}
}
