package reseed

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/analyze/evidence/draws"
)

func TestExpression(t *testing.T) {
	for _, c := range []struct{ path, want string }{
		{"dataset", "info.dataset"},
		{"dataset.rng", "info.dataset.rng"},
		{"dataset.dataset.datasets[0].transform.steps[1]._rng", "info.dataset.dataset.datasets[0].transform.steps[1]._rng"},
		{`dataset.options['a.b]<c>'].rng`, `info.dataset.options['a.b]<c>'].rng`},
		{`dataset.options["it's"]['\'']`, `info.dataset.options["it's"]['\'']`},
		{"dataset.transform.__self__.coin", "info.dataset.transform.__self__.coin"},
		{"dataset.transform<closure coin>", "info.dataset.transform.__closure__[info.dataset.transform.__code__.co_freevars.index('coin')].cell_contents"},
		{"dataset.transform<default coin>.rng", "inspect.signature(info.dataset.transform).parameters['coin'].default.rng"},
		{"dataset.current.get()", "info.dataset.current.get()"},
		{"dataset<local r>", ""},
		{"pkg.RNG (2)", ""},
		{"dataset.x<yield from>", ""},
		{"dataset.x<closure", ""},
		{"dataset.x['", ""},
	} {
		got, ok := expression(c.path, "info.dataset")
		if ok != (c.want != "") || ok && got != c.want {
			t.Errorf("expression(%q) = %q, %v; want %q", c.path, got, ok, c.want)
		}
	}
}

func TestModule(t *testing.T) {
	for _, c := range []struct{ path, owner, want string }{
		{"pkg.aug.RNG", "pkg.aug", "pkg.aug"},
		{"__main__.COIN", "__main__", "__main__"},
		{"__main__.FLIP.coin", "pkg.aug.Flip", "__main__"},
		{"pkg.aug.FLIP.coin", "pkg.aug.Flip", "pkg.aug"},
		{"pkg.aug.FLIP.coin", "pkg.aug.Flip.Inner", "pkg.aug"},
		{"pkg.aug.FLIP.coin", "other.Flip", "pkg"},
		{"pkg.augment.RNG", "pkg.aug", "pkg"},
	} {
		if got := module(c.path, c.owner); got != c.want {
			t.Errorf("module(%q, %q) = %q, want %q", c.path, c.owner, got, c.want)
		}
	}
}

func TestLastName(t *testing.T) {
	for path, want := range map[string]string{"iterator<local jitter>": "jitter", "dataset.a.rng": "rng", "collate_fn.keywords['rng']": "rng", "iterator.x[3]": "", "dataset.rngs['image']": "",
		"dataset.rngs[0].rng": "rng", "lru_cache of pkg.rng()": "", "a random.Random that no variable leads to": ""} {
		if got := lastName(path); got != want {
			t.Errorf("lastName(%q) = %q, want %q", path, got, want)
		}
	}
}

const at = "train.py:88"

