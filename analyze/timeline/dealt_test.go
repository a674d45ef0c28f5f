package timeline

import (
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// TestBrokenOffAfterTheLast: a pass that was left after the last batch that its
// sampler deals out came to its end.
func TestBrokenOffAfterTheLast(t *testing.T) {
	const batches, split = "torch.utils.data.sampler.BatchSampler", "torch.utils.data.distributed.DistributedSampler"
	for _, c := range []struct {
		name      string
		loader    traces.Loader
		delivered uint32
		want      bool
	}{
		{"a share, the last batch short", traces.Loader{BatchSize: 8, Samplers: batches + " > " + split, SamplerTotal: 100, SamplerReplicas: 2}, 7, true},
		{"one batch fewer", traces.Loader{BatchSize: 8, Samplers: batches + " > " + split, SamplerTotal: 100, SamplerReplicas: 2}, 6, false},
		{"the last one dropped", traces.Loader{BatchSize: 8, DropLast: true, Samplers: batches + " > " + split, SamplerTotal: 100, SamplerReplicas: 2}, 6, true},
		{"a sampler of the program's own on top", traces.Loader{BatchSize: 8, Samplers: batches + " > __main__.Half(" + split + ")", SamplerTotal: 100, SamplerReplicas: 2}, 7, false},
		{"in order", traces.Loader{BatchSize: 8, Samplers: batches + " > torch.utils.data.sampler.SequentialSampler", Length: 50}, 7, true},
		{"of a length that is not known", traces.Loader{BatchSize: 8, Samplers: batches + " > torch.utils.data.sampler.SequentialSampler", Length: -1}, 7, false},
		{"shuffled", traces.Loader{BatchSize: 8, Samplers: batches + " > torch.utils.data.sampler.RandomSampler", Length: 50, Replacement: "no"}, 7, true},
		{"drawn with replacement, steps counted", traces.Loader{BatchSize: 8, Samplers: batches + " > torch.utils.data.sampler.RandomSampler", Length: 50, Replacement: "yes"}, 7, false},
		{"an IterableDataset", traces.Loader{BatchSize: 8, Iterable: true, Samplers: batches + " > torch.utils.data.sampler.SequentialSampler", Length: 50}, 7, false},
		{"batches of the program's own", traces.Loader{BatchSize: -1, Samplers: batches + " > " + split, SamplerTotal: 100, SamplerReplicas: 2}, 7, false},
	} {
		b := NewBuilder()
		part := &traces.Part{Name: "p", Sealed: true}
		c.loader.Loader, c.loader.Proc = 1, 1
		b.Add(traces.Batch{Part: part, Table: "loader", Rows: []traces.Loader{c.loader}})
		b.Add(traces.Batch{Part: part, Table: "pass", Rows: []traces.Pass{{Head: traces.Head{Proc: 1}, Loader: 1, Phase: "begin"},
			{Head: traces.Head{Proc: 1}, Loader: 1, Phase: "end", End: "dropped", Delivered: c.delivered}}})
		if p := b.build(nil).Loaders[0].Passes[0]; p.Exhausted != c.want {
			t.Errorf("%s: after %d batches at its end %v, want %v", c.name, c.delivered, p.Exhausted, c.want)
		}
	}
}
