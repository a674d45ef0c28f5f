package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/docs"
)

func newExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [RULE]",
		Short: "Print what a rule finds, how it is proved and how to fix it",
		Long: `Prints the page of a rule: what it is, why it costs, how it is proved, a program
that has it, the same program repaired, and what is not a bug. DPn, the number
of a failure mode, stands for its rules. Without argument the rules are listed.`,
		Example: `  dptrace explain
  dptrace explain rng-duplicate-workers`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return topics(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listRules(cmd.OutOrStdout())
			}
			return explain(cmd.OutOrStdout(), args[0])
		},
	}
}

func listRules(w io.Writer) error {
	for _, r := range analyze.Rules {
		if _, err := fmt.Fprintf(w, "%-24s %-5s %s\n", r.ID, r.DP, r.Title); err != nil {
			return err
		}
	}
	return nil
}

// explain prints the page of a rule, or those of all rules with one DP number.
func explain(w io.Writer, topic string) error {
	printed := 0
	for _, r := range analyze.Rules {
		if !strings.EqualFold(r.ID, topic) && (r.DP == "" || !strings.EqualFold(r.DP, topic)) {
			continue
		}
		page, ok := docs.Rule(r.ID)
		if !ok {
			return fmt.Errorf("explain: this build has no page for %s", r.ID)
		}
		if printed > 0 {
			page = "\n" + page
		}
		if _, err := io.WriteString(w, page+excuses(r.Excuses)); err != nil {
			return err
		}
		printed++
	}
	if printed > 0 {
		return nil
	}
	if near := nearest(topic, topics()); len(near) > 0 {
		return fmt.Errorf("explain: no rule %q; did you mean %s?", topic, strings.Join(near, " or "))
	}
	return fmt.Errorf("explain: no rule %q; `dptrace explain` lists them", topic)
}

// excuses is the end of a rule's page: what must be ruled out before it says proven.
func excuses(all []detect.Excuse) string {
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n## What a proof rules out\n\n" +
		"A finding is proven where something that was observed rules out all of these. While one is open\n" +
		"it is no more than `likely`, and the report says: no bug if\n\n")
	for _, x := range all {
		b.WriteString("* " + x.Text + "\n")
	}
	return b.String()
}

// topics are what explain knows: ids and DP numbers, each once.
func topics() []string {
	var all []string
	seen := map[string]bool{"": true}
	for _, r := range analyze.Rules {
		for _, t := range []string{r.ID, r.DP} {
			if !seen[t] {
				seen[t] = true
				all = append(all, t)
			}
		}
	}
	return all
}

// nearest are the topics that contain what was typed, or else those that differ
// from it in at most a third of their letters.
func nearest(typed string, topics []string) []string {
	typed = strings.ToLower(typed)
	var contain, near []string
	for _, t := range topics {
		switch lower := strings.ToLower(t); {
		case len(typed) > 1 && strings.Contains(lower, typed):
			contain = append(contain, t)
		case 3*edits(typed, lower) <= len(lower):
			near = append(near, t)
		}
	}
	if contain != nil {
		return contain
	}
	return near
}

// edits is how many letters must be inserted, removed or replaced to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
