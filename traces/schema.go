package traces

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unsafe"
)

// SchemaVersion goes up only when an old reader would misread a new trace.
const SchemaVersion = 2

// firstVersion is the oldest that is read. Version 1 was never published: it has
// other names for the columns dataset_class, exit_code, si_code and fetch, which
// would be read as zeros.
const firstVersion = 2

// columnKind is how the values of a column are stored.
type columnKind uint8

const (
	kindInt32 columnKind = iota
	kindUint32
	kindInt64
	kindUint64
	kindBool
	kindString
	kindBytes
	kindInts // list of int64
)

// arrowNames are the types as FORMAT.md and pyarrow's Schema call them.
var arrowNames = [...]string{"int32", "uint32", "int64", "uint64", "bool", "string", "binary", "list<item: int64>"}

func (k columnKind) String() string { return arrowNames[k] }

// width is the size of one value in bytes; of one offset for strings, bytes
// and lists; 0 for bool, which has 8 values in a byte.
func (k columnKind) width() int {
	switch k {
	case kindInt64, kindUint64:
		return 8
	case kindBool:
		return 0
	}
	return 4
}

// nodes and buffers are what a column takes in an Arrow record batch: the list
// has a child with its own node and validity bitmap.
func (k columnKind) nodes() int {
	if k == kindInts {
		return 2
	}
	return 1
}

func (k columnKind) buffers() int {
	switch k {
	case kindString, kindBytes:
		return 3
	case kindInts:
		return 4
	}
	return 2
}

type column struct {
	name   string
	kind   columnKind
	offset uintptr // of the field in the row's struct
}

// table is a row type, mapped to columns once.
type table struct {
	name    string
	typ     reflect.Type
	columns []column
	byName  map[string]int
	// rows makes a slice of n zero rows, and says where it begins.
	rows func(n int) (any, unsafe.Pointer)
}

// tables is every table of a trace, in the order of tables.go.
var tables = []*table{
	define[Process](), define[Exit](), define[Act](), define[Loader](), define[Pass](), define[Worker](),
	define[BatchPut](), define[BatchFetch](), define[FetchSplit](), define[Transform](), define[Pin](), define[BatchNext](),
	define[Dataset](), define[Attribute](), define[Digest](), define[Leftover](), define[Opened](), define[BatchBytes](), define[SetEpoch](),
	define[RngSlot](), define[RngState](), define[RngSearch](), define[Optimizer](), define[Exception](), define[Dist](),
	define[Memory](), define[Cpu](), define[Limit](), define[Signal](), define[Oom](), define[Cow](), define[Extent](), define[Private](),
	define[ShmRoom](), define[ShmFile](), define[ShmUse](), define[ShmFull](),
	define[Position](), define[OffCpu](), define[Descriptor](),
	define[Container](), define[Footprint](),
	define[CudaLibrary](), define[HostMemory](), define[Copy](), define[CudaCalls](), define[CallSite](), define[Touch](),
	define[Host](), define[Clock](), define[Meta](), define[Lost](), define[Overhead](),
}

var (
	tableOfName = index(func(t *table) string { return t.name })
	tableOfType = index(func(t *table) reflect.Type { return t.typ })
)

func index[K comparable](key func(*table) K) map[K]*table {
	m := make(map[K]*table, len(tables))
	for _, t := range tables {
		m[key(t)] = t
	}
	return m
}

func define[T any]() *table {
	typ := reflect.TypeFor[T]()
	if typ.Kind() != reflect.Struct || typ.NumField() == 0 || typ.Field(0).Type != reflect.TypeFor[Head]() {
		panic(fmt.Sprintf("traces: %v does not begin with Head", typ)) // at init, as in kindOf; Writer.append relies on it
	}
	t := &table{name: snake(typ.Name()), typ: typ, byName: map[string]int{}}
	t.rows = func(n int) (any, unsafe.Pointer) {
		s := make([]T, n)
		return s, unsafe.Pointer(unsafe.SliceData(s))
	}
	t.addFields(typ, 0)
	for i, c := range t.columns {
		t.byName[c.name] = i
	}
	return t
}

func (t *table) addFields(typ reflect.Type, base uintptr) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Anonymous {
			t.addFields(f.Type, base+f.Offset)
			continue
		}
		t.columns = append(t.columns, column{f.Tag.Get("col"), kindOf(f.Type), base + f.Offset})
	}
}

func kindOf(t reflect.Type) columnKind {
	switch t.Kind() {
	case reflect.Int32:
		return kindInt32
	case reflect.Uint32:
		return kindUint32
	case reflect.Int64:
		return kindInt64
	case reflect.Uint64:
		return kindUint64
	case reflect.Bool:
		return kindBool
	case reflect.String:
		return kindString
	case reflect.Slice:
		switch t.Elem().Kind() {
		case reflect.Uint8:
			return kindBytes
		case reflect.Int64:
			return kindInts
		}
	}
	panic(fmt.Sprintf("traces: no column type for %v", t)) // at init: a mistake in tables.go
}

// snake turns BatchPut into batch_put.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
