package samples

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// mostModes of a dataset's changes are kept.
const mostModes = 4096

// mode keeps what a dataset is told between two passes.
func (p *part) mode(r *traces.Attribute) {
	if k := (object{r.Proc, r.Dataset}); r.When == "begin" && len(p.modes[k]) < mostModes {
		p.modes[k] = append(p.modes[k], *r)
	}
}

// Mode is a value of a dataset that was another in one pass than in any of some
// others: what there is at an index may depend on it. "" as a value: it is no
// scalar, or what it was is not known.
type Mode struct {
	Path        string
	Here, There string
	Seq         uint64 // of a row that tells of it
}

// ModeOf a pass over a dataset (Origin.Dataset), if it was in none of the others
// the same; of several the first by path.
func (j *Attribution) ModeOf(dataset int, pass *timeline.Pass, others []*timeline.Pass) (m Mode, ok bool) {
	k := j.roots[dataset]
	part := j.ledger.parts[k.process.Part]
	if part == nil || k.process != pass.Loader.Process {
		return m, false
	}
	changes := part.modes[object{k.process.Proc, k.number}]
	var paths []string
	for i := range changes {
		paths = append(paths, changes[i].Path)
	}
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		here, seq := at(changes, path, pass)
		there, differs := "", len(others) > 0
		for _, p := range others {
			value, _ := at(changes, path, p)
			differs = differs && value != here
			there = cmp.Or(value.Value, there)
		}
		if differs {
			return Mode{path, here.Value, there, seq}, true
		}
	}
	return m, false
}

// told is a value as it was told; n tells objects apart.
type told struct {
	Value string
	n     int
}

// at is what a path was as a pass began.
func at(changes []traces.Attribute, path string, p *timeline.Pass) (v told, seq uint64) {
	for i := range changes {
		r := &changes[i]
		if r.Path != path || r.TsNS > p.Begin && (r.Loader != p.Object || r.Pass != p.Recorded) {
			continue
		}
		if v = (told{Value: r.Value}); r.Value == "" {
			v.n = i + 1
		}
		seq = r.Seq
	}
	return v, seq
}
