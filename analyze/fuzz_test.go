package analyze_test

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/export"
	"github.com/dptrace/dptrace/analyze/report"
	"github.com/dptrace/dptrace/traces"
)

// FuzzRows reads recorded traces with some of their values replaced, rows left
// out and rows repeated: a trace whose checksums are right and whose rows are
// not. No rule, no form of the report and no exporter may fail over it, run on
// without end, or let a control character through.
func FuzzRows(f *testing.F) {
	fixtures := fixtureRows(f)
	for i := range fixtures {
		f.Add(uint(i), uint64(i), uint(3))
		f.Add(uint(i), uint64(1000+i), uint(60))
	}
	f.Fuzz(func(t *testing.T, fixture uint, seed uint64, changes uint) {
		run := &traces.Run{}
		reading := collect.NewReading(everything()...)
		m := &mutator{Rand: rand.New(rand.NewPCG(seed, 1)), left: int(changes % 200)}
		batches := fixtures[fixture%uint(len(fixtures))]
		m.every = max(1, rowsOf(batches)/max(1, m.left))
		for _, table := range reading.Tables() {
			for _, b := range batches {
				if b.Table == table {
					if len(run.Parts) == 0 || run.Parts[len(run.Parts)-1] != b.Part {
						run.Parts = append(run.Parts, b.Part)
					}
					reading.Add(traces.Batch{Part: b.Part, Table: table, Rows: m.mutate(b.Rows)})
				}
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
		for _, verbose := range []bool{false, true} {
			for _, form := range report.Formats {
				var text bytes.Buffer
				if err := form.Write(&text, result, report.Options{Unicode: true, Verbose: verbose}); err != nil {
					t.Errorf("%s: %v", form.Name, err)
				}
				if i := bytes.IndexFunc(text.Bytes(), steers); i >= 0 {
					t.Errorf("%s lets %q through", form.Name, text.Bytes()[max(0, i-20):i+4])
				}
			}
		}
		for _, e := range export.List {
			if failed := collect.Guard(e.Name, func() { _ = e.Write(io.Discard, result) }); failed != nil { // an error is an answer
				t.Error(failed)
			}
		}
	})
}

// steers reports whether a character could be a command to a terminal.
func steers(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }

// everything is the sources of all rules and exporters.
func everything() []collect.Any {
	sources := analyze.Sources(analyze.Rules)
	for _, e := range export.List {
		sources = append(sources, e.Sources...)
	}
	return sources
}

// fixtureRows is the rows of the rules' fixtures.
func fixtureRows(t testing.TB) (all [][]traces.Batch) {
	files, err := filepath.Glob(folders + "/*" + recorded)
	if err != nil || len(files) < 20 {
		t.Fatalf("%d fixtures: %v", len(files), err)
	}
	for _, file := range files {
		var batches []traces.Batch
		if err := opened(t, file).Each(nil, func(b traces.Batch) error { batches = append(batches, b); return nil }); err != nil {
			t.Fatal(err)
		}
		all = append(all, batches)
	}
	return all
}

func rowsOf(batches []traces.Batch) (n int) {
	for _, b := range batches {
		n += reflect.ValueOf(b.Rows).Len()
	}
	return n
}

// mutator changes about so many rows, one in every.
type mutator struct {
	*rand.Rand
	left, every int
}

// mutate copies rows, and changes some of them.
func (m *mutator) mutate(rows any) any {
	from := reflect.ValueOf(rows)
	to := reflect.MakeSlice(from.Type(), 0, from.Len()+4)
	for i := range from.Len() {
		row := reflect.New(from.Type().Elem()).Elem()
		row.Set(from.Index(i))
		if m.left > 0 && m.IntN(m.every) == 0 {
			m.left--
			switch m.IntN(6) {
			case 0:
				continue // lost
			case 1:
				to = reflect.Append(to, row) // twice
			default:
				m.field(row)
			}
		}
		to = reflect.Append(to, row)
	}
	return to.Interface()
}

// field of a row gets another value.
func (m *mutator) field(row reflect.Value) {
	i := m.IntN(row.NumField())
	switch v := row.Field(i); v.Kind() {
	case reflect.Struct: // Head; Seq is the reader's, and always right
		m.field(v.Addr().Elem())
	case reflect.String:
		v.SetString(hostileTexts[m.IntN(len(hostileTexts))])
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Float64:
		v.SetFloat([]float64{math.NaN(), math.Inf(1), -1, 0, 1e300}[m.IntN(5)])
	case reflect.Slice:
		m.slice(v)
	default:
		if row.Type().Field(i).Name != "Seq" {
			m.number(v)
		}
	}
}

var hostileTexts = []string{"", " ", "\x1b[2J\x9b\u202e", "\xff\xfe", "fork", "begin", "end", "stop", "ok", "0", "-1", "9223372036854775807", "train.py",
	"torch.utils.data.distributed.DistributedSampler", "torch.utils.data.sampler.RandomSampler", "mt19937", "pcg64", strings.Repeat("x > ", 300), "a\x00b", "[", "(", ".", ">"}

var hostileNumbers = []int64{0, 1, -1, 2, 3, 7, 64, 1 << 16, 1 << 31, 1 << 40, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}

func (m *mutator) number(v reflect.Value) {
	n := hostileNumbers[m.IntN(len(hostileNumbers))]
	if m.IntN(2) == 0 {
		n = int64(m.IntN(5))
	}
	if v.CanInt() {
		v.SetInt(reflect.ValueOf(n).Convert(v.Type()).Int())
	} else if v.CanUint() {
		v.SetUint(reflect.ValueOf(n).Convert(v.Type()).Uint())
	}
}

// slice gets another length, or another element.
func (m *mutator) slice(v reflect.Value) {
	clone := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(clone, v)
	switch n := clone.Len(); {
	case n == 0:
		clone = reflect.MakeSlice(v.Type(), m.IntN(3), 3)
	case m.IntN(2) == 0:
		clone = clone.Slice(0, m.IntN(n))
	default:
		m.number(clone.Index(m.IntN(n)))
	}
	v.Set(clone)
}
