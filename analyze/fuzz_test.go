package analyze_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"

	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/google/pprof/profile"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/evidence/draws"
	"github.com/dptrace/dptrace/analyze/export"
	"github.com/dptrace/dptrace/analyze/report"
	"github.com/dptrace/dptrace/traces"
)

// FuzzRows reads traces with some of their values replaced, rows left out,
// repeated, and of other runs: traces whose checksums are right and whose rows
// are not. No rule, no form of the report and no exporter may fail over it, run
// on without end, take memory beyond bound, or let a control character through.
func FuzzRows(f *testing.F) {
	all := fixtures(f)
	whole := draws.Source.New // whose budget is 15 seconds, and several times that in a binary that is instrumented
	draws.Source.New = func() collect.Collector[*draws.Streams] { return draws.New(100_000) }
	f.Cleanup(func() { draws.Source.New = whole })
	for i := range all {
		f.Add(uint(i), uint64(i), uint(3), uint(i%hows))
		f.Add(uint(i), uint64(1000+i), uint(60), uint(0))
		f.Add(uint(i), uint64(2000+i), uint(0), uint(steering))
	}
	for seed := range uint64(40) { // the last one is of many ranks
		f.Add(uint(len(all)-1), seed, uint(40*seed), uint(0))
	}
	f.Fuzz(func(t *testing.T, fixture uint, seed uint64, changes, how uint) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		result := mutated(t, all, fixture, seed, changes, how)
		written(t, result)
		sent(t, result)
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > mostTaken {
			t.Errorf("takes %d MB", took>>20)
		}
	})
}

// mostTaken is how much memory one trace of these may take in all, freed or not.
const mostTaken = 128 << 20

// TestMutatedRows: changed rows are not all refused. There is something left to
// find in them.
func TestMutatedRows(t *testing.T) {
	all, found := fixtures(t), 0
	for seed := range uint64(20) {
		found += len(mutated(t, all, uint(len(all)-1), seed, uint(40*seed), 0).Findings)
	}
	if found < 20 {
		t.Errorf("%d findings", found)
	}
}

// mutated is what is said of a fixture after so many changes.
func mutated(t *testing.T, all []fixture, number uint, seed uint64, changes, how uint) *analyze.Result {
	from := all[number%uint(len(all))]
	m := &mutator{Rand: rand.New(rand.NewPCG(seed, 1)), left: int(changes % 2000), how: how % hows, all: all}
	m.of = max(1, from.rows/max(1, m.left))
	reading := collect.NewReading(everything()...)
	run, shares := m.run(from, reading.Tables())
	read := func(r *collect.Reading, shares []share) {
		for _, table := range r.Tables() {
			for _, s := range shares {
				for _, rows := range s.tables[table] {
					r.Add(traces.Batch{Part: s.part, Table: table, Rows: rows})
				}
			}
		}
	}
	if how&oneByOne == 0 {
		read(reading, shares)
	} else {
		for _, s := range shares {
			other := collect.NewReading(everything()...)
			read(other, []share{s})
			reading.Merge(other)
		}
	}
	result, err := analyze.Judge(reading.Evidence(run), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range result.Checks {
		if strings.Contains(c.Reason, "could not judge this") {
			t.Errorf("%s: %s", c.Rule, c.Reason)
		}
	}
	return result
}

// written writes all forms of the report, and what exporters make of a result.
func written(t *testing.T, result *analyze.Result) {
	for _, o := range []report.Options{{Unicode: true}, {Unicode: true, Verbose: true}, {Color: true, Width: 40}} {
		for _, form := range report.Formats {
			var text bytes.Buffer
			if err := form.Write(&text, result, o); err != nil {
				t.Errorf("%s: %v", form.Name, err)
			}
			plain := colours.ReplaceAll(text.Bytes(), nil)
			if i := bytes.IndexFunc(plain, steers); i >= 0 {
				t.Errorf("%s lets %q through", form.Name, plain[max(0, i-20):i+4])
			}
		}
	}
	for _, e := range export.List {
		var file bytes.Buffer
		if failed := collect.Guard(e.Name, func() {
			if e.Write(&file, result) != nil { // an error is an answer
				file.Reset()
			}
		}); failed != nil {
			t.Error(failed)
		}
		if e.Name == "pprof" && file.Len() > 0 {
			profiled(t, &file)
		}
	}
}

// sent makes what the senders would send.
func sent(t *testing.T, result *analyze.Result) {
	for _, s := range export.Senders {
		if failed := collect.Guard(s.Name, func() { _ = s.Discard(result) }); failed != nil { // an error is an answer
			t.Error(failed)
		}
	}
}

// profiled: the strings of a profile are fit for the terminal that pprof writes them to.
func profiled(t *testing.T, file io.Reader) {
	p, err := profile.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	texts := append([]string{p.DefaultSampleType}, p.Comments...)
	for _, f := range p.Function {
		texts = append(texts, f.Name, f.Filename, f.SystemName)
	}
	for _, s := range p.Sample {
		for key, values := range s.Label {
			texts = append(append(texts, key), values...)
		}
		for key, units := range s.NumUnit {
			texts = append(append(texts, key), units...)
		}
	}
	for _, text := range texts {
		if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			t.Errorf("pprof lets %q through", text)
		}
	}
}

