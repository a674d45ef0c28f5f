package timeline

// Order is what is kept of the samples that one pass handed out: enough to say
// whether two passes handed out the same ones.
type Order struct {
	samples uint64
	set     uint64               // sum of hashed indices: the same in any order
	first   [orderBatches]uint64 // of each of the first batches, hash of its first row; 0: not seen
}

// orderBatches is how many batches are kept one by one.
const orderBatches = 32

func (o *Order) add(batch uint32, first uint32, indices []int64, keys string) {
	if len(indices) == 0 && keys == "" {
		return
	}
	var row uint64
	for _, i := range indices {
		h := mix(uint64(i))
		o.set += h
		o.samples++
		row = mix(row ^ h)
	}
	if len(indices) == 0 {
		h := uint64(14695981039346656037) // FNV-1a
		for i := range len(keys) {
			h = (h ^ uint64(keys[i])) * 1099511628211
		}
		row = mix(h)
		o.set += row
		o.samples++
	}
	if first == 0 && batch < orderBatches {
		o.first[batch] = row | 1
	}
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Samples reports whether two passes handed out the same samples.
type Samples int

const (
	SamplesUnknown Samples = iota // an IterableDataset, or the rows are lost
	SamplesDiffer
	SamplesSame
)

// Compare two passes. They are the same if they have all samples in common, in
// any order, or begin with the same batches (a pass that is broken off was ahead
// of its deliveries by an unknown number of them).
func (o *Order) Compare(p *Order) Samples {
	if o.samples == 0 || p.samples == 0 {
		return SamplesUnknown
	}
	if o.samples == p.samples && o.set == p.set {
		return SamplesSame
	}
	result := SamplesUnknown
	for i, a := range o.first {
		switch b := p.first[i]; {
		case a == 0 || b == 0:
		case a != b:
			return SamplesDiffer
		default:
			result = SamplesSame
		}
	}
	return result
}
