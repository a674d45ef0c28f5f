package crash

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// described is how many processes are described one by one.
const described = 3

// finding about processes of one command line.
func (r *run) finding(g []*crashed) finding.Finding {
	c := g[0]
	f := finding.Finding{
		Rule: id, Certainty: c.certainty, Proof: proof(c.Process),
		Title:     r.title(g),
		Cost:      cost(c.Process),
		Fix:       r.fix(c),
		Verify:    "Record again: " + r.t.RecordAgain() + " and see that its exit code is not 0 when this process crashes, or that it no longer does.",
		NotABugIf: "the caller expects this process to fail and deals with it.",
	}
	for i, c := range g {
		if i == described && len(g) > described+1 {
			f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("%d more processes of this command line crashed.", len(g)-i)})
			break
		}
		f.Evidence = append(f.Evidence, r.describe(c)...)
	}
	f.Evidence = append(f.Evidence, r.hidden(c))
	if c.certainty == finding.Note {
		f.Fix = "Nothing, if it is meant to be tried again. Else repair what made it crash."
	}
	return f
}

func (r *run) title(g []*crashed) string {
	c := g[0]
	who := name(c.Process)
	if len(g) > 1 {
		who = fmt.Sprintf("%d processes of %s", len(g), who)
	}
	how := status(c)
	if c.certainty == finding.Note {
		return fmt.Sprintf("%s crashed (%s) and ended well when it was run again", who, how)
	}
	return fmt.Sprintf("%s crashed (%s) and the command exited with 0", who, how)
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
	if p.EndKnown() {
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

func (r *run) describe(c *crashed) (list []finding.Evidence) {
	p := c.Process
	text := fmt.Sprintf("pid %d", p.Pid)
	if p.Rank >= 0 {
		text += fmt.Sprintf(" (rank %d)", p.Rank)
	}
	text += ", " + shorten(p.Cmdline) + ", "
	var refs []finding.Ref
	switch {
	case !p.EndKnown():
		text += "ended with an exception that nobody caught"
	default:
		text += "ended by " + code(p)
		refs = append(refs, r.ref("exit", p.Exit.Seq))
	}
	if s := p.Fatal(); s != nil {
		switch {
		case p.Fault() != nil:
			f := p.Fault()
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
		refs = append(refs, r.ref("signal", s.Seq))
	}
	if p.Oom != nil {
		text += "; the out-of-memory killer had chosen it"
		refs = append(refs, r.ref("oom", p.Oom.Seq))
	}
	if c.orphan {
		text += "; its parent had ended before"
	}
	list = append(list, finding.Evidence{Text: text + ".", Refs: refs})
	if e := c.raised; e != nil {
		text := e.Type
		if e.Message != "" {
			text += ": " + strings.TrimSpace(e.Message)
		}
		if e.File != "" {
			text += ", at " + timeline.Place(p.Cwd, e.File, e.Line)
		}
		if e.Func != "" {
			text += " in " + e.Func
		}
		list = append(list, finding.Evidence{Text: "Nobody caught " + text + ".", Refs: []finding.Ref{r.ref("exception", e.Seq)}})
	}
	list = append(list, finding.Evidence{Text: "It got as far as this: " + reached(p) + "."})
	if c.again != nil {
		list = append(list, finding.Evidence{Text: fmt.Sprintf("The same command was run again as pid %d, %s later.", c.again.Pid, seconds(c.again.Begin-p.Begin))})
	}
	return list
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

// reached says how far a training came.
func reached(p *timeline.Process) string {
	if !p.Hooked() {
		return "not known, it was not watched from inside"
	}
	var last *timeline.Pass
	for _, l := range p.Loaders {
		for _, pass := range l.Passes {
			if last == nil || pass.Begin > last.Begin {
				last = pass
			}
		}
	}
	switch {
	case last == nil && p.Optimizers > 0:
		return "an optimizer stepped, no DataLoader was iterated"
	case last == nil:
		return "before its first batch, no DataLoader was iterated and no optimizer stepped"
	case last.Delivered == 0 && len(last.Loader.Passes) == 1 && p.Steps == 0:
		return "before its first batch, in the first pass of the loader at " + last.Loader.At()
	}
	text := fmt.Sprintf("pass %d of the loader at %s, %d batches into it", last.Number, last.Loader.At(), last.Delivered)
	if p.Steps > 0 {
		text += fmt.Sprintf(", after %d optimizer steps", p.Steps)
	}
	return text
}

func cost(p *timeline.Process) string {
	switch {
	case !p.Hooked():
		return "what this process was to do is not done"
	case p.Steps > 0:
		return fmt.Sprintf("its training ended after %d optimizer steps, and the caller was told that all went well", p.Steps)
	case trained(p):
		return "it ended " + reached(p) + ", and the caller was told that all went well"
	}
	return "it trained nothing: no batch, no optimizer step, and the caller was told that all went well"
}

// swallower is the one who ended with 0 although its child did not: the nearest
// above, or the command itself.
func (r *run) swallower(p *timeline.Process) *timeline.Process {
	for up, n := p.Parent, 0; up != nil && n < 1000; up, n = up.Parent, n+1 {
		if f := up.Final(); f.EndKnown() && !f.EndedBadly() || f == r.target {
			return f
		}
	}
	return r.target
}

func (r *run) hidden(c *crashed) finding.Evidence {
	text := "The command exited with 0."
	var refs []finding.Ref
	if s := r.swallower(c.Process); s != nil {
		if s != r.target {
			text = fmt.Sprintf("Its ancestor pid %d, %s, ended with exit code 0, and so did the command.", s.Pid, shorten(s.Cmdline))
		} else if s.Cmdline != "" {
			text = fmt.Sprintf("The command, %s, exited with 0.", shorten(s.Cmdline))
		}
		if s.Exit != nil {
			refs = append(refs, r.ref("exit", s.Exit.Seq))
		}
	}
	if c.certainty == finding.Proven && !r.anyTrained() {
		text += " No process of the run iterated a DataLoader or stepped an optimizer."
	}
	return finding.Evidence{Text: text, Refs: refs}
}

// fix is the line that the caller lacks: the caller's command line says in
// which language.
func (r *run) fix(c *crashed) string {
	caller := r.swallower(c.Process)
	if caller == nil {
		caller = c.Parent
	}
	line := ""
	if caller != nil {
		line = caller.Cmdline
	}
	words := strings.Fields(line + " ?")
	program := filepath.Base(words[0])
	child := c.Cmdline
	if caller != nil && caller.Exe != "" {
		program = filepath.Base(caller.Exe)
	}
	switch {
	case strings.HasPrefix(program, "python") && (c.Kind == "fork" || spawned(c.Process)):
		return "process.join()\nif process.exitcode != 0:\n    sys.exit(f\"training ended with {process.exitcode}\")"
	case strings.HasPrefix(program, "python"):
		return "result = subprocess.run(command)      # " + child + "\nsys.exit(result.returncode)           # or subprocess.run(command, check=True), which raises"
	case program == "bash" || program == "zsh" || program == "ksh":
		return "set -eo pipefail      # at the top of " + script(words) + ": it then ends with the exit code of the first command that fails"
	case program == "sh" || program == "dash" || program == "busybox" || program == "ash":
		return "set -e      # at the top of " + script(words) + ": it then ends with the exit code of the first command that fails"
	}
	return "Let `" + program + "` end with the exit code of `" + child + "`."
}

// script of a shell's command line.
func script(words []string) string {
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") && w != "?" {
			if strings.HasSuffix(w, ".sh") || strings.Contains(w, "/") || len(words) <= 3 {
				return w
			}
			break
		}
		if strings.HasPrefix(w, "-") && strings.Contains(w, "c") {
			return "its commands"
		}
	}
	return "its script"
}
