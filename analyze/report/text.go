package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze/words"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/account"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Options of a text report.
type Options struct {
	Width   int  // of a line, in characters; 0: 100
	Color   bool // ANSI colours
	Unicode bool // characters beyond ASCII of our own; those of the user's names are always kept
}

// Columns of labels: of the parts of a finding, and of the lines below them.
const (
	factColumn    = 11
	summaryColumn = 17
)

// At most this many notes and loaders are shown; JSON has all.
const most = 6

// Text writes the report for people: findings first, then what is right, what
// could not be checked, and what recording has cost.
func Text(w io.Writer, r *analyze.Result, o Options) error {
	if o.Width == 0 {
		o.Width = 100
	}
	p := &page{w: w, width: o.Width, color: o.Color, unicode: o.Unicode, printed: map[string]string{}}
	p.header(r)
	p.findings(r)
	p.accepted(r)
	p.line("")
	p.waits(r)
	p.checks("checked, clean", finding.Clean, r.Checks)
	p.checks("could not check", finding.CannotTell, r.Checks)
	p.unused(r)
	p.unwatched(r)
	p.losses(r)
	p.overhead(r.Overhead)
	return p.err
}

func (p *page) header(r *analyze.Result) {
	for _, l := range wrap(p.clean(strings.Join(r.Timeline.Command, " ")), p.width) {
		p.line(p.paint(bold, l))
	}
	facts := []string{fmt.Sprintf("%.1f s", duration(r).Seconds())}
	if r.Timeline.ExitCode >= 0 {
		facts = append(facts, fmt.Sprintf("exit code %d", r.Timeline.ExitCode))
	}
	if v := distinct(r, python); v != "" {
		facts = append(facts, "Python "+v)
	}
	if v := distinct(r, torch); v != "" {
		facts = append(facts, "torch "+v)
	}
	if len(r.Timeline.Loaders) > 0 {
		facts = append(facts, words.Count(ranks(r), "rank"))
	}
	if n := r.Processes.Seen; n > 1 {
		facts = append(facts, processesSeen(n, r.Processes.KernelOnly))
	}
	if r.Tier.Name != "" && r.Tier.Refused == "" {
		facts = append(facts, "tier "+r.Tier.Name)
	}
	facts = append(facts, where(r))
	for _, l := range wrap(p.clean(strings.Join(facts, ", ")), p.width) {
		p.line(p.paint(grey, l))
	}
	if r.Tier.Refused != "" {
		p.entry(0, summaryColumn, grey, "tier", fmt.Sprintf("%s (why not kernel: %s)", r.Tier.Name, r.Tier.Refused))
	}
	for i, l := range loaders(r.Timeline) {
		label := ""
		if i == 0 {
			label = "loaders"
		}
		p.entry(0, summaryColumn, grey, label, l)
	}
}

// where names the folders of the run, if they are few.
func where(r *analyze.Result) string {
	names := folders(r)
	if len(names) > most {
		return fmt.Sprintf("%d traces: %s to %s", len(names), names[0], names[len(names)-1])
	}
	return strings.Join(names, " ")
}

// processesSeen counts processes, and says how many only the kernel knows.
func processesSeen(n, kernelOnly int) string {
	if kernelOnly == 0 {
		return words.Count(n, "process")
	}
	return fmt.Sprintf("%s (%d too short-lived for all but the kernel)", words.Count(n, "process"), kernelOnly)
}

// loaders has a line for each loader, ranks together.
func loaders(t *timeline.Timeline) []string {
	var lines []string
	for i, l := range t.Loaders {
		if i > 0 && t.Loaders[i-1].ID == l.ID {
			continue // the same one on another rank
		}
		workers := int(max(l.First().NumWorkers, 0))
		lines = append(lines, fmt.Sprintf("%d  %s (%s): %s, %s", l.ID, l.At(), l.Role, words.Count(workers, "worker"), words.Count(len(l.Passes), "pass")))
	}
	if len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("and %d more", len(lines)-most+1))
	}
	return lines
}

func (p *page) findings(r *analyze.Result) {
	var all []finding.Finding // that nobody has accepted
	counts := map[finding.Certainty]int{}
	for _, f := range r.Findings {
		if f.Accepted == "" {
			all = append(all, f)
			counts[f.Certainty]++
		}
	}
	if counts[finding.Proven]+counts[finding.Likely] == 0 {
		p.line("")
		switch {
		case len(all) < len(r.Findings):
			p.line(p.paint(green, "Nothing is proven or likely to be wrong but what was accepted."))
		case slices.ContainsFunc(r.Checks, func(c finding.Check) bool { return c.Status == finding.Clean }):
			p.line(p.paint(green, "Nothing is proven or likely to be wrong."))
		default:
			p.line(p.paint(yellow, "Nothing was found, but nothing could be called clean either."))
		}
	}
	notes := 0
	for _, f := range all {
		if f.Certainty > finding.Note {
			p.line("")
			p.finding(f)
			continue
		}
		if notes == 0 {
			p.line("")
		}
		if notes++; notes < most || counts[finding.Note] == most {
			text := f.Rule + "  " + f.Title
			if f.Loader.At != "" {
				text += " (" + f.Loader.At + ")"
			}
			p.entry(0, 8, grey, "NOTE", text)
		}
	}
	if notes > most {
		p.entry(0, 8, grey, "", fmt.Sprintf("and %d more notes, see --format json", notes-most+1))
	}
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
		text := fmt.Sprintf("%s (%s)  %s", f.Rule, f.Certainty, f.Title)
		if f.Loader.At != "" {
			text += " (" + f.Loader.At + ")"
		}
		p.entry(0, 10, grey, "ACCEPTED", text)
		p.fact("reason", f.Accepted)
	}
}