// TestCode pins the code; e2e runs it in real programs.
func TestCode(t *testing.T) {
	slot := func(path, kind, class, role string) *draws.Slot {
		return &draws.Slot{Path: path, Kind: kind, Class: class, Role: role, Owner: "pkg.aug"}
	}
	numpy := slot("dataset.rng", "pcg64", "numpy.random._generator.Generator", "dataset")
	torch := slot("dataset.transform.gen", "mt19937", "torch._C.Generator", "transform")
	globalTorch := slot("torch", "mt19937", "torch._C.Generator", "global")
	globalNumpy := slot("numpy", "mt19937", "numpy.random._mt19937.MT19937", "global")
	for _, c := range []struct {
		name string
		Case
		want string
	}{
		{"a generator of the dataset", Case{Targets: []Target{{Slot: numpy}}}, `def seed_worker(worker_id):
    import random, torch
    info = torch.utils.data.get_worker_info()
    seeds = random.Random(info.seed)  # info.seed is another one in each worker and each pass
    bits = info.dataset.rng.bit_generator
    bits.state = type(bits)(seeds.getrandbits(63)).state

# train.py:88: DataLoader(..., worker_init_fn=seed_worker)`},
		{"several, two of which ran alike, and an init function", Case{Init: "pkg.init", Targets: []Target{{Slot: numpy}, {Slot: torch, Seed: 1}, {Slot: globalNumpy, Seed: 1}, {Slot: globalTorch, Seed: 3}}}, `def seed_worker(worker_id):
    import numpy, random, torch
    info = torch.utils.data.get_worker_info()
    seeds = random.Random(info.seed)  # info.seed is another one in each worker and each pass
    bits = info.dataset.rng.bit_generator
    bits.state = type(bits)(seeds.getrandbits(63)).state
    seed = seeds.getrandbits(31)  # the same for those that ran alike
    info.dataset.transform.gen.manual_seed(seed)
    numpy.random.seed(seed)
    torch.manual_seed(seeds.getrandbits(63))

# train.py:88: DataLoader(..., worker_init_fn=seed_worker)
# It takes the place of pkg.init. What else that does goes to the top of seed_worker.`},
		{"of a module", Case{Targets: []Target{{Slot: slot("pkg.aug.RNG", "mt19937", "random.Random", "module")}}}, `def seed_worker(worker_id):
    import pkg.aug, random, torch
    info = torch.utils.data.get_worker_info()
    seeds = random.Random(info.seed)  # info.seed is another one in each worker and each pass
    pkg.aug.RNG.seed(seeds.getrandbits(32))

# train.py:88: DataLoader(..., worker_init_fn=seed_worker)`},
		{"a bare bit generator, in the collate function", Case{Targets: []Target{{Slot: slot("collate_fn.keywords['bits']", "mt19937", "numpy.random._mt19937.MT19937", "collate")}}}, `import functools

def seed_worker(collate_fn, worker_id):
    import random, torch
    info = torch.utils.data.get_worker_info()
    seeds = random.Random(info.seed)  # info.seed is another one in each worker and each pass
    bits = collate_fn.keywords['bits']
    bits.state = type(bits)(seeds.getrandbits(63)).state

# train.py:88: DataLoader(..., worker_init_fn=functools.partial(seed_worker, collate_fn))
# collate_fn: the very object that this DataLoader gets as collate_fn`},
		{"a local of __iter__", Case{Targets: []Target{{Slot: slot("iterator<local jitter>", "mt19937", "random.Random", "iterator"), At: "data.py:17"}}},
			`jitter = random.Random(torch.randint(2**62, ()).item())  # data.py:17, in place of the seed there
# torch's own generator is seeded for each worker and goes on from pass to pass.`},
		{"items of a dictionary, made in the first fetch", Case{Scope: Epochs, Targets: []Target{
			{Slot: slot("dataset.rngs[0]", "pcg64", "numpy.random._generator.Generator", "dataset"), MadeLater: true},
			{Slot: slot("dataset.rngs[1]", "pcg64", "numpy.random._generator.Generator", "dataset"), MadeLater: true}}},
			`np.random.default_rng(torch.randint(2**62, ()).item())  # where what dataset.rngs holds is made, in place of the seed there
# torch's own generator is seeded for each worker and goes on from pass to pass.`},
		{"what a cached function returned before the workers were made", Case{Targets: []Target{
			{Slot: slot("lru_cache of pkg.aug.coin()", "mt19937", "random.Random", "module")}, {Slot: numpy, Seed: 1}}},
			`random.Random(torch.randint(2**62, ()).item())  # in pkg.aug.coin, in place of the seed there
# torch's own generator is seeded for each worker and goes on from pass to pass.

def seed_worker(worker_id):
    import pkg.aug, random, torch
    info = torch.utils.data.get_worker_info()
    seeds = random.Random(info.seed)  # info.seed is another one in each worker and each pass
    bits = info.dataset.rng.bit_generator
    bits.state = type(bits)(seeds.getrandbits(63)).state
    pkg.aug.coin.cache_clear()

# train.py:88: DataLoader(..., worker_init_fn=seed_worker)`},
		{"what a cached function returns first in a worker", Case{Scope: Epochs, Targets: []Target{
			{Slot: slot("lru_cache of pkg.aug.flip().coin", "mt19937", "random.Random", "module"), MadeLater: true, At: "pkg/aug.py:7"}}},
			`coin = random.Random(torch.randint(2**62, ()).item())  # pkg/aug.py:7, in place of the seed there
# torch's own generator is seeded for each worker and goes on from pass to pass.`},
		{"held where no name leads to", Case{Targets: []Target{{Slot: slot("a random.Random that no variable leads to", "mt19937", "random.Random", "module")}}},
			`random.Random(torch.randint(2**62, ()).item())  # where a random.Random that no variable leads to is made, in place of the seed there
# a random.Random that no variable leads to was made before the workers were, which got copies of it: that line has to run in each worker.
# torch's own generator is seeded for each worker and goes on from pass to pass.`},
		{"a quasi-random engine", Case{Targets: []Target{{Slot: slot("pkg.aug.POINTS", "sobol", "torch.quasirandom.SobolEngine", "module")}}}, `def seed_worker(worker_id):
    import pkg.aug, random, torch
    info = torch.utils.data.get_worker_info()
    seeds = random.Random(info.seed)  # info.seed is another one in each worker and each pass
    engine = pkg.aug.POINTS
    engine.__init__(engine.dimension, scramble=True, seed=seeds.getrandbits(63))

# train.py:88: DataLoader(..., worker_init_fn=seed_worker)`},
		{"the base seed is set back", Case{Scope: Epochs, SameBase: true, Targets: []Target{{Slot: globalTorch}}},
			`# Seeding torch before each pass seeds all workers alike in each. Give the loader a generator that is made once:
# train.py:88: DataLoader(..., generator=torch.Generator().manual_seed(0))`},
		{"ranks", Case{Scope: Ranks, Targets: []Target{{Slot: globalTorch}}}, `import functools

def seed_worker(rank, worker_id):
    import random, torch
    info = torch.utils.data.get_worker_info()
    seeds = random.Random("%d %d" % (info.seed, rank))  # info.seed tells workers and passes apart
    torch.manual_seed(seeds.getrandbits(63))

# train.py:88: DataLoader(..., worker_init_fn=functools.partial(seed_worker, torch.distributed.get_rank()))`},
		{"ranks without workers", Case{Scope: Ranks, Main: true, Targets: []Target{{Slot: numpy}}}, `# once on each rank, before the first pass; loader: the one that train.py:88 makes
import random, torch
seeds = random.Random("%d %d" % (torch.initial_seed(), torch.distributed.get_rank()))
bits = loader.dataset.rng.bit_generator
bits.state = type(bits)(seeds.getrandbits(63)).state`},
		{"passes without workers", Case{Scope: Epochs, Main: true, Targets: []Target{{Slot: numpy, At: "data.py:3"}}},
			`# Seed once, before the first pass. Something between the passes makes or seeds again:
# dataset.rng (made at data.py:3)
# Move that out of the loop over epochs, or add the number of the epoch to its seed.`},
	} {
		c.At = at
		if diff := cmp.Diff(c.want, c.Code()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
