package memorygrowthcache

import (
	"math"
	"slices"

	"github.com/dptrace/dptrace/analyze/evidence/growth"
	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// leak is a container that grew, and what that comes to.
type leak struct {
	crew      *growth.Crew
	line      *growth.Line // of unnamed growth it has no path
	shape     growth.Shape
	certainty finding.Certainty // 0: not worth a note
	kind      kind
	bytes     int64        // that it grew by, in all processes
	limit     memory.Limit // Load: bytes; Bytes 0: no limit is known
	perSecond float64      // bytes, of all processes together
	full      int64        // bytes when it will hold all that it can; 0: no end is known
	again     float64      // share of the samples of the last pass that its process had been asked for before; -1 not known
	fresh     float64      // share that it had never been asked for, in the last pass as a share of that in the first; -1 not known
}

// kind is how a container grows.
type kind int

const (
	endless kind = iota // as fast in a later pass as in the first
	capped              // up to its maxsize or maxlen
	once                // in one pass, or less and less: it may hold something for each sample
)

// free is how much of the limit nobody uses; -1 not known.
func (l *leak) free() int64 {
	if l.limit.Bytes <= 0 || l.limit.Usage < 0 {
		return -1
	}
	return max(l.limit.Bytes-l.limit.Usage, 0)
}

// seconds until the limit is reached at the rate that was seen; -1 not known.
func (l *leak) seconds() float64 {
	if l.free() < 0 || l.perSecond <= 0 {
		return -1
	}
	return float64(l.free()) / l.perSecond
}

// weigh judges one container.
func (j *judgement) weigh(crew *growth.Crew, line *growth.Line) leak {
	l := leak{crew: crew, line: line, shape: line.Shape(), again: -1, fresh: -1}
	loads := map[*timeline.Loader]int64{}
	var until int64
	for i := range line.Series {
		s := &line.Series[i]
		bytes, _ := j.grew(crew, line, s)
		l.bytes += bytes
		from, to := s.Points[0].TS, s.Points[len(s.Points)-1].TS
		if f := j.growth.Footprint(s.Process).Series.Points; len(f) > 0 {
			from = f[0].TS
		}
		if to > from {
			l.perSecond += float64(bytes) / (float64(to-from) / 1e9)
		}
		until = max(until, to)
		loads[memberOf(crew, s.Process).Loader] += bytes
	}
	l.limit, _ = j.limits.Tightest(loads, until)
	l.limit.Load = l.bytes
	l.classify(j)
	return l
}

// grew is by how much a container of one process grew, in bytes, and how much of
// that is in shared memory: no more than the process did. A graph that tensors
// hold cannot be measured, so that there it is what the process grew by and no
// other container accounts for.
func (j *judgement) grew(crew *growth.Crew, line *growth.Line, s *growth.Series) (bytes, shared int64) {
	_, bytes, _ = s.Growth()
	shared = max(s.Shared(), 0)
	own, f := max(bytes-shared, 0), j.growth.Footprint(s.Process)
	switch {
	case !f.Known || f.Looks < leastLooks:
		return own + shared, shared
	case line.Graph:
		bytes = max(f.Anon+max(f.Shm, 0)-others(crew, line, s), 0)
		return bytes, min(max(f.Shm, 0), bytes)
	}
	shared = max(min(shared, f.Shm), 0)
	return ownBytes(s, &f, own) + shared, shared
}

// ownBytes is at most so much of a container's growth in memory that is not shared
// as the process grew by, nor in its later half: it may hold what was there before.
func ownBytes(s *growth.Series, f *growth.Footprint, bytes int64) int64 {
	items, _, served := s.Growth()
	half := s.Points[0].Served + served/2
	if late := s.After(half) / float64(max(items, 1)); late > lately {
		bytes = min(bytes, int64(f.Series.After(half)/late))
	}
	return max(min(bytes, f.Anon), 0)
}

// lately is the share of its growth that a container must have had in the later
// half, for the process's growth there to say how much it takes.
const lately = 0.25

// others is what the other containers of a process grew by.
func others(crew *growth.Crew, line *growth.Line, s *growth.Series) (sum int64) {
	for i := range crew.Lines {
		for k := range crew.Lines[i].Series {
			if o := &crew.Lines[i].Series[k]; &crew.Lines[i] != line && o.Process == s.Process {
				_, bytes, _ := o.Growth()
				sum += max(bytes, 0)
			}
		}
	}
	return sum
}

func memberOf(crew *growth.Crew, p *timeline.Process) growth.Member {
	i := slices.IndexFunc(crew.Members, func(m growth.Member) bool { return m.Process == p })
	return crew.Members[max(i, 0)]
}

// classify says what kind of growth it is, and how sure that it is a bug.
func (l *leak) classify(j *judgement) {
	switch {
	case l.line.Cap >= 0 && l.shape != growth.Few && l.shape < growth.Slowing: // it is full
		return
	case l.line.Cap >= 0:
		l.kind = capped
		l.full = l.fullAt(func(s *growth.Series) float64 { return float64(l.line.Cap) })
	case l.shape == growth.Steady && l.line.Goes():
		l.kind = endless
		l.again, l.fresh = j.again(l)
	case l.shape == growth.Steady || l.shape == growth.Slowing:
		l.kind = once
		l.full = l.fullAt(func(s *growth.Series) float64 { return j.reach(l, s) })
	default:
		return
	}
	l.judge(j.First().Iterable())
}

// judge says how sure it is that growth of this kind is a bug. stream: of a
// stream nobody knows how much is to come.
func (l *leak) judge(stream bool) {
	if l.bytes >= noteworthy {
		l.certainty = finding.Note
	}
	switch fits := l.full == 0 || l.free() < 0 || l.full-l.bytes <= l.free(); {
	case l.certainty == 0 && fits:
	case l.kind == endless && l.limit.Share() >= significant:
		l.certainty = finding.Proven
	case l.kind == endless && l.seconds() >= 0 && l.seconds() < soon:
		l.certainty = finding.Likely
	case l.kind != endless && !fits && l.shape >= growth.Slowing:
		l.certainty = finding.Likely
	case l.kind == once && l.full == 0 && l.shape == growth.Steady && stream && l.limit.Share() >= significant:
		l.certainty = finding.Likely
	}
}

// fullAt is what it takes in all processes when each holds so many items as
// final says; 0: that is not known of one of them.
func (l *leak) fullAt(final func(*growth.Series) float64) int64 {
	var sum float64
	for i := range l.line.Series {
		items, bytes, _ := l.line.Series[i].Growth()
		most := final(&l.line.Series[i])
		if most <= 0 {
			return 0
		}
		sum += max(float64(bytes)/float64(max(items, 1))*most, float64(bytes))
	}
	return int64(sum)
}

// reach is how many items one process will have added when it has served what
// there is for it: the samples of the dataset, or of its pass where it ends with
// it. 0: not known.
func (j *judgement) reach(l *leak, s *growth.Series) float64 {
	m := memberOf(l.crew, s.Process)
	items, _, _ := s.Growth()
	if l.finished() {
		return float64(items)
	}
	o, rates := m.Loader.First(), s.Rates()
	if o.Iterable || len(rates) == 0 {
		return 0
	}
	batches := float64(o.Length) / float64(max(o.BatchSize, 1)) // of all samples; the length of a class of the program's own is not known
	for _, p := range m.Loader.Passes {
		if p.Exhausted {
			batches = max(batches, float64(p.Delivered))
		}
	}
	if len(m.Passes) > 0 && m.Worker >= 0 && !m.Passes[0].DataLoader().Persistent {
		batches /= float64(max(o.NumWorkers, 1))
	}
	return max(rates[0].PerBatch()*batches, 0)
}

// finished reports whether its workers are gone, after a pass that they served to
// the end: the next ones begin anew.
func (l *leak) finished() bool {
	for _, m := range l.crew.Members {
		if m.Worker < 0 || len(m.Passes) != 1 || m.Passes[0].DataLoader().Persistent || !m.Passes[0].Exhausted {
			return false
		}
	}
	return true
}

// again is the share of the samples of the last pass that the processes had been
// asked for before, the least of them; and how many of its samples were new, in
// the last pass against the first, the most of them; -1 not known.
func (j *judgement) again(l *leak) (least, most float64) {
	least = -1
	for i := range l.line.Series {
		s := &l.line.Series[i]
		m, rates := memberOf(l.crew, s.Process), s.Rates()
		if len(m.Passes) < 2 || len(rates) < 2 {
			continue
		}
		if m.Worker < 0 && m.Loader.First().NumWorkers > 0 {
			return -1, -1 // what a loop keeps is of all batches, whoever fetched them
		}
		_, first, _ := j.growth.Again(m.Passes[min(int(rates[0].Pass), len(m.Passes)-1)], m.Worker)
		share, fresh, known := j.growth.Again(m.Passes[min(int(rates[len(rates)-1].Pass), len(m.Passes)-1)], m.Worker)
		if !known {
			return -1, -1
		}
		if first > 0 {
			fresh /= first
		}
		if least < 0 || share < least {
			least = share
		}
		most = max(most, fresh)
	}
	return least, most
}

// keysFit reports whether it may hold something for each of a number of keys that
// will fit. Each key that is drawn again adds nothing: so many keys there are at
// least that the last pass can have added as much of the first as it did, by three
// standard deviations.
func (l *leak) keysFit() bool {
	var first, last growth.Rate
	var between float64
	for i := range l.line.Series {
		rates := l.line.Series[i].Rates()
		if len(rates) < 2 {
			continue
		}
		a, b := rates[0], rates[len(rates)-1]
		first.Items, first.Served = first.Items+a.Items, first.Served+a.Served
		last.Items, last.Served = last.Items+b.Items, last.Served+b.Served
		between -= float64(a.Items+b.Items) / 2
		for _, r := range rates {
			between += float64(r.Items)
		}
	}
	if first.Items <= 0 || last.Items <= 0 {
		return true
	}
	n, share := float64(last.Items), min(last.PerBatch()/first.PerBatch(), 1)
	share -= 3/n + 3*math.Sqrt((1-share)/n)
	keys := between / -math.Log(max(share, 0.1))
	items, _, _ := l.grown()
	room := l.free()
	if room < 0 {
		room = l.limit.Bytes - l.bytes
	}
	return keys*float64(l.bytes)/float64(max(items, 1))-float64(l.bytes) <= float64(room)
}

// grown is what it grew by in all processes.
func (l *leak) grown() (items, bytes, served int64) {
	for i := range l.line.Series {
		n, b, s := l.line.Series[i].Growth()
		items, bytes, served = items+n, bytes+b, served+s
	}
	return items, bytes, served
}

// unnamed is new memory of a crew that no known container accounts for, in those
// of its processes whose memory has such a course; much, whether it is so much that
// somebody should be told.
func (j *judgement) unnamed(crew *growth.Crew, course func(*growth.Series) bool) (l leak, much bool) {
	l = leak{crew: crew, line: &growth.Line{}, kind: endless}
	loads := map[*timeline.Loader]int64{}
	var until, all int64
	for _, m := range crew.Members {
		f := j.growth.Footprint(m.Process)
		if !f.Known || len(f.Series.Points) == 0 || !course(&f.Series) {
			continue
		}
		named := int64(0)
		for i := range crew.Lines {
			for k := range crew.Lines[i].Series {
				if s := &crew.Lines[i].Series[k]; s.Process == m.Process {
					bytes, shared := j.grew(crew, &crew.Lines[i], s)
					named += bytes - shared
				}
			}
		}
		points := f.Series.Points
		bytes := max(f.Anon-named, 0)
		if to, from := points[len(points)-1].TS, points[0].TS; to > from {
			l.perSecond += float64(bytes) / (float64(to-from) / 1e9)
		}
		l.line.Series = append(l.line.Series, f.Series)
		l.bytes, all, until = l.bytes+bytes, all+f.Anon, max(until, points[len(points)-1].TS)
		loads[m.Loader] += bytes
	}
	l.limit, _ = j.limits.Tightest(loads, until)
	l.limit.Load = l.bytes
	l.certainty, l.shape = finding.Likely, growth.Steady
	return l, l.bytes >= unnamedLeast && 2*l.bytes > all && l.limit.Share() >= significant
}

// goesOn and unclear are courses of a process's new memory: it grows in each pass
// as in the first; whether it does cannot be told.
func goesOn(s *growth.Series) bool { return s.Shape() == growth.Steady && s.Goes() }

func unclear(s *growth.Series) bool {
	shape := s.Shape()
	return shape == growth.Steady || shape == growth.Few || shape == growth.Slowing
}

// unnamedLeast is how much new memory without a name must be for somebody to be
// told: allocators keep tens of megabytes that are of no use to anybody.
const unnamedLeast = 64 << 20
