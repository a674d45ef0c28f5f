package timeline

// Order is what is kept of the samples that one pass handed out: enough to say
// whether two passes handed out the same ones.
type Order struct {
	Samples uint64
	first   []uint64 // hash of each of the first batches
	set     uint64   // sum of hashed indices: the same in any order
	open    uint64   // hash of the batch that rows are still coming for
	batch   int64    // its number, -1 none
}

// orderBatches is how many batches are kept one by one.
const orderBatches = 32

func (o *Order) add(batch uint32, first uint32, indices []int64, keys string) {
	if len(indices) == 0 && keys == "" {
		return
	}
	if o.Samples == 0 {
		o.batch = -1
	}
	if int64(batch) != o.batch || first == 0 {
		o.close()
		o.batch = int64(batch)
	}
	for _, i := range indices {
		h := mix(uint64(i))
		o.set += h
		o.open = mix(o.open ^ h)
		o.Samples++
	}
	if len(indices) == 0 {
		h := uint64(14695981039346656037) // FNV-1a
		for i := range len(keys) {
			h = (h ^ uint64(keys[i])) * 1099511628211
		}
		o.set += mix(h)
		o.open = mix(o.open ^ h)
		o.Samples++
	}
}

func (o *Order) close() {
	if o.batch >= 0 && len(o.first) < orderBatches {
		o.first = append(o.first, o.open)
	}
	o.open, o.batch = 0, -1
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Known tells whether the handed out samples were seen and have indices.
func (o *Order) Known() bool { return o.Samples > 0 }

// Same tells whether two passes handed out the same samples: all of them in any
// order, or the same in each of the first batches (a pass that is broken off
// was ahead of its deliveries by an unknown number of batches).
func (o *Order) Same(p *Order) bool {
	if !o.Known() || !p.Known() {
		return false
	}
	if o.Samples == p.Samples && o.set == p.set {
		return true
	}
	n := min(len(o.first), len(p.first))
	for i := range n {
		if o.first[i] != p.first[i] {
			return false
		}
	}
	return n > 0
}