// unused says which entries of dptrace.toml accept nothing.
func (p *page) unused(r *analyze.Result) {
	lines := Unused(r)
	if len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("and %d more", len(lines)-most+1))
	}
	label := "unused"
	for _, l := range lines {
		p.entry(0, summaryColumn, yellow, label, l)
		label = ""
	}
}

func (p *page) finding(f finding.Finding) {
	s := yellow
	if f.Certainty == finding.Proven {
		s = red
	}
	p.entry(0, 8, s, strings.ToUpper(f.Certainty.String()), f.Rule+"  "+f.Title)
	switch {
	case f.Loader.ID == 0: // it is about the run
		p.fact("proof", f.Proof)
	case f.Proof == "":
		p.fact("loader", fmt.Sprintf("%d, %s (%s)", f.Loader.ID, f.Loader.At, f.Loader.Role))
	default:
		p.fact("loader", fmt.Sprintf("%d, %s (%s), proof %s", f.Loader.ID, f.Loader.At, f.Loader.Role, f.Proof))
	}
	label := "evidence"
	for i, e := range f.Evidence {
		if i > 0 && p.above(e.Text, f.Rule) != "" {
			continue // how to replay the same numbers
		}
		p.entry(2, factColumn, bold, label, e.Text)
		label = ""
	}
	p.fact("cost", f.Cost)
	if rule := p.above(f.Fix, f.Rule); rule != "" {
		p.fact("fix", "the same as for "+rule+" above")
	} else {
		p.code("fix", f.Fix)
	}
	p.fact("verify", f.Verify)
	if f.NotABugIf != "" {
		p.fact("no bug if", strings.TrimPrefix(f.NotABugIf, "if "))
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

// bottleneck is the share of the loop's time from which on waiting for data is
// not called harmless any more.
const bottleneck = 0.05

// waits says how much of the training loops' time went into waiting for data.
func (p *page) waits(r *analyze.Result) {
	var waited, total time.Duration
	for _, l := range r.Timeline.Loaders {
		for _, pass := range l.Passes {
			if pass.Role == timeline.Train {
				w, t := pass.Wait()
				waited += w
				total += t
			}
		}
	}
	if total <= 0 {
		return
	}
	share := waited.Seconds() / total.Seconds()
	text := fmt.Sprintf("%.1f %% of the training loop's time was spent waiting for data (%.2f of %.2f s, the first batch of each pass apart)",
		100*share, waited.Seconds(), total.Seconds())
	if share < bottleneck {
		p.entry(0, summaryColumn, green, "not your problem", text)
		return
	}
	p.entry(0, summaryColumn, bold, "waiting", text)
}

// line is rules that say the same of the same loaders.
type line struct {
	reason  string
	rules   []string
	loaders []int
}

// perRule joins the lines of one rule: its reasons are left out.
func perRule(lines []*line) (joined []*line) {
	for _, l := range lines {
		i := slices.IndexFunc(joined, func(m *line) bool { return m.rules[0] == l.rules[0] })
		if i < 0 {
			joined = append(joined, &line{l.reason, []string{l.rules[0]}, slices.Clone(l.loaders)})
			continue
		}
		joined[i].loaders = append(joined[i].loaders, l.loaders...)
	}
	for _, l := range joined {
		slices.Sort(l.loaders)
	}
	return joined
}

// checks lists what has one status: rules with the same reason for the same
// loaders share a line.
func (p *page) checks(label string, status finding.Status, all []finding.Check) {
	var byRule []*line
	for _, c := range all {
		if c.Status != status {
			continue
		}
		i := slices.IndexFunc(byRule, func(l *line) bool { return l.rules[0] == c.Rule && l.reason == c.Reason })
		if i < 0 {
			i = len(byRule)
			byRule = append(byRule, &line{c.Reason, []string{c.Rule}, nil})
		}
		byRule[i].loaders = append(byRule[i].loaders, c.Loader)
	}
	together := func(all []*line) (lines []*line) {
		for _, l := range all {
			i := slices.IndexFunc(lines, func(m *line) bool { return m.reason == l.reason && slices.Equal(m.loaders, l.loaders) })
			if i < 0 {
				lines = append(lines, l)
			} else {
				lines[i].rules = append(lines[i].rules, l.rules...)
			}
		}
		return lines
	}
	lines := together(byRule)
	if status == finding.Clean && len(lines) > most { // what is right may be short
		for _, l := range byRule {
			l.reason = "see --format json for how much was compared"
		}
		lines = together(perRule(byRule))
	}
	s := green
	if status != finding.Clean {
		s = yellow
	}
	for _, l := range lines {
		p.entry(0, summaryColumn, s, label, fmt.Sprintf("%s (%s): %s", strings.Join(l.rules, ", "), numbered("loader", l.loaders), l.reason))
		label = ""
	}
}

// numbered is "loader 1", "loaders 1, 2", "12 loaders"; number 0 is "run".
func numbered(one string, numbers []int) string {
	if i := slices.Index(numbers, 0); i >= 0 {
		if len(numbers) == 1 {
			return "run"
		}
		return "run, " + numbered(one, slices.Delete(slices.Clone(numbers), i, i+1))
	}
	switch {
	case len(numbers) == 1:
		return fmt.Sprintf("%s %d", one, numbers[0])
	case len(numbers) > most:
		return words.Count(len(numbers), one)
	}
	return one + "s " + strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}

// unwatched says which Pythons ran without the hook, and why there may be
// nothing to judge.
func (p *page) unwatched(r *analyze.Result) {
	if len(r.Timeline.Loaders) == 0 {
		text := "no DataLoader was iterated"
		if distinct(r, torch) == "" {
			text = "no process used torch.utils.data"
		}
		p.entry(0, summaryColumn, yellow, "nothing to check", text)
	}
	for i, l := range notHooked(r.Processes.Unhooked) {
		label := ""
		if i == 0 {
			label = "not hooked"
		}
		p.entry(0, summaryColumn, yellow, label, l)
	}
}

// mostUnhooked keeps the report short: each of these lines may be two.
const mostUnhooked = 4

// notHooked has a line for each kind of Python that was not watched from
// inside; those that have loaded torch come first.
func notHooked(all []account.Unhooked) []string {
	type kind struct {
		cmdline, reason string
		torch           bool
	}
	pids := map[kind][]int32{}
	var kinds []kind
	for _, u := range all {
		k := kind{shorten(u.Cmdline, 60), u.Reason, u.Torch}
		if pids[k] == nil {
			kinds = append(kinds, k)
		}
		pids[k] = append(pids[k], u.Pid)
	}
	slices.SortStableFunc(kinds, func(a, b kind) int {
		switch {
		case a.torch == b.torch:
			return 0
		case a.torch:
			return -1
		}
		return 1
	})
	var lines []string
	shown := 0
	for _, k := range kinds {
		if len(lines) == mostUnhooked-1 && len(kinds) > mostUnhooked {
			lines = append(lines, fmt.Sprintf("and %d more, see --format json", len(all)-shown))
			break
		}
		shown += len(pids[k])
		who := fmt.Sprintf("pid %d", pids[k][0])
		if n := len(pids[k]); n > 1 {
			who += fmt.Sprintf(" and %d more", n-1)
		}
		lines = append(lines, fmt.Sprintf("%s, %s: %s", who, k.cmdline, k.reason))
	}
	return lines
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// losses says what was not recorded or cannot be read.
func (p *page) losses(r *analyze.Result) {
	lines := Incomplete(r)
	for _, l := range r.Lost {
		if l.Source == "trace" {
			continue // in Incomplete, with its place
		}
		count := "an unknown number of"
		if l.Count > 0 {
			count = fmt.Sprint(l.Count)
		}
		what := "records"
		if l.Table != "" {
			what = l.Table + " records"
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s (%s)", count, what, l.Reason, l.Source))
	}
	if len(lines) == 0 {
		p.entry(0, summaryColumn, green, "lost", "nothing")
		return
	}
	if len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("and %d more, see --format json", len(lines)-most+1))
	}
	for i, l := range lines {
		label := ""
		if i == 0 {
			label = "lost"
		}
		p.entry(0, summaryColumn, red, label, l)
	}
}

func (p *page) overhead(o account.Overhead) {
	text := o.Method
	if o.Percent >= 0 {
		text = fmt.Sprintf("%.1f %%%s: %s", o.Percent, split(o), o.Method)
	}
	p.entry(0, summaryColumn, grey, "overhead", text)
}

// split is " (hook 0.2 | recorder 0.1 | eBPF 0.1)": who has spent it.
func split(o account.Overhead) string {
	percent := map[string]float64{}
	for _, c := range o.Parts {
		percent[c.Kind] += c.Percent
	}
	var parts []string
	for _, kind := range []string{account.CostHook, account.CostRecorder, account.CostBPF} {
		if share, ok := percent[kind]; ok {
			parts = append(parts, fmt.Sprintf("%s %.1f", kind, share))
		}
	}
	if o.Untimed > 0 {
		parts = append(parts, fmt.Sprintf("%d runs of eBPF programs not timed", o.Untimed))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, " | ") + ")"
}