// colours is what we write ourselves.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// steers reports whether a character could be a command to a terminal.
func steers(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }

// everything is the sources of all rules and exporters.
func everything() []collect.Any {
	sources := analyze.Sources(analyze.Rules)
	for _, e := range export.List {
		sources = append(sources, e.Sources...)
	}
	for _, s := range export.Senders {
		sources = append(sources, s.Sources...)
	}
	return sources
}

// fixture is the rows of one trace.
type fixture struct {
	shares []share
	rows   int
}

// fixtures is the traces of the rules, some played programs, and a played run of
// three ranks.
func fixtures(t testing.TB) (all []fixture) {
	files, err := filepath.Glob(folders + "/*" + recorded)
	if err != nil || len(files) < 20 {
		t.Fatalf("%d fixtures: %v", len(files), err)
	}
	for _, file := range files {
		all = append(all, fixtureOf(t, opened(t, file)))
	}
	for i := 0; i < len(programs); i += 5 {
		run := NewRun(t)
		programs[i].play(run)
		all = append(all, fixtureOf(t, run.Open(t)))
	}
	run := NewRun(t)
	sampled(run)
	return append(all, fixtureOf(t, run.Open(t)))
}

func fixtureOf(t testing.TB, run *traces.Run) (f fixture) {
	shares := map[*traces.Part]share{}
	for _, p := range run.Parts {
		shares[p] = share{p, map[string][]any{}}
		f.shares = append(f.shares, shares[p])
	}
	if err := run.Each(nil, func(b traces.Batch) error {
		tables := shares[b.Part].tables
		tables[b.Table] = append(tables[b.Table], b.Rows)
		f.rows += reflect.ValueOf(b.Rows).Len()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return f
}

// sampled is three ranks that train and evaluate, over parts of one dataset, a
// distributed one and a stream.
func sampled(r *Run) {
	var ranks []*Process
	for rank := range 3 {
		ranks = append(ranks, r.Process(rank, 3))
	}
	list := func(n int, dataset int64) (all []Sample) {
		for i := range int64(n) {
			s := Sample{Index: i, Content: fmt.Sprint("row ", i), Text: fmt.Sprint("name ", i)}
			if dataset > 0 {
				s.ID = dataset<<40 | i
			}
			all = append(all, s)
		}
		return all
	}
	for rank, p := range ranks {
		p.Group("ddp")
		subset := Serve{Line: 90, Dataset: "torch.utils.data.dataset.Subset", Length: -1}
		train := p.Serve(subset)
		subset.Line, subset.Samplers = 91, SequentialSampler
		eval := p.Serve(subset)
		dealt := p.Serve(Serve{Line: 92, DatasetID: 3, Length: 60, Samplers: DistributedSampler, Replicas: 3, Rank: int64(rank), Total: 60})
		stream := p.Serve(Serve{Line: 93, Iterable: true, Length: -1})
		for range 2 {
			train.Pass(Train, list(40, 1))
			eval.Pass(Eval, list(30, 1)[10:])
			dealt.Pass(Train, list(60, 0)[20*rank:20*rank+20])
			stream.Stream(Train, list(24, 0), list(24, 0))
		}
		r.Add(p.Proc, traces.Attribute{When: "rank", Worker: -1, Dataset: 3, Path: "dataset.files", Class: "builtins.list",
			Items: 60, Whole: true, Ordered: []byte{byte(rank)}, Unordered: []byte("all")})
	}
	for _, p := range ranks {
		r.Add(p.Proc, traces.Memory{Rss: 1})
	}
	r.Seal()
}
