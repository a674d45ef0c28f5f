// Package reseed writes the code that gives each worker, pass and rank random
// numbers of its own. It is made to be pasted: seed_worker goes to the top
// level of the program, the last line says what DataLoader(...) gets.
//
// All of it holds for fork, spawn and forkserver and for workers that persist
// or not. It rests on info.seed of torch.utils.data.get_worker_info(): base
// seed of the pass plus number of the worker, drawn anew for each pass.
// Generators are seeded in place, so that other names of theirs stay valid.
// Generators that must agree (samplers, splits) are never touched.
package reseed

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/rng"
)

// Scope is between what the same numbers were drawn.
type Scope int

const (
	Workers Scope = iota
	Epochs
	Ranks
)

// Target is one generator to be seeded.
type Target struct {
	Slot *draws.Slot
	// Seed numbers the seeds: targets with equal numbers ran alike within their
	// worker (image and mask), and shall go on doing so.
	Seed      int
	MadeLater bool   // it is made after worker_init_fn has run: seed it where it is made
	At        string // where it is made, file:line; "" unknown
}

// Case is what is to be repaired.
type Case struct {
	Scope     Scope
	At        string // file:line of DataLoader(...)
	Targets   []Target
	Main      bool   // no workers
	Init      string // worker_init_fn so far; "" none
	SameBase  bool   // the base seeds are the same in the passes that agree
	Generator bool   // DataLoader(generator=...) was given
}

// Code writes the repair.
func (c Case) Code() string {
	made, seeded := c.split()
	var parts []string
	if len(made) > 0 {
		parts = append(parts, c.whereMade(made))
		if c.Scope == Ranks { // what they are seeded from must differ as well
			torch := Target{Slot: &draws.Slot{Path: "torch", Kind: "mt19937", Role: "global"}, Seed: len(seeded)}
			seeded = append(seeded, torch)
		}
	}
	if len(seeded) > 0 {
		switch {
		case c.Main && c.Scope == Ranks:
			parts = append(parts, c.inMain(seeded))
		case c.Main:
			parts = append(parts, c.once(seeded))
		case c.SameBase && c.Scope == Epochs && onlyGlobals(seeded) && c.Init == "":
		default:
			parts = append(parts, c.inWorkers(seeded))
		}
	}
	if c.SameBase && c.Scope == Epochs && !c.Main {
		parts = append(parts, c.baseSeed())
	}
	return strings.Join(parts, "\n\n")
}

// split says which are seeded where they are made, and which from outside. What a
// cache keeps is both: the cache is emptied, so that each worker makes its own.
func (c Case) split() (made, seeded []Target) {
	for _, t := range c.Targets {
		inCache := cached(t.Slot.Path) != ""
		if t.MadeLater || inCache || unreachable(t.Slot) {
			made = append(made, t)
		}
		if !t.MadeLater && (inCache && !c.Main || !inCache && !unreachable(t.Slot)) {
			seeded = append(seeded, t)
		}
	}
	return made, seeded
}

func onlyGlobals(targets []Target) bool {
	for _, t := range targets {
		if t.Slot.Role != "global" {
			return false
		}
	}
	return true
}

func unreachable(s *draws.Slot) bool {
	if s.Role == "global" {
		return false
	}
	root, _ := split(s.Path)
	if root == "iterator" || !identifier(root) {
		return true
	}
	_, ok := expression(s.Path, root)
	return !ok
}

// reach is Python that reaches a generator, and the import it needs. dataset
// and collate are what those two words of a path stand for.
func reach(s *draws.Slot, dataset, collate string) (expr, imports string) {
	switch root, _ := split(s.Path); root {
	case "dataset":
		expr, _ = expression(s.Path, dataset)
	case "collate_fn":
		expr, _ = expression(s.Path, collate)
	default:
		m := module(s.Path, s.Owner)
		expr, _ = expression("m"+strings.TrimPrefix(s.Path, m), m)
		imports = m
	}
	if strings.Contains(expr, "inspect.") {
		imports = strings.TrimPrefix(imports+", inspect", ", ")
	}
	return expr, imports
}

