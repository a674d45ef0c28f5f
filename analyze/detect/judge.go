package detect

import (
	"strings"

	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
)

// Judge asks some rules about all loaders of a run, and about the run. What it
// gives is in the order of the rules, then of the loaders. The sources of the
// rules have been read.
func Judge(rules []Rule, t *timeline.Timeline, evidence *collect.Evidence) (findings []finding.Finding, checks []finding.Check) {
	for i := range rules {
		rule := &rules[i]
		for _, c := range cases(rule, t, evidence) {
			f, check := c.judge()
			if findings = append(findings, f...); c.Loaders != nil || rule.Run || check.Status != finding.NotApplicable {
				checks = append(checks, check)
			}
		}
	}
	return explain(rules, findings, checks)
}

// cases that a rule judges.
func cases(rule *Rule, t *timeline.Timeline, evidence *collect.Evidence) (all []*Case) {
	if rule.Run {
		return []*Case{{Timeline: t, rule: rule, evidence: evidence}}
	}
	for _, ranks := range t.ByLoader() {
		all = append(all, &Case{Timeline: t, Loaders: ranks, rule: rule, evidence: evidence})
	}
	if rule.Beside != nil {
		all = append(all, &Case{Timeline: t, rule: rule, evidence: evidence})
	}
	return all
}

// judge asks the rule, and holds its answer to what all rules promise.
func (c *Case) judge() ([]finding.Finding, finding.Check) {
	var v Verdict
	var gap string
	failed := collect.Guard("rule "+c.rule.ID, func() { v, gap = c.ask()(c), c.gap() })
	switch {
	case failed != nil:
		v, gap = CannotTell("dptrace could not judge this: "+failed.Error()), ""
	case v.status == "":
		v = CannotTell("the rule gave no answer").Noting(v.findings...)
	}
	for i := range v.findings {
		c.fill(&v.findings[i])
		c.excuse(&v.findings[i])
	}
	check := finding.Check{Rule: c.rule.ID, Loader: c.ID(), Status: v.status, Reason: v.reason}
	if l := c.loader(); l.ID != 0 {
		check.At, check.Role = l.At, l.Role
	}
	switch best := v.best(); {
	case best > finding.Note: // a bug that was seen is there, whatever else was not
		check.Status = finding.Found
	case gap != "":
		check.Status, check.Reason = finding.CannotTell, gap
	case v.status == finding.Found && best == 0:
		check.Status, check.Reason = finding.CannotTell, "the rule says found, and does not say what: "+v.reason
	case v.status == finding.Clean && best == finding.Note: // a note is not clean
		check.Status = finding.Found
	}
	return v.findings, check
}

// ask is what answers for the case.
func (c *Case) ask() func(*Case) Verdict {
	if c.beside() {
		return c.rule.Beside
	}
	return c.rule.Judge
}

// beside reports whether the case is about what belongs to no loader.
func (c *Case) beside() bool { return c.Loaders == nil && !c.rule.Run }

// fill in what all findings of a rule have in common.
func (c *Case) fill(f *finding.Finding) {
	l := c.loader()
	if f.Loader.At != "" { // another place of the same loader
		l.At = f.Loader.At
	}
	f.Rule, f.DP, f.Loader = c.rule.ID, c.rule.DP, l
	if f.Verify == "" {
		f.Verify = c.Verify(c.rule.ID)
	}
	if f.Proof == "" {
		f.Proof = "hook"
	}
}

// excuse lowers a finding that a known kind of program without a bug would cause
// as well, and says which. What is proven has no excuse left.
func (c *Case) excuse(f *finding.Finding) {
	if c.beside() {
		f.Certainty = min(f.Certainty, finding.Likely)
		return
	}
	var open []string
	for _, x := range c.rule.Excuses {
		excluded := false
		if failed := collect.Guard("excuse of "+c.rule.ID, func() { excluded = x.Excluded(c, f) }); failed != nil || !excluded {
			open = append(open, x.Text)
		}
	}
	if len(open) > 0 {
		f.Certainty = min(f.Certainty, finding.Likely)
	}
	if len(c.rule.Excuses) > 0 && f.NotABugIf == "" { // a note of another kind says its own
		f.NotABugIf = strings.Join(open, " Or ")
	}
	if f.Certainty == finding.Proven {
		f.NotABugIf = ""
	}
}
