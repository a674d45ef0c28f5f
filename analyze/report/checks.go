package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/words"
)

// states is what checks are listed by, in this order, and how. What was found is
// shown with its findings.
var states = []struct {
	status  finding.Status
	label   string
	style   style
	reasons bool // are said where checks are only counted
}{
	{finding.Clean, "clean", green, false},
	{finding.NotApplicable, "not applicable", grey, true},
	{finding.CannotTell, "not checked", yellow, true},
}

// mostReasons of one state are said where checks are counted.
const mostReasons = 3

// countedChecks has a line for each state: of how many rules, and why.
func (p *page) countedChecks(all []finding.Check) {
	loaders := map[int]bool{}
	for _, c := range all {
		loaders[c.Loader] = loaders[c.Loader] || c.Loader > 0
	}
	delete(loaders, 0)
	for _, state := range states {
		var rules []string
		count := map[string]int{}
		n := 0
		for _, c := range all {
			if c.Status != state.status {
				continue
			}
			n++
			reason, _, _ := strings.Cut(c.Reason, "; ") // of several gaps the first
			count[brief(reason)]++
			if !slices.Contains(rules, c.Rule) {
				rules = append(rules, c.Rule)
			}
		}
		if n == 0 {
			continue
		}
		text := words.Count(len(rules), "rule")
		if len(loaders) > 1 {
			text += fmt.Sprintf(" (%s on %s)", words.Count(n, "check"), words.Count(len(loaders), "loader"))
		}
		if state.reasons {
			text += ": " + reasons(count)
		}
		p.entry(0, summaryColumn, state.style, state.label, text)
	}
}

// reasons, each brief, and how many checks each is the reason of, the most frequent first.
func reasons(count map[string]int) string {
	var all []string
	for reason := range count {
		all = append(all, reason)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(count[b]-count[a], cmp.Compare(a, b)) })
	rest := 0
	for i, reason := range all {
		if i >= mostReasons {
			rest += count[reason]
		}
	}
	var parts []string
	for _, reason := range all[:min(len(all), mostReasons)] {
		parts = append(parts, fmt.Sprintf("%s (%d)", reason, count[reason]))
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("other reasons (%d, see -v)", rest))
	}
	return strings.Join(parts, "; ")
}

// brief is a reason up to a comma or colon where it would be long.
func brief(reason string) string {
	const long = 60
	if len(reason) <= long {
		return reason
	}
	// Not the comma of "3,000".
	if i := max(strings.LastIndex(reason[:long], ", "), strings.LastIndex(reason[:long], ": ")); i > 0 {
		return reason[:i]
	}
	return shorten(reason, long)
}

// allChecks lists every check: rules with the same reason for the same loaders
// share a line.
func (p *page) allChecks(all []finding.Check) {
	for _, state := range states {
		label := state.label
		for _, l := range together(all, state.status) {
			p.entry(
				0,
				summaryColumn,
				state.style,
				label,
				fmt.Sprintf("%s (%s): %s", strings.Join(l.rules, ", "), numbered("loader", l.loaders), l.reason),
			)
			label = ""
		}
	}
}

// line is rules that say the same of the same loaders.
type line struct {
	reason  string
	rules   []string
	loaders []int
}

func together(all []finding.Check, status finding.Status) (lines []*line) {
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
	for _, l := range byRule {
		i := slices.IndexFunc(lines, func(m *line) bool { return m.reason == l.reason && slices.Equal(m.loaders, l.loaders) })
		if i < 0 {
			lines = append(lines, l)
		} else {
			lines[i].rules = append(lines[i].rules, l.rules...)
		}
	}
	return lines
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
