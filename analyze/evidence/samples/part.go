package samples

import (
	"regexp"

	"github.com/dptrace/dptrace/traces"
)

// part is the small facts of one part.
type part struct {
	of       *traces.Part
	datasets map[object]*traces.Dataset
	values   map[object][]traces.Attribute // of each dataset, at rank
	modes    map[object][]traces.Attribute // of each dataset, between passes
	opened   map[uint32][]traces.Opened    // by process
	fetched  map[stream]int                // samples
	rows     map[stream]uint64             // the first row of digests
	names    map[stream][]string           // of the parts of samples
	within   map[object]map[int64]uint64   // of loaders of parts of datasets: ids of some indices
	drew     map[uint32]bool               // processes whose fetches draw random numbers
	resample map[uint32]bool               // processes where a stage of the dataset draws shards anew, by its name
}

// object is a loader or a dataset of a process, by its number.
type object struct{ proc, number uint32 }

// What is kept of small facts, for each dataset, process, loader.
const (
	mostValues = 256
	mostOpened = 256
	mostWithin = 1024
)

func newPart(of *traces.Part) *part {
	return &part{of: of, datasets: map[object]*traces.Dataset{}, values: map[object][]traces.Attribute{},
		modes: map[object][]traces.Attribute{}, opened: map[uint32][]traces.Opened{},
		fetched: map[stream]int{}, rows: map[stream]uint64{}, names: map[stream][]string{}, within: map[object]map[int64]uint64{},
		drew:     map[uint32]bool{},
		resample: map[uint32]bool{}}
}

// resampled is names of datasets, or of stages of theirs that hold a generator,
// that draw their shards at random, with replacement, on purpose.
var resampled = regexp.MustCompile(`(?i)resampl`)

// add the rows of a small table.
func (p *part) add(b traces.Batch) {
	switch rows := b.Rows.(type) {
	case []traces.Dataset:
		for i := range rows {
			r := rows[i]
			p.datasets[object{r.Proc, r.Dataset}] = &r
		}
	case []traces.Attribute:
		for i := range rows {
			p.value(&rows[i])
			p.mode(&rows[i])
		}
	case []traces.Opened:
		for i := range rows {
			if r := &rows[i]; len(p.opened[r.Proc]) < mostOpened {
				p.opened[r.Proc] = append(p.opened[r.Proc], *r)
			}
		}
	case []traces.BatchFetch:
		for i := range rows {
			r := &rows[i]
			p.fetched[stream{p.of, r.Proc, r.Loader, r.Pass, r.Worker}] += int(max(r.Samples, 0))
		}
	case []traces.RngSlot:
		for i := range rows {
			if resampled.MatchString(rows[i].Owner) {
				p.resample[rows[i].Proc] = true
			}
		}
	case []traces.RngState:
		for i := range rows {
			if rows[i].When == "after" {
				p.drew[rows[i].Proc] = true
			}
		}
	}
}

// value keeps what hangs on a dataset on its rank.
func (p *part) value(r *traces.Attribute) {
	if k := (object{r.Proc, r.Dataset}); r.When == "rank" && len(p.values[k]) < mostValues {
		p.values[k] = append(p.values[k], *r)
	}
}

// name keeps the ids of some indices.
func (p *part) name(r *traces.BatchPut) {
	k := object{r.Proc, r.Loader}
	ids := p.within[k]
	if ids == nil {
		ids = map[int64]uint64{}
		p.within[k] = ids
	}
	for i, index := range r.Indices {
		if len(ids) >= mostWithin {
			return
		}
		if r.IDs[i] >= 0 {
			ids[index] = uint64(r.IDs[i])
		}
	}
}
