package wronglen_test

import (
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/wronglen"
	"github.com/dptrace/dptrace/traces"
)

const random = "torch.utils.data.sampler.RandomSampler"

// cases: length and sampler of the loader, what its fetches raised, and what is
// said of it.
var cases = []struct {
	name    string
	length  int64
	sampler string
	raised  []traces.Exception
	want    string
	says    []string
}{
	{"NumPy names it", 120, random, one("IndexError", 90, "index 90 is out of bounds for axis 0 with size 80"), "proven",
		[]string{"has no sample 90, in spite of its length of 120", "There are 80.", "data.py:12", "return len(self.items)  # 80"}},
	{"torch names it", 120, random, one("IndexError", 90, "index 90 is out of bounds for dimension 0 with size 80"), "proven", nil},
	{"h5py names it", 120, random, one("IndexError", 90, "Index (90) out of range for (0-79)"), "proven", []string{"There are 80."}},
	{"several keys are missing", 120, random, append(one("KeyError", 90, "90"), one("KeyError", 17, "17")...), "proven", []string{"sorted(self.items)"}},

	{"one key is missing: a label may be that number", 120, random, one("KeyError", 9, "9"), "likely", nil},
	{"length not recorded", -1, random, one("IndexError", 90, "index 90 is out of bounds for axis 0 with size 80"), "likely", []string{"not in the trace"}},

	{"length not recorded, sampler of the user's own", -1, "__main__.Order", one("IndexError", 90, "index 90 is out of bounds for axis 0 with size 80"), "cannot-tell", nil},
	{"the sampler asks for too much", 80, "__main__.Order", one("IndexError", 90, "index 90 is out of bounds for axis 0 with size 80"), "cannot-tell", nil},
	{"a column", 120, random, one("IndexError", 90, "index 5 is out of bounds for axis 0 with size 5"), "cannot-tell", []string{"it is not told"}},
	{"an empty list of the first sample", 120, random, one("IndexError", 0, "index 0 is out of bounds for axis 0 with size 0"), "cannot-tell", nil},
	{"another axis", 120, random, one("IndexError", 90, "index 90 is out of bounds for axis 1 with size 80"), "cannot-tell", nil},
	{"any list", 120, random, one("IndexError", 90, "list index out of range"), "cannot-tell", nil},
	{"a column's name", 120, random, one("KeyError", 90, "label"), "cannot-tell", nil},
	{"another error", 120, random, one("ValueError", 90, "index 90 is out of bounds for axis 0 with size 80"), "cannot-tell", []string{"no sample was missing"}},
	{"nothing", 120, random, nil, "cannot-tell", []string{"no sample was missing"}},
}

func one(kind string, sample int64, message string) []traces.Exception {
	return []traces.Exception{{Loader: 1, Worker: -1, Batch: 3, Stage: "fetch", Sample: sample, Type: kind, Message: message, File: "/home/me/proj/data.py", Line: 12, Func: "__getitem__"}}
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			main := run.Process(-1, 0)
			run.Add(main.Proc, traces.Loader{Loader: 1, Length: c.length, BatchSize: 8, DatasetClass: "torch.utils.data.dataset.Subset", Sampler: c.sampler, File: "/home/me/proj/train.py", Line: 88},
				traces.Pass{Loader: 1, Phase: "begin"}, traces.BatchNext{Loader: 1, Worker: -1, Status: "ok", Grad: true})
			for _, e := range c.raised {
				run.Add(main.Proc, e)
			}
			run.Add(main.Proc, traces.BatchNext{Loader: 1, Worker: -1, Status: "error", Grad: true}, traces.Pass{Loader: 1, Phase: "end", End: "error", Delivered: 1})
			run.End("1")
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, wronglen.Rule.ID, c.want, c.says)
		})
	}
}
