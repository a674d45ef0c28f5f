package hook

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
)

// facts are a JSON record's keys: the columns of its table, and a few that are
// for the recorder alone.
type facts map[string]any

var errFacts = errors.New("no JSON object")

const (
	maxText = 4096 // of a string column in bytes; the hook cuts far earlier

	// Of a JSON record in bytes. The longest that the hook writes are the ranks of
	// a group, 6 bytes each. Decoded, it takes up to 30 times as much.
	maxFacts = 256 << 10
)

func parseFacts(payload []byte) (facts, error) {
	if len(payload) > maxFacts {
		return nil, errFacts
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.UseNumber() // seeds use all 64 bits
	var f facts
	if err := d.Decode(&f); err != nil || f == nil {
		return nil, errFacts
	}
	return f, nil
}

func (f facts) text(key string) string {
	s, _ := f[key].(string)
	return clip(s)
}

func clip(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return s
}

// hex is the bytes that a key's value spells; nil where it spells none.
func (f facts) hex(key string) []byte {
	b, err := hex.DecodeString(f.text(key))
	if err != nil || len(b) == 0 {
		return nil
	}
	return b
}

// number is a key's value, or missing where it is no number. Numbers above
// 2^63 wrap around, as C would pass them.
func (f facts) number(key string, missing int64) int64 {
	n, ok := f[key].(json.Number)
	if !ok {
		return missing
	}
	if i, err := n.Int64(); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(n.String(), 10, 64); err == nil {
		return int64(u)
	}
	return missing
}

// fill sets the columns of row, a pointer to a table's struct, whose keys are
// present and of the right type. The others keep what they have.
func (f facts) fill(row any) {
	v := reflect.ValueOf(row).Elem()
	t := v.Type()
	for i := range t.NumField() {
		key := t.Field(i).Tag.Get("col")
		value, present := f[key]
		if key == "" || !present {
			continue
		}
		field := v.Field(i)
		switch field.Kind() {
		case reflect.String:
			if s, ok := value.(string); ok {
				field.SetString(clip(s))
			}
		case reflect.Bool:
			if b, ok := value.(bool); ok {
				field.SetBool(b)
			}
		case reflect.Int32, reflect.Int64:
			if n := f.number(key, field.Int()); field.Kind() == reflect.Int64 || n == int64(int32(n)) {
				field.SetInt(n)
			}
		case reflect.Uint32, reflect.Uint64:
			if n := uint64(f.number(key, int64(field.Uint()))); field.Kind() == reflect.Uint64 || n <= math.MaxUint32 {
				field.SetUint(n)
			}
		case reflect.Slice: // dist.ranks, extent.starts and counts
			list, ok := value.([]any)
			if !ok || field.Type().Elem().Kind() != reflect.Int64 {
				continue
			}
			out := make([]int64, 0, len(list))
			for _, e := range list {
				if n, ok := e.(json.Number); ok {
					i, _ := n.Int64()
					out = append(out, i)
				}
			}
			field.Set(reflect.ValueOf(out))
		}
	}
}
