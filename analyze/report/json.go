package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"unicode"
	"unicode/utf16"

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
	Missing  []string          `json:"incomplete"` // what of the run was not seen, a line each; empty: all of it was
	Loaders  []loader          `json:"loaders"`
	Loops    []loopTime        `json:"loops"` // where their time went, one for each loader that gave more than one batch
	Findings []finding.Finding `json:"findings"`
	Checks   []finding.Check   `json:"checks"`
	Lost     []loss            `json:"lost"`
	Overhead overhead          `json:"overhead"`

	Processes processes  `json:"processes"`
	Unhooked  []unhooked `json:"unhooked"` // Pythons that were not watched from inside
}

type run struct {
	Command   []string `json:"command"`
	DurationS float64  `json:"duration_s"` // first to last record, to the millisecond
	Python    string   `json:"python"`     // versions, joined by commas
	Torch     string   `json:"torch"`
	Ranks     int      `json:"ranks"`

	Tier        string `json:"tier"`         // hook, kernel; of several parts joined by commas; "" not known
	TierRefused string `json:"tier_refused"` // why it is not kernel; "" it is, or was not tried
}

// loader is one on all its ranks, as findings and checks name it.
type loader struct {
	finding.Loader
	Workers int `json:"workers"`
	Passes  int `json:"passes"` // of its first rank
}

type loss struct {
	Source string `json:"source"`
	Table  string `json:"table"` // "" unknown
	Count  uint64 `json:"count"` // 0: an unknown number
	Reason string `json:"reason"`
}

type overhead struct {
	Percent *float64 `json:"percent"`                 // of the program's CPU time, to a hundredth; null: not known
	Start   *float64 `json:"start_percent,omitempty"` // of percent: spent once, to begin; left out: not told apart
	Method  string   `json:"method"`
	Parts   []part   `json:"parts"` // that together are all of it
}

type part struct {
	Name    string   `json:"name"`              // hook, recorder (without its probes), PROBE (in the recorder), PROBE eBPF (in the kernel)
	Tier    string   `json:"tier"`              // hook, kernel: without it this would not have been spent
	CPUS    float64  `json:"cpu_s"`             // to the microsecond
	StartS  float64  `json:"start_s,omitempty"` // of cpu_s: spent once, to begin
	Percent *float64 `json:"percent"`           // as above
}

type processes struct {
	Seen       int            `json:"seen"`
	Kinds      map[string]int `json:"kinds"`       // target, python, worker, other: how many of each
	KernelOnly int            `json:"kernel_only"` // seen by the kernel tier alone
}

type unhooked struct {
	Pid     int32  `json:"pid"`
	Cmdline string `json:"cmdline"`
	Exe     string `json:"exe"`
	Reason  string `json:"reason"`
	Torch   bool   `json:"torch"` // it is known to have loaded torch
	Fix     string `json:"fix"`   // how to record it: a command, or what to change; "": not known
}

// JSON writes the report for programs: one object, two blanks of indentation.
// Control characters beyond ASCII are escaped too: it may be printed on a
// terminal.
func JSON(w io.Writer, r *analyze.Result, _ Options) error {
	d := document{
		Schema: schema,
		Trace:  strings.Join(folders(r), " "),
		Run: run{
			Command:   list(r.Timeline.Command),
			DurationS: math.Round(duration(r).Seconds()*1e3) / 1e3,
			Python:    distinct(r, python),
			Torch:     distinct(r, torch),
			Ranks:     ranks(r),

			Tier:        r.Tier.Name,
			TierRefused: r.Tier.Refused,
		},
		Missing:  list(Incomplete(r)),
		Loaders:  []loader{},
		Loops:    loops(r),
		Findings: list(r.Findings),
		Checks:   list(r.Checks),
		Lost:     []loss{},
		Overhead: overhead{Percent: hundredth(r.Overhead.Percent), Method: r.Overhead.Method, Parts: []part{}},

		Processes: processes{Seen: r.Processes.Seen, Kinds: map[string]int{}, KernelOnly: r.Processes.KernelOnly},
		Unhooked:  []unhooked{},
	}
	for _, ranks := range r.Timeline.ByLoader() {
		l := ranks[0]
		at := finding.Loader{ID: l.ID, At: l.At(), Role: string(ranks.Role())}
		d.Loaders = append(d.Loaders, loader{at, int(max(l.First().NumWorkers, 0)), len(l.Passes)})
	}
	for _, l := range r.Lost {
		d.Lost = append(d.Lost, loss(l))
	}
	if r.Overhead.Start > 0 {
		d.Overhead.Start = hundredth(r.Overhead.Start)
	}
	for _, c := range r.Overhead.Parts {
		d.Overhead.Parts = append(d.Overhead.Parts, part{c.Name, c.Tier, seconds(c.NS), seconds(c.StartNS), hundredth(c.Percent)})
	}
	maps.Copy(d.Processes.Kinds, r.Processes.Kinds)
	for _, u := range r.Processes.Unhooked {
		d.Unhooked = append(d.Unhooked, unhooked(u))
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // fixes are code
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return err
	}
	_, err := w.Write(escaped(b.Bytes()))
	return err
}

// escaped writes characters that a terminal could take for commands, or that
// turn the direction of writing, as \uXXXX. In JSON they can be in strings only.
func escaped(document []byte) []byte {
	special := func(r rune) bool { return r == 0x7f || r > 0x7f && !unicode.IsGraphic(r) }
	if bytes.IndexFunc(document, special) < 0 {
		return document
	}
	var b bytes.Buffer
	for _, r := range string(document) {
		if !special(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.Bytes()
}

// seconds is a time to the microsecond.
func seconds(ns int64) float64 { return math.Round(float64(ns)/1e3) / 1e6 }

// hundredth rounds a percentage; nil if it is not known.
func hundredth(percent float64) *float64 {
	if percent < 0 {
		return nil
	}
	rounded := math.Round(percent*100) / 100
	return &rounded
}

// list is never null in JSON.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
