// Package analyze judges a trace: it makes the timeline, lets the rules look at
// it, and counts what was lost. It knows nothing of how traces are made.
package analyze

import (
	"fmt"
	"slices"

	"github.com/dptrace/dptrace/analyze/accept"
	"github.com/dptrace/dptrace/analyze/account"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	"github.com/dptrace/dptrace/analyze/detect/copypageable"
	"github.com/dptrace/dptrace/analyze/detect/copypinnedsync"
	"github.com/dptrace/dptrace/analyze/detect/copyunpinnedbycast"
	"github.com/dptrace/dptrace/analyze/detect/cpuoversubscribed"
	"github.com/dptrace/dptrace/analyze/detect/datasetcopiedperworker"
	"github.com/dptrace/dptrace/analyze/detect/epochstartcost"
	"github.com/dptrace/dptrace/analyze/detect/fdexhausted"
	"github.com/dptrace/dptrace/analyze/detect/idleworkers"
	"github.com/dptrace/dptrace/analyze/detect/lastbatchsize1"
	"github.com/dptrace/dptrace/analyze/detect/loaderbottleneck"
	"github.com/dptrace/dptrace/analyze/detect/memorygrowthcache"
	"github.com/dptrace/dptrace/analyze/detect/memorygrowthcow"
	"github.com/dptrace/dptrace/analyze/detect/notshuffled"
	"github.com/dptrace/dptrace/analyze/detect/orderrepeats"
	"github.com/dptrace/dptrace/analyze/detect/pinmemorynoop"
	"github.com/dptrace/dptrace/analyze/detect/ranksdisagree"
	"github.com/dptrace/dptrace/analyze/detect/rngduplicateepochs"
	"github.com/dptrace/dptrace/analyze/detect/rngduplicateranks"
	"github.com/dptrace/dptrace/analyze/detect/rngduplicateworkers"
	"github.com/dptrace/dptrace/analyze/detect/samplernosetepoch"
	"github.com/dptrace/dptrace/analyze/detect/samplesdropped"
	"github.com/dptrace/dptrace/analyze/detect/shardduplicateranks"
	"github.com/dptrace/dptrace/analyze/detect/shardduplicateworkers"
	"github.com/dptrace/dptrace/analyze/detect/sharedfileposition"
	"github.com/dptrace/dptrace/analyze/detect/shmexhausted"
	"github.com/dptrace/dptrace/analyze/detect/splitleak"
	"github.com/dptrace/dptrace/analyze/detect/staleworkerstate"
	"github.com/dptrace/dptrace/analyze/detect/swallowedcrash"
	"github.com/dptrace/dptrace/analyze/detect/unevenshards"
	"github.com/dptrace/dptrace/analyze/detect/workerkilled"
	"github.com/dptrace/dptrace/analyze/detect/wronglen"
	"github.com/dptrace/dptrace/analyze/evidence/fetches"
	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/evidence/offcpu"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

// Rules is all rules, in the order of the report. A rule is a folder of
// detect/ and a line here.
var Rules = []detect.Rule{
	rngduplicateworkers.Rule,
	rngduplicateepochs.Rule,
	rngduplicateranks.Rule,
	shardduplicateworkers.Rule,
	shardduplicateranks.Rule,
	samplernosetepoch.Rule,
	orderrepeats.Rule,
	notshuffled.Rule,
	unevenshards.Rule,
	splitleak.Rule,
	wronglen.Rule,
	lastbatchsize1.Rule,
	ranksdisagree.Rule,
	staleworkerstate.Rule,
	idleworkers.Rule,
	samplesdropped.Rule,
	memorygrowthcow.Rule,
	memorygrowthcache.Rule,
	datasetcopiedperworker.Rule,
	loaderbottleneck.Rule,
	epochstartcost.Rule,
	pinmemorynoop.Rule,
	copyunpinnedbycast.Rule,
	copypageable.Rule,
	copypinnedsync.Rule,
	cpuoversubscribed.Rule,
	shmexhausted.Rule,
	sharedfileposition.Rule,
	fdexhausted.Rule,
	workerkilled.Rule,
	swallowedcrash.Rule,
}

// Result is what was found out about a run: all that a report prints and an
// exporter writes.
type Result struct {
	*account.Account

	Run      *traces.Run
	Timeline *timeline.Timeline
	Evidence *collect.Evidence // of the sources of the rules, and of those that were asked for
	Fetches  fetches.ByLoader  // where their time went
	Blocked  offcpu.ByLoader   // and what those of workers were blocked in; nil: not known
	Findings []finding.Finding // the surest first
	Checks   []finding.Check   // by rule and loader
	Loops    *looptime.Loops   // where the loops' time went; nil: it could not be told

	Unused []accept.Entry // of dptrace.toml: they accept nothing that was found
}

// Run reads a trace once and lets the rules judge it. Of further sources, those
// of exporters, the evidence is in the result. What is damaged is left out and
// noted in run.Problems; an error means that reading could not go on, or that
// nothing can be told at all.
func Run(run *traces.Run, rules []detect.Rule, further ...collect.Any) (*Result, error) {
	evidence, err := collect.Read(run, append(Sources(rules), further...)...)
	if err != nil {
		return nil, fmt.Errorf("analyze: %w", err)
	}
	return Judge(evidence, rules)
}

// Judge lets rules judge the evidence of their sources.
func Judge(evidence *collect.Evidence, rules []detect.Rule) (*Result, error) {
	r := &Result{Run: evidence.Run, Evidence: evidence}
	evidence.Make()
	if failed := collect.Guard("the report", func() {
		r.Timeline, r.Account = collect.Of(evidence, timeline.Source), collect.Of(evidence, account.Source)
		r.Fetches = collect.Of(evidence, fetches.Source)
		r.Findings, r.Checks = detect.Judge(rules, r.Timeline, evidence)
	}); failed != nil {
		return nil, fmt.Errorf("analyze: %w", failed)
	}
	_ = collect.Guard("where the time went", func() { r.Loops = collect.Of(evidence, looptime.Source) })
	_ = collect.Guard("what was blocked", func() { r.Blocked = collect.Of(evidence, offcpu.Source) })
	slices.SortStableFunc(r.Findings, func(a, b finding.Finding) int { return int(b.Certainty - a.Certainty) })
	return r, nil
}

// Sources of some rules and of every result.
func Sources(rules []detect.Rule) []collect.Any {
	sources := []collect.Any{account.Source, fetches.Source, offcpu.Source, looptime.Source}
	for _, r := range rules {
		sources = append(sources, r.Sources...)
	}
	return sources
}
