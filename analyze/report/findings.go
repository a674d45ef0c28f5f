package report

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/finding"
)

// findings that nobody has accepted; notes in a line each.
func (p *page) findings(r *analyze.Result) {
	var bugs, notes []finding.Finding
	for _, f := range r.Findings {
		switch {
		case f.Accepted != "":
		case f.Certainty > finding.Note:
			bugs = append(bugs, f)
		default:
			notes = append(notes, f)
		}
	}
	if len(bugs) > atAGlance {
		p.contents(bugs)
	}
	for _, f := range bugs {
		p.line("")
		p.finding(r, f)
	}
	for i, f := range notes {
		switch {
		case i == 0:
			p.line("")
		case i == most-1 && len(notes) > most && !p.Verbose:
			p.entry(0, 8, grey, "", fmt.Sprintf("and %d more notes (-v lists them)", len(notes)-i))
			return
		}
		p.entry(0, 8, grey, "NOTE", f.Rule+"  "+f.Title+at(f))
	}
}

// atAGlance is how many findings are seen without a list of them.
const atAGlance = 2

// contents lists findings, a line each.
func (p *page) contents(bugs []finding.Finding) {
	for _, f := range bugs {
		text := strings.ReplaceAll(f.Title, "\n", " ")
		if f.Loader.At != "" {
			text = f.Loader.At + "  " + text
		}
		p.entry(2, 8, certaintyStyle(f), f.Certainty.String(), text)
	}
}

func certaintyStyle(f finding.Finding) style {
	if f.Certainty == finding.Proven {
		return red
	}
	return yellow
}

// at is where the loader of a finding is made, in brackets.
func at(f finding.Finding) string {
	if f.Loader.At == "" {
		return ""
	}
	return " (" + f.Loader.At + ")"
}

// accepted lists what dptrace.toml accepts, each with its reason.
func (p *page) accepted(r *analyze.Result) {
	first := true
	for _, f := range r.Findings {
		if f.Accepted == "" {
			continue
		}
		if first {
			p.line("")
			first = false
		}
		p.entry(0, 10, grey, "ACCEPTED", fmt.Sprintf("%s (%s)  %s%s", f.Rule, f.Certainty, f.Title, at(f)))
		p.fact("reason", f.Accepted)
	}
}

// unused says which entries of dptrace.toml accept nothing.
func (p *page) unused(r *analyze.Result) { p.list(yellow, "unused", few(Unused(r), most)) }

func (p *page) finding(r *analyze.Result, f finding.Finding) {
	p.entry(0, 8, certaintyStyle(f), strings.ToUpper(f.Certainty.String()), f.Rule+"  "+f.Title)
	if f.Loader.ID > 0 { // else it is about the run
		p.fact("loader", fmt.Sprintf("%s (%s, loader %d)", f.Loader.At, f.Loader.Role, f.Loader.ID))
	}
	p.fact("cost", f.Cost)
	p.evidence(f)
	if rule := p.above(f.Fix, f.Rule); rule != "" {
		p.fact("fix", "the same as for "+rule+" above")
	} else {
		p.code("fix", f.Fix)
	}
	if f.Verify != r.Timeline.Verify(f.Rule) { // that is said once, at the end
		p.fact("verify", f.Verify)
	}
	if f.NotABugIf != "" {
		p.fact("no bug if", strings.TrimPrefix(f.NotABugIf, "if "))
	}
	if p.Verbose && f.Proof != "" {
		p.fact("proof", f.Proof)
	}
}

// mostEvidence of a finding is shown where no more was asked for.
const mostEvidence = 4

// evidence that a person can look at; all of it where it was asked for.
func (p *page) evidence(f finding.Finding) {
	label, shown, left := "evidence", 0, 0
	for i, e := range f.Evidence {
		switch {
		case !p.Verbose && (e.Detail || shown == mostEvidence):
			left++
		case i > 0 && p.above(e.Text, f.Rule) != "": // how to replay the same numbers
		default:
			p.entry(2, factColumn, bold, label, e.Text)
			label = ""
			shown++
		}
	}
	if left > 0 {
		p.entry(2, factColumn, bold, label, fmt.Sprintf("(%d more with -v)", left))
	}
}

// above is the rule under which a text was printed before, "" if it was not:
// findings of several rules often have one cause and one fix.
func (p *page) above(text, rule string) string {
	before := p.printed[text]
	if before == "" {
		p.printed[text] = rule
	}
	return before
}

func (p *page) fact(label, text string) {
	if text != "" {
		p.entry(2, factColumn, bold, label, text)
	}
}

// code is not wrapped: it is made to be pasted.
func (p *page) code(label, text string) {
	if text == "" {
		return
	}
	for _, l := range strings.Split(p.clean(text), "\n") {
		p.line("  " + p.label(bold, factColumn, label) + l)
		label = ""
	}
}