// seed writes the lines that seed one generator. number gives an expression
// for a whole number of so many random bits.
func seed(s *draws.Slot, expr string, number func(bits int) string) (lines []string, imports string) {
	if s.Role == "global" {
		switch s.Path {
		case "numpy":
			return []string{"numpy.random.seed(" + number(32) + ")"}, "numpy"
		case "random":
			return []string{"random.seed(" + number(63) + ")"}, "random"
		case "cv2":
			return []string{"cv2.setRNGSeed(" + number(31) + ")"}, "cv2"
		}
		return []string{"torch.manual_seed(" + number(63) + ")"}, ""
	}
	bits := expr
	switch {
	case s.Kind == rng.KindSobol: // it has no method that seeds it
		return []string{"engine = " + expr, "engine.__init__(engine.dimension, scramble=True, seed=" + number(63) + ")"}, ""
	case strings.HasPrefix(s.Class, "torch."):
		return []string{expr + ".manual_seed(" + number(63) + ")"}, ""
	case s.Kind == "mt19937" && !bitGenerator(s.Class):
		return []string{expr + ".seed(" + number(32) + ")"}, "" // RandomState or random.Random
	case strings.HasSuffix(s.Class, ".Generator"):
		bits += ".bit_generator"
	case !bitGenerator(s.Class): // a class of the user's, on top of NumPy's
		bits = "getattr(" + expr + ", 'bit_generator', " + expr + ")"
	}
	return []string{"bits = " + bits, "bits.state = type(bits)(" + number(63) + ").state"}, ""
}

// bitGenerator reports whether a class is NumPy's Generator or one of its
// BitGenerators, not RandomState or random.Random.
func bitGenerator(class string) bool {
	return strings.HasPrefix(class, "numpy.") && !strings.HasSuffix(class, ".RandomState")
}

// inWorkers seeds in a worker_init_fn.
func (c Case) inWorkers(targets []Target) string {
	arguments, given := "worker_id", ""
	for _, t := range targets {
		if root, _ := split(t.Slot.Path); root == "collate_fn" {
			arguments, given = "collate_fn, "+arguments, ", collate_fn"
			break
		}
	}
	source := "info.seed"
	about := "  # info.seed is another one in each worker and each pass"
	if c.Scope == Ranks {
		arguments, given = "rank, "+arguments, ", torch.distributed.get_rank()"+given
		source = `"%d %d" % (info.seed, rank)`
		about = "  # info.seed tells workers and passes apart"
	}
	body, imports := seeding(targets, source, "info.dataset", "collate_fn")
	var b strings.Builder
	if given != "" {
		b.WriteString("import functools\n\n")
	}
	fmt.Fprintf(&b, "def seed_worker(%s):\n", arguments)
	fmt.Fprintf(&b, "    import %s\n", strings.Join(imports, ", "))
	b.WriteString("    info = torch.utils.data.get_worker_info()\n")
	body[0] += about
	for _, line := range body {
		b.WriteString("    " + line + "\n")
	}
	call := "seed_worker"
	if given != "" {
		call = "functools.partial(seed_worker" + given + ")"
	}
	fmt.Fprintf(&b, "\n# %s: DataLoader(..., worker_init_fn=%s)", c.At, call)
	if strings.Contains(given, "collate_fn") {
		b.WriteString("\n# collate_fn: the very object that this DataLoader gets as collate_fn")
	}
	if c.Init != "" {
		fmt.Fprintf(&b, "\n# It takes the place of %s. What else that does goes to the top of seed_worker.", c.Init)
	}
	return b.String()
}

// seeding writes the statements that seed all targets, and what they import.
// The seeds are drawn from a generator that is seeded with source: equal seeds
// would make equal streams of a generator and of torch's or Python's own, which
// PyTorch seeds with info.seed itself.
func seeding(targets []Target, source, dataset, collate string) (body, imports []string) {
	imports = []string{"random", "torch"}
	add := func(list string) {
		for _, m := range strings.Split(list, ", ") {
			if m != "" && !slices.Contains(imports, m) {
				imports = append(imports, m)
			}
		}
	}
	groups := map[int][]Target{}
	var caches []string
	for _, t := range targets {
		if f := cached(t.Slot.Path); f == "" {
			groups[t.Seed] = append(groups[t.Seed], t)
		} else if !slices.Contains(caches, f) {
			caches = append(caches, f)
		}
	}
	body = append(body, "seeds = random.Random("+source+")")
	for _, n := range slices.Sorted(maps.Keys(groups)) {
		number := func(bits int) string { return fmt.Sprintf("seeds.getrandbits(%d)", bits) }
		if len(groups[n]) > 1 {
			body = append(body, "seed = seeds.getrandbits(31)  # the same for those that ran alike")
			number = func(int) string { return "seed" }
		}
		for _, t := range groups[n] {
			expr := ""
			if t.Slot.Role != "global" {
				var m string
				expr, m = reach(t.Slot, dataset, collate)
				add(m)
			}
			lines, m := seed(t.Slot, expr, number)
			add(m)
			body = append(body, lines...)
		}
	}
	for _, f := range caches {
		add(cacheModule(f, targets))
		body = append(body, f+".cache_clear()")
	}
	slices.Sort(imports)
	return body, imports
}

