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
	{"any list, from a bound on, after many others", -1, random, beyond("list index out of range", 91), "likely", []string{"about 80, are all of smaller indices than those that failed: 91", "broken themselves"}},
	{"any list, three indices from a bound on", -1, random, beyond("list index out of range", 91, 90, 95), "proven", []string{"those that failed: 90, 91, 95"}},
	{"any list, in turns", -1, "torch.utils.data.sampler.SequentialSampler", beyond("list index out of range", 91), "cannot-tell", nil},
	{"any list, indices among the others", -1, random, beyond("list index out of range", 91, 90, 40), "cannot-tell", nil},
	{"any list, a sampler of the user's own", -1, "__main__.Order", beyond("list index out of range", 91, 90, 95), "cannot-tell", nil},
	{"a table, three indices from a bound on", -1, random, beyond("single positional indexer is out-of-bounds", 91, 90, 95), "proven", nil},
	{"another error", 120, random, one("ValueError", 90, "index 90 is out of bounds for axis 0 with size 80"), "cannot-tell", []string{"no sample was missing"}},
	{"nothing", 120, random, nil, "cannot-tell", []string{"no sample was missing"}},
}

func one(kind string, sample int64, message string) []traces.Exception {
	return []traces.Exception{{Loader: 1, Worker: -1, Batch: 3, Stage: "fetch", Sample: sample, Type: kind, Message: message, File: "/home/me/proj/data.py", Line: 12, Func: "__getitem__"}}
}

// beyond is lookups that fail in batches of their own, the tenth and later.
func beyond(message string, samples ...int64) (all []traces.Exception) {
	for i, sample := range samples {
		e := one("IndexError", sample, message)[0]
		e.Batch = uint32(10 + i)
		all = append(all, e)
	}
	return all
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			run := NewRun(t)
			main := run.Process(-1, 0)
			run.Add(main.Proc, traces.Loader{Loader: 1, Length: c.length, BatchSize: 8, DatasetClass: "torch.utils.data.dataset.Subset", Sampler: c.sampler, File: "/home/me/proj/train.py", Line: 88},
				traces.Pass{Loader: 1, Phase: "begin"})
			delivered := uint32(1)
			if len(c.raised) > 0 && c.raised[0].Batch == 10 {
				delivered = 10
			}
			for i := range delivered { // of the indices below 80
				put := traces.BatchPut{Loader: 1, Batch: i, Worker: -1}
				for k := range int64(8) {
					put.Indices = append(put.Indices, (int64(i)*8+k)*37%80)
				}
				if delivered > 1 {
					run.Add(main.Proc, put)
				}
				run.Add(main.Proc, traces.BatchNext{Loader: 1, Batch: i, Worker: -1, Status: "ok", Grad: true})
			}
			for _, e := range c.raised {
				run.Add(main.Proc, e)
			}
			run.Add(main.Proc, traces.BatchNext{Loader: 1, Batch: delivered, Worker: -1, Status: "error", Grad: true}, traces.Pass{Loader: 1, Phase: "end", End: "error", Delivered: delivered})
			run.End("1")
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			Verdict(t, r.Findings, r.Checks, wronglen.Rule.ID, c.want, c.says)
		})
	}
}

// TestPassedOver is of a program that passes over the error, and goes on with the next batch.
func TestPassedOver(t *testing.T) {
	run := NewRun(t)
	main := run.Process(-1, 0)
	run.Add(main.Proc, traces.Loader{Loader: 1, Length: 120, BatchSize: 8, DatasetClass: "torch.utils.data.dataset.Subset", Sampler: random, File: "/home/me/proj/train.py", Line: 88},
		traces.Pass{Loader: 1, Phase: "begin"})
	run.Add(main.Proc, one("IndexError", 90, "index 90 is out of bounds for axis 0 with size 80")[0],
		traces.BatchNext{Loader: 1, Worker: -1, Status: "error", Grad: true}, traces.Pass{Loader: 1, Phase: "end", End: "error"})
	for i := range uint32(3) {
		run.Add(main.Proc, traces.BatchNext{Loader: 1, Batch: i + 1, Worker: -1, Status: "ok", Grad: true})
	}
	run.Add(main.Proc, traces.BatchNext{Loader: 1, Batch: 4, Worker: -1, Status: "stop", Grad: true})
	run.End("0")
	r, err := analyze.Run(run.Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	Verdict(t, r.Findings, r.Checks, wronglen.Rule.ID, "proven", []string{"pass 0 brought 3 batches, and in place of each with such a sample an error"})
}
