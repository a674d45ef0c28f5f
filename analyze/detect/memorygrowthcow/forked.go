package memorygrowthcow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// forked judges the processes that a program forks itself, by
// multiprocessing.Process or start_processes. What such a process has to itself
// counts only as long as its parent holds it, too: a parent that hands over its
// data and lets go of them has them in memory once.
func forked(k *detect.Case) detect.Verdict {
	limits := detect.Of(k, memory.LimitSource)
	var found, notes []finding.Finding
	var copied int64
	all := 0
	complete := true
	for _, f := range detect.Of(k, memory.Source).Families(k.Timeline) {
		limit, _ := f.Round().Tightest(limits, (*memory.WorkerSet).BeyondEdge)
		p := processes{Family: f, certainty: finding.Note}
		if limit.Share() >= significant {
			p.certainty = finding.Likely
		}
		p.limit, _ = f.Round().Tightest(limits, (*memory.WorkerSet).Copied)
		p.limit.Load = f.Copied()
		copied, all = copied+p.limit.Load, all+f.All
		complete = complete && f.Ended == f.All && f.Held == f.All
		switch {
		case f.BeyondEdge() < noteworthy:
		case p.certainty > finding.Note:
			found = append(found, p.finding())
		default:
			notes = append(notes, p.finding())
		}
	}
	switch {
	case len(found) > 0:
		return detect.Found(words.Bytes(copied)+" copied by processes that the program forked", found...).Noting(notes...)
	case all > 0 && complete || len(notes) > 0:
		return detect.Clean(fmt.Sprintf("%s that the program forked copied %s of what they inherited",
			words.Count(all, "process"), words.Bytes(copied))).Noting(notes...)
	}
	return detect.NotApplicable("no processes of the program's own were seen to copy what their parent holds")
}

// processes that run the same and have copied what they inherited.
type processes struct {
	*memory.Family
	certainty finding.Certainty
	limit     memory.Limit // Load: what they copied; Bytes 0: no limit is known
}

func (p processes) finding() finding.Finding {
	n, what := words.Count(len(p.Workers), "process"), paths(p.containers())
	verb := "have %s of %s to themselves"
	if p.Tier() == memory.Kernel {
		verb = "copied %s of %s"
	}
	if len(p.Workers) == 1 {
		verb = strings.Replace(strings.Replace(verb, "have", "has", 1), "themselves", "itself", 1)
	}
	c := copies{round: p.Round(), limit: p.limit}
	cost := fmt.Sprintf("%s per process × %s = %s", c.each(), n, words.Bytes(p.limit.Load))
	if p.limit.Bytes > 0 {
		cost += fmt.Sprintf(", %s of %s", words.Percent(p.limit.Share()), words.Memory(p.limit.Bytes, p.limit.Group()))
	}
	title := n + " forked to run " + p.function() + " " + fmt.Sprintf(verb, words.Bytes(p.limit.Load), what)
	if len(p.Workers) > 1 {
		title += ", " + c.each() + " each"
	}
	return finding.Finding{
		Certainty: p.certainty,
		Proof:     proof(p.Round()),
		Title:     title,
		Evidence:  slices.Concat(p.counted(), p.reach(), p.why(), p.limits()),
		Cost:      cost,
		Fix:       p.fix(),
		NotABugIf: "a copy in each of these processes is planned for, and the machine has room for all of them.",
	}
}

// function that they run, as its module calls it.
func (p processes) function() string {
	return strings.TrimPrefix(p.Target, "__main__.")
}

// containers of which anything was copied, one of each path: that of which most
// was. Each process may have been given one of its own.
func (p processes) containers() []traces.Extent {
	var out []traces.Extent
	for _, e := range p.Ranked() {
		if !slices.ContainsFunc(out, func(o traces.Extent) bool { return o.Path == e.Path }) {
			out = append(out, e)
		}
	}
	return out
}

func paths(extents []traces.Extent) string {
	if len(extents) == 0 {
		return "what they inherited"
	}
	return names(extents)
}

func (p processes) counted() []finding.Evidence {
	var each, what []string
	refs := p.ExtentRefs(p.containers()...)
	for i, w := range p.Workers {
		if i == listed {
			each = append(each, fmt.Sprintf("and %d more", len(p.Workers)-listed))
			break
		}
		each = append(each, fmt.Sprintf("process %d %s", w.Process.Pid, words.Bytes(w.Copied)))
		refs = append(refs, w.Refs...)
	}
	for _, e := range p.containers() {
		what = append(what, fmt.Sprintf("%s (%s, %s items)", e.Path, class(e), words.Number(e.Items)))
	}
	how := "pages that nobody else maps, by their own /proc/self/pagemap; new pages are subtracted"
	if p.Tier() == memory.Kernel {
		how = "the kernel counted the write faults on pages that were shared, in pages of 4 KiB"
	}
	text := fmt.Sprintf("Of the memory that the objects of %s lie on: %s (%s). Process %d, which forked them, still held the same objects "+
		"when they had ended: so these are second copies.", words.List(what), strings.Join(each, ", "), how, p.Parent().Pid)
	return []finding.Evidence{{Text: text, Refs: refs}}
}

// reach is how far it can go.
func (p processes) reach() []finding.Evidence {
	var most int64
	for _, w := range p.Workers {
		most = max(most, p.Reach(w))
	}
	text := fmt.Sprintf("It ends when each has its own copy: at most %s are there to be copied by one process.", words.Bytes(most))
	if p.All > len(p.Workers) {
		text += fmt.Sprintf(" %s were forked for this; the numbers are those of the ones that lived at the same time.",
			words.Count(p.All, "process"))
	}
	return []finding.Evidence{{Text: text}}
}

func (p processes) why() []finding.Evidence {
	return []finding.Evidence{{Text: "A Python object holds its reference count. To use an object of " + paths(p.containers()) +
		" writes it, and the first write to a page after the fork copies the page, for each process anew."}}
}

func (p processes) limits() []finding.Evidence {
	if p.limit.Bytes == 0 {
		return nil
	}
	return []finding.Evidence{{Text: "The smallest limit for this is " + words.Memory(p.limit.Bytes, p.limit.Group()) + ".",
		Refs: []finding.Ref{p.limit.Ref}}}
}

func (p processes) fix() string {
	ranked := p.containers()
	if len(ranked) == 0 {
		return ""
	}
	place := ranked[0].Path
	if strings.HasPrefix(place, "args[") || strings.HasPrefix(place, "kwargs[") {
		place += " of what " + p.function() + " is called with"
	}
	return repacked(place, ranked)
}