// cacheModule is the module of a function with a cache in which a target hangs.
func cacheModule(function string, targets []Target) string {
	owner := ""
	for _, t := range targets {
		if cached(t.Slot.Path) == function {
			owner = t.Slot.Owner
		}
	}
	return module(function, owner)
}

// inMain seeds once in the main process of each rank.
func (c Case) inMain(targets []Target) string {
	source := `"%d %d" % (torch.initial_seed(), torch.distributed.get_rank())`
	body, imports := seeding(targets, source, "loader.dataset", "loader.collate_fn")
	var b strings.Builder
	fmt.Fprintf(&b, "# once on each rank, before the first pass; loader: the one that %s makes\n", c.At)
	fmt.Fprintf(&b, "import %s\n", strings.Join(imports, ", "))
	b.WriteString(strings.Join(body, "\n"))
	for _, t := range targets {
		if t.Slot.Path == "torch" && t.Slot.Role == "global" {
			b.WriteString("  # after the model is made\n" +
				"# What must agree on all ranks needs a generator of its own. If the sampler at " + c.At + " draws from torch's:\n" +
				"# DataLoader(..., generator=torch.Generator().manual_seed(0))")
			break
		}
	}
	return b.String()
}

// once: something sets the generators back before each pass.
func (c Case) once(targets []Target) string {
	var names []string
	for _, t := range targets {
		name := t.Slot.Name()
		if t.At != "" {
			name += " (made at " + t.At + ")"
		}
		names = append(names, name)
	}
	return "# Seed once, before the first pass. Something between the passes makes or seeds again:\n# " + strings.Join(names, "\n# ") +
		"\n# Move that out of the loop over epochs, or add the number of the epoch to its seed."
}

// whereMade seeds generators where they are made, because they are not there
// yet when worker_init_fn runs.
func (c Case) whereMade(targets []Target) string {
	var lines []string
	for _, t := range targets {
		at := t.At
		switch container, function := member(t.Slot.Path), cached(t.Slot.Path); {
		case at != "":
		case function != "":
			at = "in " + function
		case container != "":
			at = "where what " + container + " holds is made"
		default:
			at = "where " + t.Slot.Name() + " is made"
		}
		var code string
		switch {
		case t.Slot.Kind == rng.KindSobol:
			code = "torch.quasirandom.SobolEngine(..., scramble=True, seed=torch.randint(2**62, ()).item())"
		case strings.HasPrefix(t.Slot.Class, "torch."):
			code = "torch.Generator().manual_seed(torch.randint(2**62, ()).item())"
		case strings.HasSuffix(t.Slot.Class, ".RandomState"):
			code = "np.random.RandomState(torch.randint(2**32, ()).item())"
		case strings.HasPrefix(t.Slot.Class, "numpy."):
			code = "np.random.default_rng(torch.randint(2**62, ()).item())"
		default:
			code = "random.Random(torch.randint(2**62, ()).item())"
		}
		if name := lastName(t.Slot.Path); name != "" {
			code = name + " = " + code
		}
		if line := code + "  # " + at + ", in place of the seed there"; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	for _, t := range targets {
		if !t.MadeLater && !c.Main && cached(t.Slot.Path) == "" {
			if root, _ := split(t.Slot.Path); root != "iterator" {
				lines = append(lines, "# "+t.Slot.Name()+" was made before the workers were, which got copies of it: "+
					"that line has to run in each worker.")
			}
		}
	}
	if c.Scope != Ranks {
		lines = append(lines, "# torch's own generator is seeded for each worker and goes on from pass to pass.")
	}
	return strings.Join(lines, "\n")
}

// baseSeed makes torch draw another base seed for each pass, from which it
// seeds the workers.
func (c Case) baseSeed() string {
	if c.Generator {
		return "# The generator that DataLoader(..., generator=...) gets at " + c.At +
			" is seeded again before each pass, and with it all workers.\n" +
			"# Make and seed it once, before the first pass."
	}
	return "# Seeding torch before each pass seeds all workers alike in each. Give the loader a generator that is made once:\n" +
		"# " + c.At + ": DataLoader(..., generator=torch.Generator().manual_seed(0))"
}
