package timeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// made is DataLoader objects by the letters of a loop, each made right before its
// first batch.
type made map[byte]traces.Loader

// dealt is a loader over a dataset object, in the way of a sampler object.
func dealt(dataset uint32, class string, sampler uint32) traces.Loader {
	return traces.Loader{File: "/home/me/train.py", Line: 9, DatasetClass: "Rows", Length: 64, Given: dataset,
		Sampler: "torch.utils.data.sampler." + class, SamplerID: sampler}
}

func (m made) rows(p *played) (all []traces.Loader) {
	for letter, l := range m {
		for _, r := range p.rows {
			if n := uint32(letter-'A') + 1; r.Loader == n {
				l.Loader, l.Head = n, traces.Head{TsNS: r.TsNS - 6e5, Proc: 1}
				all = append(all, l)
				break
			}
		}
	}
	slices.SortFunc(all, func(a, b traces.Loader) int { return int(a.Loader) - int(b.Loader) })
	return all
}

// TestIdentity: which objects that are made at one line are one loader.
func TestIdentity(t *testing.T) {
	const random, sequential, subset = "RandomSampler", "SequentialSampler", "SubsetRandomSampler"
	with := func(l traces.Loader, change func(*traces.Loader)) traces.Loader {
		change(&l)
		return l
	}
	for _, c := range []struct {
		name, loop string
		made       made
		want       string // letters of each loader's objects
	}{
		{"made anew each epoch", "Ab1A!Bb1B!Cb1C!.", made{'A': dealt(1, random, 1), 'B': dealt(1, random, 2), 'C': dealt(1, random, 3)}, "ABC"},
		{"two phases", "Ab1A!B-B!Cb1C!D-D!.", made{'A': dealt(1, random, 1), 'B': dealt(2, sequential, 2), 'C': dealt(1, random, 3), 'D': dealt(2, sequential, 4)}, "AC BD"},
		{"two phases in the same way", "Ab1A!B-B!Cb1C!D-D!.", made{'A': dealt(1, sequential, 1), 'B': dealt(2, sequential, 2), 'C': dealt(1, sequential, 3), 'D': dealt(2, sequential, 4)}, "AC BD"},
		{"datasets made anew, two phases", "Ab1A!B-B!Cb1C!D-D!.", made{'A': dealt(1, sequential, 1), 'B': dealt(2, sequential, 2), 'C': dealt(3, sequential, 3), 'D': dealt(4, sequential, 4)}, "AC BD"},
		{"both train, and come again", "Ab1A!Bb1B!Cb1C!.", made{'A': dealt(1, random, 1), 'B': dealt(2, random, 2), 'C': dealt(1, random, 3)}, "AC B"},
		{"datasets made anew, of other lengths", "Ab1A!Bb1B!.", made{'A': dealt(1, random, 1), 'B': with(dealt(2, random, 2), func(l *traces.Loader) { l.Length = 65 })}, "A B"},
		{"one dataset that has grown", "Ab1A!Bb1B!.", made{'A': dealt(1, random, 1), 'B': with(dealt(1, random, 2), func(l *traces.Loader) { l.Length = 65 })}, "AB"},
		{"one dataset, two lists of indices", "Ab1A!B-B!Cb1C!D-D!.", made{'A': dealt(1, subset, 1), 'B': dealt(1, subset, 2), 'C': dealt(1, subset, 3), 'D': dealt(1, subset, 4)}, "AC BD"},
		{"one sampler, trained and looked at", "Ab1A!B-B!.", made{'A': dealt(1, subset, 1), 'B': dealt(1, subset, 1)}, "AB"},
		{"shuffled and not", "Ab1A!B-B!.", made{'A': dealt(1, random, 1), 'B': dealt(1, sequential, 2)}, "A B"},
		{"both in use at once", "Ab1Bb1Ab1Bb1A!B!.", made{'A': dealt(1, random, 1), 'B': dealt(1, random, 2)}, "A B"},
		{"two lines", "Ab1A!Bb1B!.", made{'A': dealt(1, random, 1), 'B': with(dealt(1, random, 2), func(l *traces.Loader) { l.Line = 10 })}, "A B"},
		{"called from two places", "Ab1A!Bb1B!.", made{'A': dealt(1, random, 1), 'B': with(dealt(1, random, 2), func(l *traces.Loader) { l.Stack = "b.py:3" })}, "AB"},
	} {
		p := play(c.loop)
		b := NewBuilder()
		part := &traces.Part{Name: "p", Sealed: true}
		b.Add(traces.Batch{Part: part, Table: "loader", Rows: c.made.rows(p)})
		b.Add(traces.Batch{Part: part, Table: "batch_next", Rows: p.rows})
		var got []string
		for _, l := range b.build(nil).Loaders {
			letters := ""
			for _, o := range l.Objects {
				letters += fmt.Sprintf("%c", 'A'+byte(o.Loader)-1)
			}
			got = append(got, letters)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// TestSameOnRanks: loaders of one line are matched between ranks by what they are
// for, also where only one rank evaluates, and evaluates first.
func TestSameOnRanks(t *testing.T) {
	b := NewBuilder()
	objects := made{'A': dealt(1, "RandomSampler", 1), 'B': dealt(2, "SequentialSampler", 2)}
	for rank, loop := range []string{"B-B!Ab1A!B-B!.", "Ab1A!."} {
		part := &traces.Part{Name: fmt.Sprint(rank), Sealed: true}
		p := play(loop)
		b.Add(traces.Batch{Part: part, Table: "process", Rows: []traces.Process{{Head: traces.Head{Proc: 1}, Pid: 9, Rank: int32(rank), WorldSize: 2}}})
		b.Add(traces.Batch{Part: part, Table: "loader", Rows: objects.rows(p)})
		b.Add(traces.Batch{Part: part, Table: "batch_next", Rows: p.rows})
	}
	ids := map[Role][]int{}
	for _, l := range b.build(nil).Loaders {
		ids[l.Role] = append(ids[l.Role], l.ID)
	}
	if len(ids[Train]) != 2 || ids[Train][0] != ids[Train][1] || len(ids[Eval]) != 1 || ids[Eval][0] == ids[Train][0] {
		t.Errorf("%v", ids)
	}
}
