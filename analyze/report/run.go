package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/account"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/analyze/words"
)

// run says what was recorded, and with what.
func (p *page) run(r *analyze.Result) {
	if len(r.Findings) > 0 {
		p.line("")
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
	if n := ranks(r); n > 1 {
		facts = append(facts, words.Count(n, "rank"))
	}
	if n := r.Processes.Seen; n > 1 {
		facts = append(facts, processesSeen(n, r.Processes.KernelOnly))
	}
	if r.Tier.Name != "" {
		tier := r.Tier.Name + " tier"
		if r.Tier.Refused != "" && !p.Verbose {
			tier += " (`dptrace doctor` says why not kernel)"
		}
		facts = append(facts, tier)
	}
	facts = append(facts, where(r))
	p.entry(0, summaryColumn, grey, "run", strings.Join(facts, ", "))
	if r.Tier.Refused != "" && p.Verbose {
		p.entry(0, summaryColumn, grey, "", "not the kernel tier: "+r.Tier.Refused)
	}
	p.list(grey, "loaders", loaders(r.Timeline))
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
	return fmt.Sprintf("%s (%d ended so soon that only the kernel tier saw them)", words.Count(n, "process"), kernelOnly)
}

// loaders has a line for each loader, ranks together.
func loaders(t *timeline.Timeline) []string {
	var lines []string
	for _, ranks := range t.ByLoader() {
		l := ranks[0]
		lines = append(lines, fmt.Sprintf("#%d %s (%s): %s, %s", l.ID, l.At(), ranks.Role(), workersOf(l), words.Count(len(l.Passes), "pass")))
	}
	return few(lines, 3)
}

// workersOf says how many workers a loader has; one that is made anew may have others.
func workersOf(l *timeline.Loader) string {
	var numbers []int
	for i := range l.Objects {
		numbers = append(numbers, int(max(l.Objects[i].NumWorkers, 0)))
	}
	distinct := words.Distinct(numbers)
	if len(distinct) == 1 {
		return words.Count(numbers[0], "worker")
	}
	return words.List(distinct) + " workers"
}

// few keeps no more than so many lines, the last of which counts the rest.
func few(lines []string, n int) []string {
	if len(lines) > n {
		lines = append(lines[:n-1:n-1], fmt.Sprintf("and %d more (--format json has all)", len(lines)-n+1))
	}
	return lines
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
	text := fmt.Sprintf("%.1f %% of the training loop's time (%.3g of %.3g s)", 100*share, waited.Seconds(), total.Seconds())
	if p.Verbose {
		text += ", without the first batch of each pass"
	}
	if share < bottleneck {
		p.entry(0, summaryColumn, green, "waiting for data", text+": not the bottleneck")
		return
	}
	p.entry(0, summaryColumn, bold, "waiting for data", text)
}

// unwatched says which Pythons ran without the hook, and why there may be
// nothing to judge.
func (p *page) unwatched(r *analyze.Result) {
	if len(r.Timeline.Loaders) == 0 && !r.Processes.Unwatched() {
		text := "no DataLoader was iterated"
		if distinct(r, torch) == "" {
			text = "no process used torch.utils.data"
		}
		p.entry(0, summaryColumn, yellow, "nothing to check", text)
	}
	p.list(yellow, "not hooked", notHooked(r.Processes.Unhooked))
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
			lines = append(lines, fmt.Sprintf("and %d more (--format json has all)", len(all)-shown))
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
	lines := append(cutOrDamaged(r), lost(r)...)
	if len(lines) == 0 {
		p.entry(0, summaryColumn, green, "records lost", "none")
		return
	}
	p.list(red, "records lost", few(lines, most))
}

func (p *page) overhead(r *analyze.Result) {
	o := r.Overhead
	text := o.Method
	if o.Percent >= 0 {
		text = fmt.Sprintf("%.1f %% of the program's CPU time%s%s", o.Percent, split(o), once(o))
		if p.Verbose {
			text += ": " + o.Method
		}
	}
	p.entry(0, summaryColumn, grey, "overhead", text)
}

// once is what does not grow with the run; "" where it does not count.
func once(o account.Overhead) string {
	const shown = 0.05 // as much as a digit can show
	if o.Start < shown {
		return ""
	}
	return fmt.Sprintf(", %.1f of it once, at the start", o.Start)
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
