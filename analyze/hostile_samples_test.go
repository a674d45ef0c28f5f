package analyze_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/detect"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/traces"
)

// ofSamples is the rules that judge who got a sample.
func ofSamples() []detect.Rule {
	ids := []string{"shard-duplicate-workers", "shard-duplicate-ranks", "split-leak", "ranks-disagree"}
	return slices.DeleteFunc(slices.Clone(analyze.Rules), func(r detect.Rule) bool { return !slices.Contains(ids, r.ID) })
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
		r.Add(p.Proc, traces.Attribute{When: "rank", Worker: -1, Dataset: 3, Path: "dataset.files", Class: "builtins.list", Items: 60, Whole: true,
			Ordered: []byte{byte(rank)}, Unordered: []byte("all")})
	}
	for _, p := range ranks {
		r.Add(p.Proc, traces.Memory{Rss: 1})
	}
	r.Seal()
}

// TestHostileSamples: numbers, lists and texts that no hook writes are judged, or
// are not, but never crash what judges them.
func TestHostileSamples(t *testing.T) {
	run := NewRun(t)
	sampled(run)
	ours := regexp.MustCompile(`evidence/(samples|digests|bounded)|analyze/samplers|detect/(shard-?duplicate-?(workers|ranks)|split-?leak|ranks-?disagree)`)
	rules, found := ofSamples(), 0
	for seed := range uint64(150) {
		whole := run.Open(t)
		h := &spoiler{rand.New(rand.NewPCG(seed, 5)), []int{0, 2000, 200, 20}[seed%4]}
		reading := collect.NewReading(analyze.Sources(rules)...)
		if err := whole.Each(reading.Tables(), func(b traces.Batch) error {
			h.spoil(b.Rows)
			reading.Add(b)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		result, err := analyze.Judge(reading.Evidence(whole), rules)
		if err != nil {
			if ours.MatchString(err.Error()) {
				t.Errorf("seed %d: %v", seed, err)
			}
			continue
		}
		found += len(result.Findings)
		for _, c := range result.Checks {
			if strings.Contains(c.Reason, "could not judge") && ours.MatchString(c.Reason) {
				t.Errorf("seed %d: %s: %s", seed, c.Rule, c.Reason)
			}
		}
	}
	if found < 100 {
		t.Errorf("%d findings: the rules had nothing to look at", found)
	}
}

// spoiler changes one field of every so many.
type spoiler struct {
	*rand.Rand
	of int // 0: none
}

func (h *spoiler) spoil(rows any) {
	if h.of == 0 {
		return
	}
	list := reflect.ValueOf(rows)
	for i := range list.Len() {
		h.value(list.Index(i))
	}
}

func (h *spoiler) value(v reflect.Value) {
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "WorldSize" { // the timeline's groups are not tried here
				h.value(v.Field(i))
			}
		}
		return
	}
	if h.IntN(h.of) > 0 {
		return
	}
	number := []int64{0, 1, -1, math.MaxInt64, math.MinInt64, math.MaxInt32, math.MinInt32, 1<<40 - 1, 1 << 40, h.Int64N(100)}[h.IntN(10)]
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.String:
		v.SetString([]string{"", "ok", " > ", "(", ".", strings.Repeat("x > ", 100), "end", "begin", "ddp", "\xff"}[h.IntN(10)])
	case reflect.Slice:
		n := h.IntN(v.Len() + 1)
		v.Set(reflect.AppendSlice(v.Slice3(0, n, n), v.Slice(0, h.IntN(v.Len()+1))))
		if v.Len() > 0 && v.Index(0).Kind() == reflect.Int64 {
			v.Index(h.IntN(v.Len())).SetInt(number)
		}
	default:
		if v.CanInt() {
			v.SetInt(number)
		} else {
			v.SetUint(uint64(number))
		}
	}
}
