package swallowedcrash

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// described is how many processes are described one by one.
const described = 3

// findings are about the crashes of one command line each.
func (r *run) findings() (findings []finding.Finding) {
	var groups [][]*crashed
	for _, c := range r.crashes {
		i := slices.IndexFunc(groups, func(g []*crashed) bool {
			same := g[0].certainty == c.certainty && slices.Equal(g[0].doubts, c.doubts)
			return same && g[0].Cmdline == c.Cmdline && c.Cmdline != ""
		})
		if i < 0 {
			groups = append(groups, []*crashed{c})
		} else {
			groups[i] = append(groups[i], c)
		}
	}
	for _, g := range groups {
		findings = append(findings, r.finding(g))
	}
	return findings
}

// finding about processes of one command line.
func (r *run) finding(g []*crashed) finding.Finding {
	c := g[0]
	f := finding.Finding{
		Certainty: c.certainty,
		Proof:     proof(c.Process),
		Title:     r.title(g),
		Cost:      cost(c.Process),
		Fix:       r.fix(c),
		Verify: "Record again: " + r.RecordAgain() +
			" and see that its exit code is not 0 when this process crashes, or that it no longer does.",
		Facts: c.doubts,
	}
	for i, c := range g {
		if i == described && len(g) > described+1 {
			text := fmt.Sprintf("%d more processes of this command line crashed.", len(g)-i)
			f.Evidence = append(f.Evidence, finding.Evidence{Text: text})
			break
		}
		f.Evidence = append(f.Evidence, r.describe(c)...)
	}
	f.Evidence = append(f.Evidence, r.hidden(c))
	if c.certainty == finding.Note {
		f.Fix = "Nothing, if this is meant. Else repair what made it crash."
	}
	return f
}

func (r *run) title(g []*crashed) string {
	c := g[0]
	who := name(c.Process)
	if len(g) > 1 {
		who = fmt.Sprintf("%d processes of %s", len(g), who)
	}
	how := "crashed"
	if c.answered() {
		how = "ended badly"
	}
	how += " (" + status(c) + ")"
	switch {
	case c.retried != nil:
		return fmt.Sprintf("%s %s and ended well when it was run again", who, how)
	case c.read == looked:
		return fmt.Sprintf("%s %s, and its parent looked at how it ended", who, how)
	}
	return fmt.Sprintf("%s %s and the command exited with 0", who, how)
}

// status is the shortest way to say how it ended.
func status(c *crashed) string {
	var words []string
	if c.raised != nil {
		words = append(words, c.raised.Type)
	}
	if c.EndKnown() {
		words = append(words, code(c.Process))
	}
	return strings.Join(words, ", ")
}

func code(p *timeline.Process) string {
	if p.Exit.Signal != 0 {
		return timeline.SignalName(p.Exit.Signal)
	}
	return fmt.Sprintf("exit code %d", p.Exit.ExitCode)
}

func proof(p *timeline.Process) string {
	if p.EndKnown() && p.Exit.Source != timeline.ByParent {
		return "kernel"
	}
	return "hook"
}

// name of a process: its script or module.
func name(p *timeline.Process) string {
	words := strings.Fields(p.Cmdline)
	for i, w := range words {
		if strings.HasSuffix(w, ".py") {
			return filepath.Base(w)
		}
		if w == "-m" && i+1 < len(words) {
			return words[i+1]
		}
	}
	return fmt.Sprintf("pid %d", p.Pid)
}

func (r *run) describe(c *crashed) []finding.Evidence {
	list := []finding.Evidence{r.end(c)}
	if c.raised != nil {
		list = append(list, r.exception(c))
	}
	list = append(list, finding.Evidence{Text: "It got as far as this: " + reached(c.Process) + "."})
	if c.retried != nil {
		text := fmt.Sprintf("The same command was run again as pid %d, %s later.", c.retried.Pid, seconds(c.retried.Begin-c.Begin))
		list = append(list, finding.Evidence{Text: text})
	}
	return list
}

