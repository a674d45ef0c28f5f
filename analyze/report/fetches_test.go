package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dptrace/dptrace/analyze/evidence/fetches"
	"github.com/dptrace/dptrace/analyze/evidence/looptime"
	"github.com/dptrace/dptrace/analyze/evidence/offcpu"
)

// TestSpent: what is known of fetches, and what is not.
func TestSpent(t *testing.T) {
	second := time.Second
	for _, c := range []struct {
		name  string
		split fetches.Split
		in    map[offcpu.Kind]time.Duration
		want  string
	}{
		{"all known", fetches.Split{Fetches: 2, Wall: 10 * second, OnCPU: 5 * second, Queue: second, Blocked: 4 * second, QueueKnown: 2, ReadKnown: 2,
			Read: 4 << 20, Disk: 2 << 20}, nil,
			"50.0 % on a processor, 10.0 % waiting for one, 40.0 % blocked (± 0.0), 2.1 MB read in each (1.0 MB from disk); 5000 ms each, 2 of them looked at"},
		{"no schedstat, nothing read", fetches.Split{Fetches: 2, Wall: 10 * second, OnCPU: 5 * second, Blocked: 5 * second, ReadKnown: 2},
			map[offcpu.Kind]time.Duration{offcpu.Sleep: 5 * second},
			"50.0 % on a processor, 50.0 % blocked or waiting for one (± 0.0), nothing read; 5000 ms each, 2 of them looked at"},
		{"no io", fetches.Split{Fetches: 1, Wall: second, OnCPU: second, QueueKnown: 1}, nil,
			"100.0 % on a processor, 0.0 % waiting for one, 0.0 % blocked (± 0.0); 1000 ms each, 1 of them looked at"},
		{"what it is blocked in", fetches.Split{Fetches: 2, Wall: 10 * second, OnCPU: 6 * second, Blocked: 4 * second, QueueKnown: 2},
			map[offcpu.Kind]time.Duration{offcpu.Sleep: 10 * second, offcpu.Reading: 30 * second, offcpu.Locks: second / 100},
			"60.0 % on a processor, 0.0 % waiting for one, 40.0 % blocked (± 0.0): reading files 30.0 %; sleep 10.0 %; 5000 ms each, 2 of them looked at"},
		{"long waits of others", fetches.Split{Fetches: 2, Wall: 10 * second, OnCPU: 9 * second, Queue: second, QueueKnown: 2},
			map[offcpu.Kind]time.Duration{offcpu.Other: 50 * second},
			"45.0 % on a processor, 5.0 % waiting for one, 50.0 % blocked (± 0.0): other waits, or stopped 50.0 %; 5000 ms each, 2 of them looked at"},
		{"an account of more than there was", fetches.Split{Fetches: 2, Wall: 10 * second, OnCPU: 6 * second, Blocked: 4 * second, QueueKnown: 2},
			map[offcpu.Kind]time.Duration{offcpu.Other: 233 * second},
			"60.0 % on a processor, 0.0 % waiting for one, 40.0 % blocked (± 0.0); 5000 ms each, 2 of them looked at"},
		{"an account that knows little", fetches.Split{Fetches: 2, Wall: 10 * second, OnCPU: 6 * second, Blocked: 4 * second, QueueKnown: 2},
			map[offcpu.Kind]time.Duration{offcpu.Reading: 19 * second},
			"60.0 % on a processor, 0.0 % waiting for one, 40.0 % blocked (± 0.0); 5000 ms each, 2 of them looked at"},
	} {
		if got := spent(&c.split, &offcpu.Blocked{Fetches: 100 * second, In: c.in}); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := untimed("Python 3.11"); !strings.Contains(got, "3.11 cannot tell") {
		t.Error(got)
	}
	if got := untimed("two such chains"); got != "two such chains" {
		t.Error(got)
	}
}

// TestParts: the parts of a fetch have its time by their shares; what the kernel does not tell apart is not told apart.
func TestParts(t *testing.T) {
	second := time.Second
	fetch := looptime.Stage{Name: looptime.Fetch, Waited: 8 * second, Work: 20 * second, Count: 10}
	for _, c := range []struct {
		name  string
		split fetches.Split
		in    map[offcpu.Kind]time.Duration
		want  []string
	}{
		{"none was looked at", fetches.Split{}, map[offcpu.Kind]time.Duration{offcpu.Sleep: second}, nil},
		{"all known", fetches.Split{Fetches: 2, Wall: 10 * second, OnCPU: 5 * second, Queue: second, Blocked: 4 * second, QueueKnown: 2}, nil,
			[]string{"on a processor 4s 1s", "waiting for a processor 800ms 200ms", "blocked 3.2s 800ms"}},
		{"no schedstat in one", fetches.Split{Fetches: 2, Wall: 10 * second, OnCPU: 5 * second, Queue: second, Blocked: 4 * second, QueueKnown: 1}, nil,
			[]string{"on a processor 4s 1s", "blocked, or waiting for a processor 4s 1s"}},
		{"what it is blocked in", fetches.Split{Fetches: 2, Wall: 10 * second, OnCPU: 6 * second, Blocked: 4 * second, QueueKnown: 2},
			map[offcpu.Kind]time.Duration{offcpu.Sleep: 10 * second, offcpu.Reading: 30 * second},
			[]string{"on a processor 4.8s 1.2s", "waiting for a processor 0s 0s", "blocked 3.2s 800ms", "blocked: reading files 2.4s 600ms",
				"blocked: sleep 800ms 200ms"}},
	} {
		var got []string
		for _, p := range parts(&c.split, &offcpu.Blocked{Fetches: 100 * second, In: c.in}, fetch) {
			got = append(got, fmt.Sprintf("%s %v %v", p.Name, p.Waited, p.Mean()))
			if p.Of != looptime.Fetch || p.looked != 2 {
				t.Errorf("%s: %s is of %q, by %d", c.name, p.Name, p.Of, p.looked)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
