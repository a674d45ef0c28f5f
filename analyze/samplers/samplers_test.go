package samplers

import (
	"math"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

const (
	torch     = "torch.utils.data.sampler."
	dealer    = "torch.utils.data.distributed.DistributedSampler"
	torchdata = "torchdata.stateful_dataloader.sampler."
)

// loader of a sampler in torch's batch sampler, over 100 samples on 4 ranks.
func loader(class string) *traces.Loader {
	return &traces.Loader{Sampler: class, BatchSampler: torchBatches, Samplers: torchBatches + " > " + class, BatchSize: 8, Length: 100,
		SamplerReplicas: 4, SamplerTotal: 100, Replacement: "no"}
}

// TestTable walks the table: each class is told here again, and no other is.
func TestTable(t *testing.T) {
	want := map[string]struct {
		order   Order
		sharing Sharing
		name    string
		all     bool
		deals   bool
		batches int
	}{
		torch + "SequentialSampler":                    {Sequential, EachItsOwn, "SequentialSampler", true, false, 13},
		torch + "RandomSampler":                        {Shuffles, EachItsOwn, "RandomSampler", true, false, 13},
		torch + "SubsetRandomSampler":                  {Shuffles, EachItsOwn, "SubsetRandomSampler", false, false, 0},
		torch + "WeightedRandomSampler":                {Shuffles, Replacing, "WeightedRandomSampler", false, false, 0},
		dealer:                                         {Shuffles, Distributed, "DistributedSampler", true, true, 4},
		torchdata + "RandomSampler":                    {Shuffles, EachItsOwn, "RandomSampler", false, false, 0},
		torchdata + "StatefulDistributedSampler":       {Shuffles, Distributed, "StatefulDistributedSampler", false, true, 0},
		"accelerate.data_loader.SeedableRandomSampler": {Own, EachItsOwn, "SeedableRandomSampler", false, false, 0},
	}
	for class := range table {
		w, ok := want[class]
		l := loader(class)
		if !ok || OrderOf(l) != w.order || SharingOf(l) != w.sharing || AsksForAll(l) != w.all || Batches(l) != w.batches {
			t.Errorf("%s: order %d, sharing %d, all %v, %d batches; want %+v", class, OrderOf(l), SharingOf(l), AsksForAll(l), Batches(l), w)
		}
		if Name(l) != w.name || Class(l) != w.name || Path(l) != "loader.sampler" {
			t.Errorf("%s: %s, %s at %s", class, Name(l), Class(l), Path(l))
		}
		deals, exact := Deals(l)
		if deals != w.deals || exact != w.deals {
			t.Errorf("%s deals: %v, %v", class, deals, exact)
		}
		l.SamplerReplicas = 1
		if deals, _ := Deals(l); deals {
			t.Errorf("%s deals out to one rank", class)
		}
		delete(want, class)
	}
	for class := range want {
		t.Errorf("%s is not in the table", class)
	}
}

// TestWrapped: what is around a sampler, and what it is called.
func TestWrapped(t *testing.T) {
	const lightning = "pytorch_lightning.overrides.distributed.DistributedSamplerWrapper(" + dealer + ")"
	for _, c := range []struct {
		what        string
		l           traces.Loader
		order       Order
		sharing     Sharing
		name, class string
		path        string
	}{
		{"no batches", traces.Loader{Sampler: torch + "RandomSampler", BatchSize: -1}, Shuffles, EachItsOwn, "RandomSampler", "RandomSampler", "loader.sampler"},
		{"torch's batch sampler, given", traces.Loader{Sampler: dealer, BatchSampler: torchBatches, BatchSize: -1}, Shuffles, Distributed, "DistributedSampler", "DistributedSampler", "loader.batch_sampler.sampler"},
		{"the program's own", traces.Loader{Sampler: "mine.Balanced", BatchSampler: torchBatches, BatchSize: 8}, Own, Custom, "Balanced", "Balanced", "loader.sampler"},
		{"batches of the program's own, of an older trace", traces.Loader{Sampler: sequential, BatchSampler: "mine.Buckets", BatchSize: -1}, Own, Custom, "Buckets", "Buckets", "loader.batch_sampler.sampler"},
		{"batches of its own around a shuffle", traces.Loader{Sampler: torch + "RandomSampler", BatchSampler: "mine.Buckets", BatchSize: -1, Samplers: "mine.Buckets(torch.utils.data.sampler.Sampler) > " + torch + "RandomSampler"},
			Within, EachItsOwn, "RandomSampler", "RandomSampler", "loader.batch_sampler.sampler"},
		{"batches of its own around its own", traces.Loader{Sampler: "mine.Balanced", BatchSampler: "mine.Buckets", BatchSize: -1, Samplers: "mine.Buckets > mine.Balanced"},
			Own, Custom, "Balanced", "Buckets", "loader.batch_sampler.sampler"},
		{"Lightning's", traces.Loader{Sampler: "pytorch_lightning.overrides.distributed.DistributedSamplerWrapper", BatchSampler: torchBatches, BatchSize: 8, Samplers: torchBatches + " > " + lightning + " > " + torch + "RandomSampler"},
			Own, Custom, "RandomSampler", "DistributedSamplerWrapper", "loader.sampler"},
		{"with replacement", traces.Loader{Sampler: torch + "RandomSampler", BatchSampler: torchBatches, BatchSize: 8, Replacement: "yes"}, Shuffles, Replacing, "RandomSampler", "RandomSampler", "loader.sampler"},
		{"GRPO's", traces.Loader{Sampler: "trl.trainer.utils.RepeatSampler", BatchSampler: torchBatches, BatchSize: 8}, Own, Repeating, "RepeatSampler", "RepeatSampler", "loader.sampler"},
		{"nothing is known", traces.Loader{}, Own, Custom, "", "", "loader.sampler"},
		{"nonsense", traces.Loader{Samplers: " >  > ( > .", BatchSampler: "(.", Sampler: "."}, Own, Custom, "", "", "loader.batch_sampler.sampler"},
	} {
		l := &c.l
		if OrderOf(l) != c.order || SharingOf(l) != c.sharing || Name(l) != c.name || Class(l) != c.class || Path(l) != c.path {
			t.Errorf("%s: order %d, sharing %d, %s, %s at %s", c.what, OrderOf(l), SharingOf(l), Name(l), Class(l), Path(l))
		}
	}
	l := traces.Loader{Sampler: "pytorch_lightning.overrides.distributed.DistributedSamplerWrapper", Samplers: torchBatches + " > " + lightning, SamplerReplicas: 2}
	if deals, exact := Deals(&l); !deals || exact {
		t.Errorf("Lightning's deals: %v, %v", deals, exact)
	}
	if l.Iterable = true; AsksForAll(&l) {
		t.Error("a wrapper asks for all")
	}
	if deals, _ := Deals(&l); deals {
		t.Error("an IterableDataset is dealt out by index")
	}
}

// TestBatches: what is expected of a pass, and numbers that no program has.
func TestBatches(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(*traces.Loader)
		want   int
	}{
		{"the rest is a batch", func(*traces.Loader) {}, 13},
		{"drop_last", func(l *traces.Loader) { l.DropLast = true }, 12},
		{"no rest", func(l *traces.Loader) { l.Length = 96 }, 12},
		{"no samples", func(l *traces.Loader) { l.Length = 0 }, 0},
		{"length not known", func(l *traces.Loader) { l.Length = -1 }, 0},
		{"an IterableDataset", func(l *traces.Loader) { l.Iterable = true }, 0},
		{"num_samples may be another than the length", func(l *traces.Loader) { l.Replacement = "" }, 0},
		{"no batch size", func(l *traces.Loader) { l.BatchSize = -1 }, 0},
		{"batches of one", func(l *traces.Loader) { l.Length, l.BatchSize = math.MaxInt64, 1 }, math.MaxInt64},
		{"no overflow", func(l *traces.Loader) { l.Length, l.BatchSize = math.MaxInt64, math.MaxInt32 }, math.MaxInt64/math.MaxInt32 + 1},
		{"the least length", func(l *traces.Loader) { l.Length = math.MinInt64 }, 0},
		{"shares that do not come out even", func(l *traces.Loader) { *l = *loader(dealer); l.SamplerReplicas = 3 }, 0},
		{"no ranks", func(l *traces.Loader) { *l = *loader(dealer); l.SamplerReplicas = 0 }, 0},
		{"Lightning's around it", func(l *traces.Loader) { l.Samplers = torchBatches + " > mine.Wrapper > " + torch + "RandomSampler" }, 0},
		{"no batch sampler", func(l *traces.Loader) { l.Samplers = torch + "RandomSampler" }, 0},
	} {
		l := loader(torch + "RandomSampler")
		c.change(l)
		if got := Batches(l); got != c.want {
			t.Errorf("%s: %d batches, want %d", c.what, got, c.want)
		}
	}
}
