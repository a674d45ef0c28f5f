package detecttest

import (
	"reflect"

	"github.com/dptrace/dptrace/traces"
)

// Add writes rows of one process as they are, each a little later than the one
// before unless it says when.
func (r *Run) Add(proc uint32, rows ...any) {
	for _, row := range rows {
		v := reflect.New(reflect.TypeOf(row)).Elem()
		v.Set(reflect.ValueOf(row))
		head := v.FieldByName("Head").Addr().Interface().(*traces.Head)
		at := head.TsNS
		*head = r.head(proc)
		if at != 0 {
			head.TsNS = at
		}
		r.W.Append(v.Interface())
	}
}

// Now is the time of the last row.
func (r *Run) Now() int64 { return r.clock }

// End seals the recording of a command that ended with this code.
func (r *Run) End(code string) {
	r.Meta("exit_code", code)
	r.sealed = true
}
