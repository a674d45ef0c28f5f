package pprof

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dptrace/dptrace/analyze/timeline"
)

// place is where a process stands in the run.
type place struct {
	process *timeline.Process
	passes  []*timeline.Pass // that it served as a worker, in their order
	number  int              // as a worker
	stack   []frame          // leaf first: worker, loader, command
}

// places is all processes of a run.
func places(t *timeline.Timeline) []*place {
	root := frame{name: command(t)}
	serving := map[*timeline.Process]*place{}
	for _, l := range t.Loaders {
		for _, pass := range l.Passes {
			for _, w := range pass.Workers {
				if w.Number < 0 || w.Process == nil {
					continue // the main process
				}
				p := serving[w.Process]
				if p == nil {
					p = &place{process: w.Process, number: w.Number, stack: []frame{
						{name: fmt.Sprintf("worker %d", w.Number)}, made(l), root,
					}}
					serving[w.Process] = p
				}
				p.passes = append(p.passes, pass)
			}
		}
	}
	var all []*place
	for _, process := range t.Processes {
		p := serving[process]
		if p == nil {
			p = &place{process: process, stack: []frame{{name: role(process)}, root}}
		}
		all = append(all, p)
	}
	return all
}

func made(l *timeline.Loader) frame {
	first := l.First()
	return frame{name: "DataLoader at " + l.At(), file: first.File, line: int64(first.Line)}
}

func role(p *timeline.Process) string {
	switch p.Kind {
	case "target":
		return "main process"
	case "worker":
		return "worker of an unknown loader"
	}
	words := strings.Fields(p.Cmdline)
	if len(words) == 0 { // not recorded, or a blank argv[0]
		return "process without a name"
	}
	words[0] = filepath.Base(words[0])
	return shorten("process " + strings.Join(words, " "))
}

// longest is how many characters of a command line a frame shows.
const longest = 80

func shorten(s string) string {
	if r := []rune(s); len(r) > longest {
		return string(r[:longest-3]) + "..."
	}
	return s
}

func command(t *timeline.Timeline) string {
	if len(t.Command) == 0 {
		return "unknown command"
	}
	return shorten(strings.Join(t.Command, " "))
}

// labels have a word before the number: -tagfocus takes a number alone for a
// range of numeric labels, and -tagroot makes frames of them.
func (p *place) labels() map[string][]string {
	labels := map[string][]string{}
	if p.process.Rank >= 0 {
		labels["rank"] = []string{fmt.Sprintf("rank %d", p.process.Rank)}
	}
	if n := len(p.passes); n > 0 {
		labels["worker"] = []string{fmt.Sprintf("worker %d", p.number)}
		labels["pass"] = []string{fmt.Sprintf("pass %d", p.passes[0].Number)}
		if n > 1 { // persistent workers
			labels["pass"] = []string{fmt.Sprintf("passes %d-%d", p.passes[0].Number, p.passes[n-1].Number)}
		}
	}
	return labels
}
