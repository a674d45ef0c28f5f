package analyze_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// mutator makes what no recorder writes of rows that one wrote.
type mutator struct {
	*rand.Rand
	how  uint
	left int // rows that are still changed, about one in every
	of   int
	all  []fixture
}

// What a mutator does to the run as a whole: the bits of how.
const (
	cut       = 1 << iota // no part is sealed
	twice                 // there is a second part with the same rows
	elsewhere             // of another host, if there are several
	foreign               // rows of other fixtures: all of tables that this one lacks, some of the others
	joined                // rows change their process, loader, pass or worker, rather than anything else
	oneByOne              // each part is read apart
	troubled              // reading met problems
	steering              // characters that steer a terminal are appended to texts anywhere
	hows      = 1 << iota
)

// share is the rows of one part.
type share struct {
	part   *traces.Part
	tables map[string][]any // rows of the batches
}

// run is what the mutator makes of a fixture: its parts, by table.
func (m *mutator) run(f fixture, tables []string) (*traces.Run, []share) {
	run, shares := &traces.Run{}, []share{}
	for _, from := range f.shares {
		shares = append(shares, m.share(from, tables))
		if m.how&twice != 0 {
			second := m.share(from, tables)
			second.part.Name += "-2"
			if m.how&elsewhere != 0 {
				second.part.BootID = []string{"", "another"}[m.IntN(2)]
			}
			shares = append(shares, second)
		}
	}
	for _, s := range shares {
		run.Parts = append(run.Parts, s.part)
	}
	for range 3 * (m.how & troubled / troubled) {
		run.Problems = append(run.Problems, traces.Problem{Part: run.Parts[0], Table: tables[m.IntN(len(tables))],
			Kind: traces.Damaged, Segment: m.text(), Text: m.text(), LostRows: int64(m.IntN(9)) - 1, Places: 1})
	}
	return run, shares
}

func (m *mutator) share(from share, tables []string) share {
	part := *from.part
	part.Sealed = part.Sealed && m.how&cut == 0
	to := share{&part, map[string][]any{}}
	for _, table := range tables {
		batches := from.tables[table]
		if m.how&foreign != 0 && m.IntN(2) == 0 {
			other := m.all[m.IntN(len(m.all))].shares[0]
			batches = append(slices.Clone(batches), other.tables[table]...)
		}
		for _, rows := range batches {
			to.tables[table] = append(to.tables[table], m.mutate(rows))
		}
	}
	return to
}

// mutate copies rows, and changes some of them.
func (m *mutator) mutate(rows any) any {
	from := reflect.ValueOf(rows)
	to := reflect.MakeSlice(from.Type(), 0, from.Len()+4)
	for i := range from.Len() {
		row := reflect.New(from.Type().Elem()).Elem()
		row.Set(from.Index(i))
		if m.left > 0 && m.IntN(m.of) == 0 {
			m.left--
			switch m.IntN(8) {
			case 0:
				continue // lost
			case 1:
				to = reflect.Append(to, row) // twice
			case 2: // as another row has it
				m.borrow(row, from.Index(m.IntN(from.Len())))
			default:
				m.change(row)
			}
		}
		if m.how&steering != 0 {
			m.steer(row)
		}
		to = reflect.Append(to, row)
	}
	return to.Interface()
}

func (m *mutator) change(row reflect.Value) {
	if m.how&joined != 0 {
		m.join(row)
		return
	}
	m.field(row)
}

// join makes a row that of another process, loader, pass or worker.
func (m *mutator) join(row reflect.Value) {
	for i := range row.NumField() {
		switch v := row.Field(i); row.Type().Field(i).Name {
		case "Head":
			m.join(v)
		case "Proc", "Loader", "Pass", "Worker", "Pid", "Ppid", "Rank", "Slot", "State", "Window", "Batch":
			if m.IntN(3) == 0 && (v.CanInt() || v.CanUint()) {
				m.set(v, int64(m.IntN(6))-int64(m.IntN(2)))
			}
		}
	}
}

// steer appends to some of a row's texts, which mostly stay what they are.
func (m *mutator) steer(row reflect.Value) {
	for i := range row.NumField() {
		if v := row.Field(i); v.Kind() == reflect.String && v.Len() > 0 && m.IntN(6) == 0 {
			v.SetString(v.String() + "\x1b[2J\x9b\u202e")
		}
	}
}

// borrow takes a field of another row.
func (m *mutator) borrow(row, other reflect.Value) {
	i := m.IntN(row.NumField())
	if row.Field(i).Kind() == reflect.Struct { // Head
		m.borrow(row.Field(i), other.Field(i))
	} else if row.Type().Field(i).Name != "Seq" {
		row.Field(i).Set(other.Field(i))
	}
}

// field of a row gets another value.
func (m *mutator) field(row reflect.Value) {
	i := m.IntN(row.NumField())
	switch v := row.Field(i); v.Kind() {
	case reflect.Struct: // Head; Seq is the reader's, and always right
		m.field(v)
	case reflect.String:
		v.SetString(m.text())
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

var hostileTexts = []string{"", " ", "\x1b[2J\x9b\u202e", "\xff\xfe", "fork", "begin", "end", "stop", "ok", "ddp", "group", "mesh", "0", "-1",
	"9223372036854775807", "train.py", "mt19937", "pcg64", strings.Repeat("x > ", 300), "a\x00b", "[", "(", ".", ">", " > ",
	"torch.utils.data.distributed.DistributedSampler", "torch.utils.data.sampler.RandomSampler"}

func (m *mutator) text() string { return hostileTexts[m.IntN(len(hostileTexts))] }

var hostileNumbers = []int64{0, 1, -1, 2, 3, 7, 64, 1 << 16, 1 << 31, 1<<40 - 1, 1 << 40,
	math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}

func (m *mutator) number(v reflect.Value) {
	n := hostileNumbers[m.IntN(len(hostileNumbers))]
	if m.IntN(2) == 0 {
		n = int64(m.IntN(5))
	}
	m.set(v, n)
}

func (m *mutator) set(v reflect.Value, n int64) {
	v.Set(reflect.ValueOf(n).Convert(v.Type()))
}

// slice gets another length, or another element.
func (m *mutator) slice(v reflect.Value) {
	clone := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(clone, v)
	switch n := clone.Len(); {
	case n == 0:
		clone = reflect.MakeSlice(v.Type(), m.IntN(3), 3)
	case m.IntN(3) == 0:
		clone = clone.Slice(0, m.IntN(n))
	case m.IntN(2) == 0: // the first of it again
		clone = reflect.AppendSlice(clone, clone.Slice(0, 1+m.IntN(n)))
	default:
		m.number(clone.Index(m.IntN(n)))
	}
	v.Set(clone)
}
