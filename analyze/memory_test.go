package analyze_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/traces"
)

// copying plays two loaders on each of some hosts: one whose workers copy its
// records, one whose dataset is pickled.
func copying(t *testing.T, hosts int, limit int64, kernel bool) *Run {
	first := NewRun(t)
	for rank := range hosts {
		r := first
		if rank > 0 {
			r = first.Part(t, "host-"+string(rune('1'+rank)))
		}
		r.Host(64 << 30)
		r.Limit("cgroup", "/job", limit, 1<<20)
		p := r.Process(rank, hosts)
		p.Work(Crew{Workers: 3, Passes: 2, Kernel: kernel, Hook: true, Held: []Held{{Path: "dataset.records", Class: "list", Items: 100_000, Sampled: 4100, Blocks: 30}},
			Copied: func(_, worker, batches int) int { return min(3000*batches, 9000+100*worker+10*rank) },
			Other:  func(_, _, batches int) int { return 3000 * min(batches, 2) }})
		p.Work(Crew{Line: 120, Workers: 2, Passes: 2, Method: "spawn", Pickled: 40_000_000, PickleNS: 100_000_000})
		r.Seal()
	}
	return first
}

// TestMergeMemory: as TestMerge, for the rules about memory.
func TestMergeMemory(t *testing.T) {
	run := copying(t, 4, 1<<30, true).Open(t)
	whole, err := analyze.Run(run, analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Findings) < 2 {
		t.Fatalf("%d findings: this run has more than one bug", len(whole.Findings))
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 8 {
		order := r.Perm(len(run.Parts))
		f, c := merged(t, run, order, 1+r.IntN(len(order)), r)
		if diff := cmp.Diff(whole.Findings, f, withoutFacts); diff != "" {
			t.Fatalf("order %v: findings (-whole +merged):\n%s", order, diff)
		}
		if diff := cmp.Diff(whole.Checks, c); diff != "" {
			t.Fatalf("order %v: checks (-whole +merged):\n%s", order, diff)
		}
	}
}

// TestHostsApart: what ranks copy on different hosts is not added up. On each
// it is 4.6 % of the limit.
func TestHostsApart(t *testing.T) {
	r, err := analyze.Run(copying(t, 2, 2<<30, true).Open(t), analyze.Rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Rule == "memory-growth-cow" && f.Certainty != finding.Note {
			t.Errorf("%s: %s", f.Certainty, f.Cost)
		}
	}
	if len(r.Findings) == 0 {
		t.Error("nothing found")
	}
}

// TestDamagedMemory: a trace whose rows about memory are damaged is not called
// clean unless the whole one is, and nothing is found in it that the whole lacks.
func TestDamagedMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 34))
	said := 0
	for _, limit := range []int64{1 << 30, 1 << 36} { // found, and clean or a note
		for _, kernel := range []bool{true, false} {
			run := copying(t, 1, limit, kernel)
			truth := statuses(t, run.Open(t))
			for range 30 {
				got, err := traces.Open(damagedTable(t, r, run.Dir, "cow", "extent", "private", "limit", "host", "worker", "memory", "pass"))
				if err != nil {
					continue // said so
				}
				said++
				for key, status := range statuses(t, got) {
					if !strings.Contains(key, "memory-growth") && !strings.Contains(key, "copied") {
						continue
					}
					if status != finding.CannotTell && truth[key] != status && !(status == finding.Clean && truth[key] == finding.Clean) {
						t.Errorf("limit %d, kernel %v, damaged: %s is %s, in the whole trace %s", limit, kernel, key, status, truth[key])
					}
				}
			}
		}
	}
	if said < 80 {
		t.Errorf("only %d damaged traces were judged: the test shows little", said)
	}
}

// damagedTable copies a trace and cuts, changes or removes a file of some tables.
func damagedTable(t *testing.T, r *rand.Rand, from string, tables ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run.dptrace")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, table := range tables {
		some, err := filepath.Glob(dir + "/*/" + table + ".*")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	file := files[r.IntN(len(files))]
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	switch r.IntN(4) {
	case 0:
		b = b[:r.IntN(len(b))]
	case 1:
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return dir
	default:
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}
