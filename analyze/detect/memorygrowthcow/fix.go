package memorygrowthcow

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dptrace/dptrace/analyze/evidence/memory"
	"github.com/dptrace/dptrace/analyze/words"
	"github.com/dptrace/dptrace/traces"
)

// fix is code for the container of which most was copied: the same data without
// an object for each item. np.array(dtype=object), gc.freeze and another sharing
// strategy change nothing, and are not told.
func (c *copies) fix() string {
	ranked := c.round[0].Ranked()
	if len(ranked) == 0 {
		return ""
	}
	return repacked(c.place(ranked[0]), ranked)
}

// repacked is the code for the first of some containers, which lies at a place.
func repacked(place string, ranked []traces.Extent) string {
	e := ranked[0]
	expr, name := expression(e.Path)
	code := fmt.Sprintf("# %s: %s, %s items. Where it is made:\n", place, class(e), words.Number(e.Items))
	code += strings.NewReplacer("PRENAME", name, "EXPR", expr).Replace(packed(e))
	if len(ranked) > 1 {
		var more []string
		for _, e := range ranked[1:] {
			more = append(more, e.Path)
		}
		code += "\n# in the same way: " + words.List(more)
	}
	return code
}

// packed is code for a container and for what reads it: EXPR is the container,
// PRENAME the beginning of names beside it.
func packed(e traces.Extent) string {
	switch kind := class(e); {
	case kind == "set" || kind == "frozenset":
		return packedSet
	case strings.HasSuffix(strings.ToLower(kind), "dict"):
		return packedDict
	case memory.Nested(e):
		return packedItems
	case strings.HasSuffix(kind, "ndarray"):
		return packedArray
	}
	return packedStrings
}

const (
	packedSet = `import numpy as np
EXPR = np.array(sorted(EXPR))  # of a real dtype: numbers, or strings of fixed width

# instead of key in EXPR
i = np.searchsorted(EXPR, key)
found = i < len(EXPR) and EXPR[i] == key`

	packedDict = `import pickle
import numpy as np
keys = sorted(EXPR)
packed = [pickle.dumps(EXPR[k], -1) for k in keys]
PRENAME_keys = np.array(keys)  # of a real dtype: numbers, or strings of fixed width
PRENAME_ends = np.cumsum([len(p) for p in packed])
PRENAME_bytes = np.frombuffer(b"".join(packed), np.uint8)
del EXPR

# instead of EXPR[key]
i = np.searchsorted(PRENAME_keys, key)
begin = PRENAME_ends[i - 1] if i else 0
value = pickle.loads(PRENAME_bytes[begin:PRENAME_ends[i]])`

	packedArray = `import numpy as np
EXPR = np.array(EXPR.tolist())  # of a real dtype: numbers, or strings of fixed width; dtype=object is copied like a list`

	packedStrings = `import numpy as np
packed = [x.encode() for x in EXPR]
PRENAME_ends = np.cumsum([len(p) for p in packed])
PRENAME_bytes = np.frombuffer(b"".join(packed), np.uint8)
del EXPR

# instead of EXPR[i]
begin = PRENAME_ends[i - 1] if i else 0
item = PRENAME_bytes[begin:PRENAME_ends[i]].tobytes().decode()

# that is for strings; numbers need one line: EXPR = np.array(EXPR), with a dtype other than object`

	packedItems = `import pickle
import numpy as np
packed = [pickle.dumps(x, -1) for x in EXPR]
PRENAME_ends = np.cumsum([len(p) for p in packed])
PRENAME_bytes = np.frombuffer(b"".join(packed), np.uint8)
del EXPR

# instead of EXPR[i]
begin = PRENAME_ends[i - 1] if i else 0
item = pickle.loads(PRENAME_bytes[begin:PRENAME_ends[i]])

# faster, if all items have the same fields: one NumPy array, Arrow column or torch tensor for each field`
)

var (
	attribute = regexp.MustCompile(`^(?:dataset|collate_fn|self|k?w?args\[[^\]]*\])\.(?:.*\.)?([A-Za-z_]\w*)$`)
	global    = regexp.MustCompile(`^[A-Za-z_][\w.]*\.([A-Za-z_]\w*)$`)
)

// expression is how the program's own code names a container, and what names
// beside it begin with: dataset.records is self.records in its class.
func expression(path string) (expr, name string) {
	if m := attribute.FindStringSubmatch(path); m != nil {
		return "self." + m[1], "self." + m[1]
	}
	if m := global.FindStringSubmatch(path); m != nil {
		return m[1], m[1]
	}
	return "items", "items"
}

// place is where the container belongs.
func (c *copies) place(e traces.Extent) string {
	if strings.Count(e.Path, ".") == 1 && strings.HasPrefix(e.Path, "dataset.") && !strings.Contains(e.Path, "[") {
		return e.Path + " of " + c.First().First().DatasetClass
	}
	return e.Path
}
