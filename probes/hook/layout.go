package hook

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"

	"github.com/dptrace/dptrace/shim"
)

var layouts = shim.Binary()

// payload is the fixed part of a binary record, and which fields of a table's
// row are fields of it: those of the same name.
type payload struct {
	shim.Layout
	columns []column
}

// column is a field of the layout that is one of the row as it is.
type column struct {
	at    int // in the layout
	form  byte
	field int // of the row
}

// payloadOf is the payload of a type of records that become rows such as row.
// The names in apart are not columns: the caller reads them. It panics where a
// field is neither, or does not fit: the layout is part of this binary.
func payloadOf(name string, row any, apart ...string) payload {
	layout, ok := layouts.Payloads[name]
	if !ok {
		panic(fmt.Sprintf("no layout of %q", name))
	}
	p := payload{Layout: layout}
	t := reflect.TypeOf(row)
	read := map[string]bool{}
	for _, name := range apart {
		read[name] = true
	}
	for _, f := range layout.Fields {
		if read[f.Name] {
			continue
		}
		i := fieldOf(t, f.Name)
		if i < 0 || !fits(f.Form, t.Field(i).Type.Kind()) {
			panic(fmt.Sprintf("%s.%s of the hook has no field of that name and size in %v", name, f.Name, t))
		}
		p.columns = append(p.columns, column{at: f.Offset, form: f.Form, field: i})
	}
	return p
}

// at is where a field begins that is read as a number of the form. It panics
// where the layout has it otherwise, as payloadOf does.
func at(l shim.Layout, name string, form byte) int {
	for _, f := range l.Fields {
		if f.Name == name && f.Form == form {
			return f.Offset
		}
	}
	panic(fmt.Sprintf("the hook's layouts have no %q of form %c", name, form))
}

// fieldOf is the field that Go spells without underscores; -1 there is none.
func fieldOf(t reflect.Type, name string) int {
	for i := range t.NumField() {
		if strings.EqualFold(t.Field(i).Name, strings.ReplaceAll(name, "_", "")) {
			return i
		}
	}
	return -1
}

func fits(form byte, kind reflect.Kind) bool {
	return kind == map[byte]reflect.Kind{'I': reflect.Uint32, 'i': reflect.Int32, 'Q': reflect.Uint64, 'q': reflect.Int64}[form]
}

// fill sets the columns of row, a pointer, and gives what follows the fixed
// part of b. ok is false where b is shorter than that.
func (p *payload) fill(row any, b []byte) (rest []byte, ok bool) {
	if len(b) < p.Size {
		return nil, false
	}
	v := reflect.ValueOf(row).Elem()
	for _, c := range p.columns {
		field := v.Field(c.field)
		switch c.form {
		case 'I':
			field.SetUint(uint64(binary.LittleEndian.Uint32(b[c.at:])))
		case 'Q':
			field.SetUint(binary.LittleEndian.Uint64(b[c.at:]))
		case 'i':
			field.SetInt(int64(int32(binary.LittleEndian.Uint32(b[c.at:]))))
		case 'q':
			field.SetInt(int64(binary.LittleEndian.Uint64(b[c.at:])))
		}
	}
	return b[p.Size:], true
}
