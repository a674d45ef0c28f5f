package wronglen

import (
	"regexp"
	"strconv"

	"github.com/dptrace/dptrace/traces"
)

// What NumPy, torch and h5py say of an index that is too large.
var (
	bounds = regexp.MustCompile(`^index (\d+) is out of bounds for (?:axis|dimension) 0 with size (\d+)$`)
	h5py   = regexp.MustCompile(`^Index \((\d+)\) out of range for \(0-(\d+)\)$`)
)

// names reports whether an error names the index of the sample as what is not
// there, and how many there are; -1 if it does not tell. What is empty is not
// the data: it is one sample's list that has nothing.
func names(e *traces.Exception) (size int64, named bool) {
	if e.Type == "KeyError" {
		return -1, e.Message == strconv.FormatInt(e.Sample, 10)
	}
	more := int64(0)
	m := bounds.FindStringSubmatch(e.Message)
	if m == nil {
		m, more = h5py.FindStringSubmatch(e.Message), 1
	}
	if m == nil {
		return -1, false
	}
	index, err := strconv.ParseInt(m[1], 10, 64)
	size, err2 := strconv.ParseInt(m[2], 10, 64)
	if err != nil || err2 != nil || index != e.Sample || size+more <= 0 || size+more > index {
		return -1, false
	}
	return size + more, true
}
