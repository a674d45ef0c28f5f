package pprof

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/traces"
)

// measured is what the rows say about memory, process by process.
type measured struct {
	copied  map[procKey]map[string]*copied // by kind of mapping
	grown   map[procKey]*growth
	extents map[procKey][]traces.Extent // of main processes
	private map[procKey]map[uint32]*growth
	page    map[*traces.Part]int64
	exact   map[*traces.Part]bool // faults were counted: a process without rows has copied nothing
	tier    []string
	version string
	started int64 // nanoseconds since 1970
}

type procKey struct {
	part *traces.Part
	proc uint32
}

// copied is what one process has written to in one kind of mapping: pages.
type copied struct {
	pages  int64
	blocks map[int64]int64
}

// growth is a figure at the first and at the last look.
type growth struct{ first, last int64 }

func (g *growth) by() int64 { return g.last - g.first }

func newMeasured() *measured {
	return &measured{
		copied: map[procKey]map[string]*copied{}, grown: map[procKey]*growth{}, extents: map[procKey][]traces.Extent{},
		private: map[procKey]map[uint32]*growth{}, page: map[*traces.Part]int64{}, exact: map[*traces.Part]bool{},
	}
}

// Build is the rows as they were collected.
func (m *measured) Build(*collect.Evidence) *measured { return m }

// Merge takes over what was collected of other parts.
func (m *measured) Merge(other collect.Collector[*measured]) {
	o := other.(*measured)
	maps.Copy(m.copied, o.copied)
	maps.Copy(m.grown, o.grown)
	maps.Copy(m.extents, o.extents)
	maps.Copy(m.private, o.private)
	maps.Copy(m.page, o.page)
	maps.Copy(m.exact, o.exact)
	for _, tier := range o.tier {
		if !slices.Contains(m.tier, tier) {
			m.tier = append(m.tier, tier)
		}
	}
	m.version = cmp.Or(m.version, o.version)
	if o.started != 0 && (m.started == 0 || o.started < m.started) {
		m.started = o.started
	}
}

// Add takes the rows of one batch.
func (m *measured) Add(b traces.Batch) {
	switch rows := b.Rows.(type) {
	case []traces.Meta:
		for i := range rows {
			m.meta(&rows[i])
		}
	case []traces.Host:
		for i := range rows {
			m.page[b.Part] = rows[i].PageSize
		}
	case []traces.Memory:
		for i := range rows {
			// statm knows nothing of private memory; a process that is ending has none.
			if r := &rows[i]; r.Source == "smaps_rollup" && r.Rss > 0 {
				look(m.grown, procKey{b.Part, r.Proc}, r.PrivateDirty)
			}
		}
	case []traces.Cow:
		for i := range rows {
			m.exact[b.Part] = true
			m.cow(procKey{b.Part, rows[i].Proc}, &rows[i])
		}
	case []traces.Extent:
		for i := range rows {
			k := procKey{b.Part, rows[i].Proc}
			m.extents[k] = append(m.extents[k], rows[i])
		}
	case []traces.Private:
		for i := range rows {
			k := procKey{b.Part, rows[i].Proc}
			if m.private[k] == nil {
				m.private[k] = map[uint32]*growth{}
			}
			look(m.private[k], rows[i].Extent, rows[i].Private)
		}
	}
}

func look[K comparable](all map[K]*growth, key K, now int64) {
	if g := all[key]; g != nil {
		g.last = now
		return
	}
	all[key] = &growth{now, now}
}

func (m *measured) meta(r *traces.Meta) {
	switch r.Key {
	case "tier":
		if !slices.Contains(m.tier, r.Value) {
			m.tier = append(m.tier, r.Value)
		}
	case "version":
		m.version = r.Value
	case "started_ns":
		if ns, err := strconv.ParseInt(r.Value, 10, 64); err == nil && (m.started == 0 || ns < m.started) {
			m.started = ns
		}
	}
}

// cow takes a row: its numbers count from the fork on, of blocks those that
// have changed.
func (m *measured) cow(k procKey, r *traces.Cow) {
	if m.copied[k] == nil {
		m.copied[k] = map[string]*copied{}
	}
	c := m.copied[k][r.Mapping]
	if c == nil {
		c = &copied{blocks: map[int64]int64{}}
		m.copied[k][r.Mapping] = c
	}
	c.pages = max(c.pages, int64(r.User+r.Kernel))
	for i, block := range r.Blocks {
		if i < len(r.Pages) {
			c.blocks[block] = r.Pages[i]
		}
	}
}