// end says how it ended, and by whom.
func (r *run) end(c *crashed) finding.Evidence {
	p := c.Process
	text := fmt.Sprintf("pid %d", p.Pid)
	if p.Rank >= 0 {
		text += fmt.Sprintf(" (rank %d)", p.Rank)
	}
	text += ", " + shorten(p.Cmdline) + ", "
	var refs []finding.Ref
	if p.EndKnown() {
		text += "ended by " + code(p)
		refs = append(refs, r.endRef(p))
	} else {
		text += "ended with an exception that nobody caught"
	}
	s := p.Fatal()
	switch f := p.Fault(); {
	case s == nil:
	case f != nil:
		text += fmt.Sprintf(", for an access to address 0x%x", f.Address)
		if f.MappingPath != "" {
			text += " in " + f.MappingPath
		}
		s = f
	case timeline.BySelf(p, s):
		text += ", which it sent to itself"
	case s.SenderPid != 0:
		text += fmt.Sprintf(", sent by pid %d (%s)", s.SenderPid, s.SenderComm)
	}
	if s != nil {
		refs = append(refs, r.ref("signal", s.Seq))
	}
	if p.Oom != nil {
		text += "; the out-of-memory killer had chosen it"
		refs = append(refs, r.ref("oom", p.Oom.Seq))
	}
	if c.orphan {
		text += "; its parent had ended before"
	}
	return finding.Evidence{Text: text + ".", Refs: refs}
}

// exception is what nobody caught.
func (r *run) exception(c *crashed) finding.Evidence {
	e := c.raised
	text := e.Type
	if e.Message != "" {
		text += ": " + strings.TrimSpace(e.Message)
	}
	if e.File != "" {
		text += ", at " + timeline.Place(c.Cwd, e.File, e.Line)
	}
	if e.Func != "" {
		text += " in " + e.Func
	}
	return finding.Evidence{Text: "Nobody caught " + text + ".", Refs: []finding.Ref{r.ref("exception", e.Seq)}}
}

// endRef is the row that tells how a process ended.
func (r *run) endRef(p *timeline.Process) finding.Ref {
	if p.Exit.Source == timeline.ByParent {
		return r.ref("act", p.Exit.Seq)
	}
	return r.ref("exit", p.Exit.Seq)
}

func seconds(ns int64) string { return fmt.Sprintf("%.1f s", float64(ns)/1e9) }

func (r *run) ref(table string, seq uint64) finding.Ref {
	return finding.Ref{Part: r.part.Name, Table: table, Seq: seq}
}

// shorten a command line for a sentence.
func shorten(command string) string {
	const most = 120
	if command == "" {
		return "whose command line is not known"
	}
	if runes := []rune(command); len(runes) > most {
		command = string(runes[:most-1]) + "…"
	}
	return "`" + command + "`"
}

func (r *run) hidden(c *crashed) finding.Evidence {
	text := "The command exited with 0."
	var refs []finding.Ref
	if s := c.by; s != nil {
		if s != r.target {
			text = fmt.Sprintf("Its ancestor pid %d, %s, ended with exit code 0, and so did the command.", s.Pid, shorten(s.Cmdline))
		} else if s.Cmdline != "" {
			text = fmt.Sprintf("The command, %s, exited with 0.", shorten(s.Cmdline))
		}
		if s.Exit != nil {
			refs = append(refs, r.endRef(s))
		}
	}
	if told := r.carried(c.Process).Told; c.read != unseen {
		last := told[len(told)-1]
		if refs = append(refs, r.ref("act", last.Seq)); c.read == looked {
			text += fmt.Sprintf(" Its parent looked at how it ended (%s).", last.By)
		} else {
			text += fmt.Sprintf(" Its parent waited for it (%s), and did not look at its exit code.", last.By)
		}
	}
	if c.certainty == finding.Proven && !r.anyTrained() {
		text += " No process of the run iterated a DataLoader or stepped an optimizer."
	}
	return finding.Evidence{Text: text, Refs: refs}
}
