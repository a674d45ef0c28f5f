package report

import (
	"math"
	"time"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/finding"
)

// loopTime is where the time of the loop over one loader went, on all its ranks
// together: from the first delivery of each pass to its last. Of the time in next()
// each stage has the part that it was the reason for; what a stage took in all
// workers together is its work.
type loopTime struct {
	finding.Loader
	Passes     int         `json:"passes"`     // of all ranks, those with deliveries
	Batches    int         `json:"batches"`    // but the first of each pass
	TotalS     float64     `json:"total_s"`    // to the microsecond, as all seconds
	WaitedS    float64     `json:"waited_s"`   // of it, in next()
	WaitShare  float64     `json:"wait_share"` // to the tenth of a thousandth
	StepMS     float64     `json:"step_ms"`    // of a batch, mean
	Stages     []stage     `json:"stages"`     // the one that was waited for longest first
	Starts     []passStart `json:"starts"`     // at most 100
	Slowest    []slowBatch `json:"slowest"`    // that took at least twice the mean, fetch and collate together
	Indices    []int64     `json:"slow_indices"`
	Files      []string    `json:"slow_files"` // opened for the slow batches of several passes (kernel tier)
	Stragglers []straggler `json:"stragglers"`
	Free       forecast    `json:"free"`                  // if data were free
	Forecasts  []forecast  `json:"forecasts"`             // by replaying the recorded times through torch's queues
	NoForecast string      `json:"no_forecast,omitempty"` // why there is none of some changes, or of all
	Processors processors  `json:"processors"`
	H2D        *h2d        `json:"h2d,omitempty"` // of the step; left out: no CUDA was seen, nor missed
}

type stage struct {
	Stage   string  `json:"stage"`
	Of      string  `json:"of,omitempty"` // the stage that it is a part of
	WaitedS float64 `json:"waited_s"`
	WorkS   float64 `json:"work_s"`
	BatchMS float64 `json:"batch_ms"`            // work of one batch, mean
	Looked  int     `json:"looked_at,omitempty"` // of a part of the fetch: in how many fetches its share of them was seen
}

type passStart struct {
	Rank        int     `json:"rank"` // -1: none
	Pass        int     `json:"pass"`
	FirstBatchS float64 `json:"first_batch_s"` // from iter() to the first delivery
	WorkersS    float64 `json:"workers_s"`     // of it, until a worker began to fetch
	FetchS      float64 `json:"fetch_s"`       // of the first batch, with its collate
}

type slowBatch struct {
	Rank    int     `json:"rank"`
	Pass    int     `json:"pass"`
	Batch   uint32  `json:"batch"`
	Worker  int     `json:"worker"` // -1: the main process
	MS      float64 `json:"ms"`
	Indices []int64 `json:"indices"` // at most 64; empty: not known
	// that its process opened meanwhile, for the first time (kernel tier); at most 64
	Files []string `json:"files"`
}

type straggler struct {
	Rank     int     `json:"rank"`
	Worker   int     `json:"worker"`    // -1: the whole rank
	BatchMS  float64 `json:"batch_ms"`  // its mean
	OthersMS float64 `json:"others_ms"` // the median of the others' means
}

type forecast struct {
	Workers   int     `json:"workers,omitempty"` // 0: as it is
	Prefetch  int     `json:"prefetch_factor,omitempty"`
	BatchMS   float64 `json:"batch_ms"` // time of the loop for a batch
	Gain      float64 `json:"gain"`     // how many times as fast
	Processor bool    `json:"limited_by_processors,omitempty"`
}

type processors struct {
	Count  float64  `json:"count"`           // that the run may use; 0: not known
	Group  string   `json:"group,omitempty"` // the control group whose quota that is
	Run    float64  `json:"run"`             // that the run used, on average
	Others *float64 `json:"others"`          // that other programs used; null: not known
}

const mostStarts = 100

// loops is the loops of all loaders that gave more than one batch.
func loops(r *analyze.Result) []loopTime {
	out := []loopTime{}
	if r.Loops == nil {
		return out
	}
	for _, ranks := range r.Timeline.ByLoader() {
		l := r.Loops.Of(ranks)
		if l == nil || l.Delivered == 0 {
			continue
		}
		at := finding.Loader{ID: ranks.ID(), At: ranks[0].At(), Role: string(ranks.Role())}
		one := loopTime{Loader: at, Passes: l.Passes, Batches: l.Delivered, TotalS: seconds(int64(l.Total)), WaitedS: seconds(int64(l.Waited)),
			WaitShare: math.Round(l.Share()*1e4) / 1e4, StepMS: ms(l.Step() / time.Duration(l.Delivered)),
			Stages: []stage{}, Starts: []passStart{}, Slowest: []slowBatch{}, Indices: []int64{}, Files: []string{},
			Stragglers: []straggler{}, Forecasts: []forecast{}}
		one.ofRanks(l)
		one.H2D = h2dOf(copiesOf(r, ranks))
		for _, s := range l.Stages {
			one.Stages = append(one.Stages, stage{s.Name, s.Of, seconds(int64(s.Waited)), seconds(int64(s.Work)), ms(s.Mean()), 0})
			if s.Name == looptime.Fetch {
				for _, p := range parts(r.Fetches.Of(ranks...), r.Blocked.Of(ranks...), s) {
					one.Stages = append(one.Stages, stage{p.Name, p.Of, seconds(int64(p.Waited)), seconds(int64(p.Work)), ms(p.Mean()), p.looked})
				}
			}
		}
		for _, s := range l.Stragglers() {
			one.Stragglers = append(one.Stragglers, straggler{s.Rank, s.Worker, ms(s.Mean), ms(s.Others)})
		}
		one.Free = foreseen(l.Free())
		for _, c := range l.Changes() {
			f, why := l.Predict(c)
			if why != "" {
				one.NoForecast = why
				continue
			}
			one.Forecasts = append(one.Forecasts, foreseen(f))
		}
		out = append(out, one)
	}
	return out
}

// ofRanks adds what is told rank by rank.
func (o *loopTime) ofRanks(l *looptime.Loop) {
	for _, r := range l.Ranks {
		rank := r.Loader.Rank()
		for _, x := range r.Passes {
			if len(o.Starts) < mostStarts {
				s := x.Start
				o.Starts = append(o.Starts, passStart{rank, x.Number, seconds(int64(s.All)), seconds(int64(s.Workers)), seconds(int64(s.Fetch))})
			}
		}
		for _, s := range r.Slow {
			o.Slowest = append(o.Slowest, slowBatch{rank, s.Pass, s.Batch, s.Worker, ms(time.Duration(s.NS)), list(s.Indices), list(s.Files)})
		}
		o.Indices = append(o.Indices, r.Repeat...)
		o.Files = append(o.Files, r.Files...)
		o.Processors = processors{Count: r.Processors.Count, Group: r.Processors.Group, Run: math.Round(r.Processors.Run*100) / 100}
		if others := math.Round(r.Processors.Others*100) / 100; others >= 0 {
			o.Processors.Others = &others
		}
	}
}

func foreseen(f looptime.Forecast) forecast {
	return forecast{f.Workers, f.Prefetch, ms(f.Batch), math.Round(f.Gain()*1e3) / 1e3, f.Limited}
}

// ms is a time in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return math.Round(float64(d)/1e3) / 1e3 }