// comments stand above what every command of pprof prints.
func (m *measured) comments() []string {
	return []string{fmt.Sprintf("dptrace %s, tier %s", m.version, strings.Join(m.tier, ", "))}
}

// samples adds what one process has copied and gained.
func (m *measured) samples(b *builder, p *place) {
	k := procKey{p.process.Part, p.process.Proc}
	if g := m.grown[k]; g != nil {
		b.sample(p, frame{}, "all", "procfs", [values]int64{privateGrowth: g.by()})
	}
	if !m.exact[k.part] {
		m.hook(b, p, m.private[k])
		return
	}
	owners := m.owners(p)
	for _, kind := range slices.Sorted(maps.Keys(m.copied[k])) {
		m.kernel(b, p, kind, m.copied[k][kind], owners)
	}
}

// kernel adds the faults of a process on one kind of mapping: those on the
// objects of a container of the dataset, and the others. A block that holds
// objects of several containers counts for all of them together, once.
func (m *measured) kernel(b *builder, p *place, kind string, c *copied, owners []owner) {
	page := cmp.Or(m.page[p.process.Part], 4096)
	switch kind {
	case "shm", "new":
		return // nothing is copied
	case "parent":
		b.sample(p, frame{name: "inherited and write-protected, by its own forks too"}, kind, "kernel", [values]int64{cowFaults: c.pages})
		return
	}
	rest := c.pages
	pages := map[string]int64{}
	for block, n := range c.blocks {
		var names []string
		for _, o := range owners {
			if o.holds(block) {
				names = append(names, o.path)
			}
		}
		if n = min(n, rest); n > 0 && len(names) > 0 {
			pages[joined(names)] += n
			rest -= n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		b.sample(p, frame{name: name}, kind, "kernel", [values]int64{cow: pages[name] * page, cowFaults: pages[name]})
	}
	b.sample(p, frame{name: "other inherited memory: " + kind}, kind, "kernel", [values]int64{cow: rest * page, cowFaults: rest})
}

// hook adds what the worker's page map says. Extent 0 is all of the worker's
// extents; if they share blocks, their sum is more than that.
func (m *measured) hook(b *builder, p *place, extents map[uint32]*growth) {
	if len(extents) == 0 || len(p.passes) == 0 {
		return
	}
	paths := map[uint32]string{}
	for _, e := range m.extents[mainOf(p)] {
		paths[e.Extent] = e.Path
	}
	var sum int64
	var names []string
	numbers := slices.DeleteFunc(slices.Sorted(maps.Keys(extents)), func(n uint32) bool { return n == 0 })
	for _, n := range numbers {
		if paths[n] == "" { // its row is lost
			paths[n] = "container " + strconv.Itoa(int(n))
		}
		if by := extents[n].by(); by > 0 {
			sum += by
			names = append(names, paths[n])
		}
	}
	if all := extents[0]; all != nil && (sum > all.by() || len(numbers) == 0) {
		b.sample(p, frame{name: joined(names)}, "inherited", "hook", [values]int64{cow: max(all.by(), 0)})
		return
	}
	for _, n := range numbers {
		b.sample(p, frame{name: paths[n]}, "inherited", "hook", [values]int64{cow: max(extents[n].by(), 0)})
	}
}

func joined(names []string) string {
	slices.Sort(names)
	if names = slices.Compact(names); len(names) == 0 {
		return "containers of the dataset"
	}
	return strings.Join(names, " + ")
}

// owner is a container, and the blocks that its objects lie on.
type owner struct {
	path           string
	starts, counts []int64
}

func (o *owner) holds(block int64) bool {
	for i, start := range o.starts {
		if i < len(o.counts) && block >= start && block < start+o.counts[i] {
			return true
		}
	}
	return false
}

// owners are the containers that a worker has inherited; of one that was seen
// again, grown, the last.
func (m *measured) owners(p *place) []owner {
	if len(p.passes) == 0 {
		return nil
	}
	first := p.passes[0]
	byPath := map[string]owner{}
	for _, e := range m.extents[mainOf(p)] {
		if e.Loader == first.Object && e.Pass <= first.Recorded {
			byPath[e.Path] = owner{e.Path, e.Starts, e.Counts}
		}
	}
	var all []owner
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		all = append(all, byPath[path])
	}
	return all
}

// mainOf is the process whose loader a worker serves.
func mainOf(p *place) procKey {
	main := p.passes[0].Loader.Process
	return procKey{main.Part, main.Proc}
}
