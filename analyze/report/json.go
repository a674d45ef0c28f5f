package report

import (
	"encoding/json"
	"io"
	"math"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/finding"
)

// schema names the form of the JSON report. Keys may be added to it, never
// renamed or given another meaning.
const schema = "dptrace.report/1"

type document struct {
	Schema   string            `json:"schema"`
	Trace    string            `json:"trace"` // folders, joined by blanks
	Run      run               `json:"run"`
	Findings []finding.Finding `json:"findings"`
	Checks   []finding.Check   `json:"checks"`
	Lost     []loss            `json:"lost"`
	Overhead overhead          `json:"overhead"`
}

type run struct {
	Command   []string `json:"command"`
	DurationS float64  `json:"duration_s"` // first to last record, to the millisecond
	Python    string   `json:"python"`     // versions, joined by commas
	Torch     string   `json:"torch"`
	Ranks     int      `json:"ranks"`
}

type loss struct {
	Source string `json:"source"`
	Table  string `json:"table"` // "" unknown
	Count  uint64 `json:"count"` // 0: an unknown number
	Reason string `json:"reason"`
}

type overhead struct {
	Percent *float64 `json:"percent"` // of the program's CPU time, to a hundredth; null: not known
	Method  string   `json:"method"`
}

// JSON writes the report for programs: one object, two blanks of indentation.
func JSON(w io.Writer, r *analyze.Result) error {
	d := document{
		Schema: schema,
		Trace:  trace(r),
		Run: run{
			Command:   list(r.Timeline.Command),
			DurationS: math.Round(duration(r).Seconds()*1e3) / 1e3,
			Python:    distinct(r, python),
			Torch:     distinct(r, torch),
			Ranks:     ranks(r),
		},
		Findings: list(r.Findings),
		Checks:   list(r.Checks),
		Lost:     []loss{},
		Overhead: overhead{Method: r.Overhead.Method},
	}
	for _, l := range r.Lost {
		d.Lost = append(d.Lost, loss(l))
	}
	if r.Overhead.Percent >= 0 {
		percent := math.Round(r.Overhead.Percent*100) / 100
		d.Overhead.Percent = &percent
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // fixes are code
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// list is never null in JSON.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
