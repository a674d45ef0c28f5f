// Package memorygrowthcache is the rule memory-growth-cache: a container that a
// worker, or the main process, fills as samples are served, and that nothing ends.
// docs/rules/memory-growth-cache.md explains it.
package memorygrowthcache

import (
	"fmt"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/growth"
	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

// Rule is the rule.
var Rule = detect.Rule{
	ID:      "memory-growth-cache",
	DP:      "DP9",
	Title:   "A container grows with each sample, and nothing ends it",
	Sources: []collect.Any{growth.Source, memory.LimitSource, memory.LookSource},
	Excuses: excuses,
	Judge:   judge,
}

const (
	// significant is the share of the memory limit from which on growth is more
	// than a note, as in memory-growth-cow.
	significant = 0.05
	// noteworthy is how much a container must have grown by, in all processes, for
	// a note.
	noteworthy = 16 << 20
	// soon is how far a forecast of the limit reaches, in seconds: longer than
	// that most trainings do not run.
	soon = 24 * 3600
	// leastLooks at a process, for its growth to be known at all.
	leastLooks = 2
)

func judge(k *detect.Case) detect.Verdict {
	j := &judgement{
		Case: k, growth: detect.Of(k, growth.Source), limits: detect.Of(k, memory.LimitSource), looks: detect.Of(k, memory.LookSource),
	}
	crews := j.growth.Crews(k.Loaders)
	leaks := j.leaks(crews)
	var found []finding.Finding
	var first, open string
	bounded := 0
	for _, l := range leaks {
		switch {
		case l.certainty > 0:
			found = append(found, j.finding(l))
			if l.certainty > finding.Note && first == "" {
				first = fmt.Sprintf("%s grew by %s", l.name(), words.Bytes(l.bytes))
			}
		case l.shape == growth.Few && l.bytes >= noteworthy:
			open = fmt.Sprintf("%s grew by %s, and was looked at too seldom to tell whether it goes on", l.name(), words.Bytes(l.bytes))
		default:
			bounded++
		}
	}
	for _, crew := range crews {
		if u, much := j.unnamed(crew, goesOn); much {
			if first == "" {
				found = append(found, j.unnamedFinding(u))
				first = fmt.Sprintf("%s of new memory that is in no known container", words.Bytes(u.bytes))
			}
		} else if u, much := j.unnamed(crew, unclear); much && open == "" {
			open = fmt.Sprintf("%s of new memory are in no known container, and whether it grows on cannot be told", words.Bytes(u.bytes))
		}
	}
	switch reason := j.seen(crews); {
	case first != "":
		return detect.Found(first, found...)
	case open != "":
		return detect.CannotTell(open).Noting(found...)
	case reason != "":
		return detect.CannotTell(reason).Noting(found...)
	}
	return detect.Clean(j.looked(crews, bounded)).Noting(found...)
}

// leaks is the containers of all crews: of each the start of workers that it is
// surest of, or grew most in.
func (j *judgement) leaks(crews []*growth.Crew) (all []leak) {
	type container struct {
		workers        bool
		path, function string
	}
	at := map[container]int{}
	for _, crew := range crews {
		for i := range crew.Lines {
			l := j.weigh(crew, &crew.Lines[i])
			k := container{l.line.InWorkers(), l.line.Path, l.line.Function}
			old, known := at[k]
			switch {
			case !known:
				at[k] = len(all)
				all = append(all, l)
			case l.certainty > all[old].certainty || l.certainty == all[old].certainty && l.bytes > all[old].bytes:
				all[old] = l
			}
		}
	}
	return all
}

// judgement of one loader.
type judgement struct {
	*detect.Case
	growth *growth.Growth
	limits *memory.Limits
	looks  *memory.Looks
}

// seen says why growth could have been missed, or "".
func (j *judgement) seen(crews []*growth.Crew) string {
	all, few, short, cut := 0, 0, 0, ""
	for _, crew := range crews {
		for _, m := range crew.Members {
			f := j.growth.Footprint(m.Process)
			all++
			switch {
			case f.Looks < leastLooks:
				few++
			case !covers(m, f):
				short++
			}
			if f.Cut != "" {
				cut = f.Cut
			}
		}
	}
	switch {
	case all == 0:
		return "no process was seen"
	case few == all:
		return "no process served for long enough to be looked at twice, or an older dptrace has recorded it"
	case few > 0:
		return fmt.Sprintf("%d of %s were not looked at twice: they served for too short a time", few, words.Count(all, "process"))
	case short > 0:
		return fmt.Sprintf("the looks at %d of %s are from less than half of what was served", short, words.Count(all, "process"))
	case cut == "time":
		return "not all containers were looked at: the look would have taken too long"
	case cut != "":
		return "not all containers were looked at: too many " + cut
	}
	return ""
}

// covers reports whether from the first look at a process to the last half of what it served went by.
func covers(m growth.Member, f growth.Footprint) bool {
	served := 0
	for _, p := range m.Passes {
		n := p.Delivered
		if m.Worker >= 0 {
			n /= max(int(p.DataLoader().NumWorkers), 1)
		}
		served += n
	}
	points := f.Series.Points
	return 2*(points[len(points)-1].Served-points[0].Served) >= int64(served)
}

// looked says how much was looked at.
func (j *judgement) looked(crews []*growth.Crew, bounded int) string {
	var grown, looks int64
	processes := 0
	for _, crew := range crews {
		for _, m := range crew.Members {
			f := j.growth.Footprint(m.Process)
			grown, looks, processes = max(grown, f.Anon), looks+int64(f.Looks), processes+1
		}
	}
	text := fmt.Sprintf("%s looks at %s, which grew by no more than %s", words.Number(looks), words.Count(processes, "process"),
		words.Bytes(grown))
	if bounded > 0 {
		text += fmt.Sprintf("; %s of those that grew stopped, or took little", words.Count(bounded, "container"))
	}
	return text
}
