package traces

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// note takes over what a row of the meta table says of the whole part.
func (p *Part) note(m Meta) {
	switch m.Key {
	case "started_ns":
		p.Started, _ = strconv.ParseInt(m.Value, 10, 64) // 0: not known
		p.clock = p.Started - m.TsNS
	case "version":
		p.Version = m.Value
	case "sealed":
		p.Sealed = m.Value == "yes"
		if p.Started > 0 {
			p.Ended = p.clock + m.TsNS
		}
	case "rows":
		var rows map[string]uint64
		if json.Unmarshal([]byte(m.Value), &rows) == nil {
			p.rows = rows
		}
	}
}

// lastSign is when a part that was cut was still being written, by the indexes
// of its segments.
func (r *Run) lastSign(p *Part) int64 {
	last := p.Started - p.clock
	for table, list := range p.segments {
		s, _ := openStored(p, table, list[len(list)-1]) // what is wrong with it Each will say
		if s == nil {
			continue
		}
		for {
			rec, err := s.next()
			if err != nil && err != errIdxDamaged {
				break
			}
			if err == nil && rec.rows > 0 {
				last = max(last, rec.maxTS)
			}
		}
		s.close()
	}
	return p.clock + last
}

// Wall is a time of the part's monotonic clock in nanoseconds since 1970; 0 not known.
func (p *Part) Wall(ts int64) int64 {
	if p.Started == 0 {
		return 0
	}
	return p.clock + ts
}

// Ahead is what is to be added to times of the part for times of another part's
// clock, in nanoseconds: 0 of one boot, and where it is not known when they were
// recorded. Between machines it is as good as their clocks are.
func (p *Part) Ahead(of *Part) int64 {
	if p.BootID == of.BootID && p.BootID != "" || p.Started == 0 || of.Started == 0 {
		return 0
	}
	return p.clock - of.clock
}

// once leaves out parts that are there already: a folder that was named twice,
// or a copy of it. Of two copies the one that is whole stays.
func (r *Run) once() {
	var parts []*Part
	for _, p := range r.Parts {
		i := slices.IndexFunc(parts, func(q *Part) bool { return p.same(q) })
		switch {
		case i < 0:
			parts = append(parts, p)
		case p.Sealed && !parts[i].Sealed:
			parts[i] = p
		}
	}
	r.Keep(parts)
}

// same reports whether two parts are one: what one recorder wrote. Where one does
// not tell when it began, it is damaged: rather miss a part than count one twice.
func (p *Part) same(q *Part) bool {
	if p.RunID == "" || p.RunID != q.RunID || p.BootID != q.BootID || p.Name != q.Name {
		a, errA := fs.Stat(p.files, ".")
		b, errB := fs.Stat(q.files, ".")
		return p.Trace == q.Trace && p.Name == q.Name || errA == nil && errB == nil && os.SameFile(a, b)
	}
	return p.Started == q.Started || p.Started == 0 || q.Started == 0
}

// Keep leaves out all but these parts.
func (r *Run) Keep(parts []*Part) {
	r.Parts = parts
	r.Problems = slices.DeleteFunc(r.Problems, func(p Problem) bool { return !slices.Contains(parts, p.Part) })
}

// skew is by how much the clocks of two machines may differ.
const skew = 5 * time.Second

// Recordings sorts the parts by the recording that they are of, the latest last.
// The parts of one have the same run id, and their times overlap: a launcher
// may be given the same id again, and restarts its ranks under it. Parts that do
// not tell are counted to the latest.
func (r *Run) Recordings() [][]*Part {
	var all [][]*Part
	var silent []*Part
	for _, p := range slices.SortedStableFunc(slices.Values(r.Parts), func(a, b *Part) int { return cmp.Compare(a.Started, b.Started) }) {
		if p.RunID == "" {
			silent = append(silent, p)
			continue
		}
		i := slices.IndexFunc(all, func(parts []*Part) bool {
			return parts[0].RunID == p.RunID && slices.ContainsFunc(parts, func(q *Part) bool { return overlap(q, p) })
		})
		if i < 0 {
			all = append(all, []*Part{p})
		} else {
			all[i] = append(all[i], p)
		}
	}
	if len(all) == 0 {
		return [][]*Part{silent}
	}
	all[len(all)-1] = append(all[len(all)-1], silent...)
	return all
}

// overlap reports whether p began before q, which began earlier, had ended.
func overlap(q, p *Part) bool {
	if q.Started == 0 || p.Started == 0 {
		return true
	}
	end := q.Ended
	if q.BootID != p.BootID {
		end += int64(skew)
	}
	return p.Started <= end
}

// RunIDs are those of the parts of a trace, each once, and nothing else is read.
// Parts that do not tell theirs are left out.
func RunIDs(path string) ([]string, error) {
	trace := os.DirFS(path)
	entries, err := fs.ReadDir(trace, ".")
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if !isPart(e) {
			continue
		}
		p, err := newPart(path, trace, e.Name())
		if err != nil || p == nil {
			continue
		}
		if id := p.id(); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// id is the run id by the first segment that tells it.
func (p *Part) id() string {
	for table, list := range p.segments {
		for _, files := range list {
			s, _ := openStored(p, table, files)
			if s == nil {
				continue
			}
			s.close()
			if s.schema != nil && s.schema.meta["dptrace.run_id"] != "" {
				return s.schema.meta["dptrace.run_id"]
			}
		}
	}
	return ""
}

// Siblings are the traces of a folder that hold a part of the same run as one of
// them, it among them, in the order of their names.
func Siblings(trace, pattern string) ([]string, error) {
	ids, err := RunIDs(trace)
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(trace), pattern))
	if err != nil {
		return nil, err
	}
	var siblings []string
	for _, name := range names {
		others, err := RunIDs(name)
		if name == trace || err == nil && slices.ContainsFunc(others, func(id string) bool { return slices.Contains(ids, id) }) {
			siblings = append(siblings, name)
		}
	}
	return siblings, nil
}
