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
		Use:   "explain [RULE | ERROR TEXT | -]",
		Short: "Print what a rule finds or what an error text means, and how to fix it",
		Long: `Prints the page of a rule: what it is, why it costs, how it is proved, a program
that has it, the same program repaired, and what is not a bug. DPn, the number
of a failure mode, stands for its rules. Without argument all pages are listed.

Of an error text, pasted in quotes, or of a whole log on stdin (-): what it can
be, what dptrace records to tell, what fixes it, and what does not although it is
often advised. Nothing has to be recorded for that. Where a log holds several
known texts, the one that says most is explained and the others are named.

Exit code: 0 a page was printed; 2 there is none.`,
		Example: `  dptrace explain
  dptrace explain rng-duplicate-workers
  dptrace explain "RuntimeError: received 0 items of ancdata"
  dptrace explain - < slurm-4711.out`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return topics(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return listPages(cmd.OutOrStdout())
			case len(args) == 1 && args[0] == "-":
				return explainLog(cmd.OutOrStdout(), cmd.InOrStdin())
			}
			return explain(cmd.OutOrStdout(), strings.Join(args, " ")) // an error text without quotes, too
		},
	}
}

func listPages(w io.Writer) error {
	var b strings.Builder
	for _, r := range analyze.Rules {
		fmt.Fprintf(&b, "%-24s %-5s %s\n", r.ID, r.DP, r.Title)
	}
	b.WriteString("\nError texts:\n\n")
	for _, e := range docs.Errors {
		fmt.Fprintf(&b, "%-30s %s\n", e.Name, e.Summary)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// explain prints the page of a rule, those of all rules with one DP number, or what
// an error text means.
func explain(w io.Writer, topic string) error {
	if printed, err := explainRules(w, topic); printed || err != nil {
		return err
	}
	for _, e := range docs.Errors {
		if strings.EqualFold(e.Name, topic) {
			_, err := io.WriteString(w, e.Text)
			return err
		}
	}
	found, err := docs.FindErrors(strings.NewReader(topic))
	if err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if len(found) > 0 {
		return explainError(w, found, false)
	}
	if strings.ContainsAny(topic, " \n:") {
		return fmt.Errorf("explain: no known error text in what was given\n%s", howToRecord)
	}
	if near := nearest(topic, topics()); len(near) > 0 {
		return fmt.Errorf("explain: no rule %q; did you mean %s?", topic, strings.Join(near, " or "))
	}
	return fmt.Errorf("explain: no rule %q and no known error text; `dptrace explain` lists them", topic)
}

// explainRules prints the pages of the rules that a topic names, if there are any.
func explainRules(w io.Writer, topic string) (printed bool, err error) {
	for _, r := range analyze.Rules {
		if !strings.EqualFold(r.ID, topic) && (r.DP == "" || !strings.EqualFold(r.DP, topic)) {
			continue
		}
		page, ok := docs.Rule(r.ID)
		if !ok {
			return false, fmt.Errorf("explain: this build has no page for %s", r.ID)
		}
		if printed {
			page = "\n" + page
		}
		if _, err := io.WriteString(w, page+excuses(r.Excuses)); err != nil {
			return true, err
		}
		printed = true
	}
	return printed, nil
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

// topics are what explain knows: ids and DP numbers, each once, and names of error
// pages.
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
	return append(all, docs.ErrorNames...)
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
