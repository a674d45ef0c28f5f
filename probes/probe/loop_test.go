package probe

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/dptrace/dptrace/traces"
)

type anyRows []any

func (r *anyRows) Append(row any) { *r = append(*r, row) }

// counting is a loop whose programs have no ring.
func counting(follows bool, h Handler) (*loop, *anyRows) {
	var rows anyRows
	p := &Programs{Collection: &ebpf.Collection{}, rows: &rows, told: map[string]uint64{}}
	return &loop{KernelSide: &KernelSide{Probe: "test", Follows: follows}, programs: p, tree: NewTree(), handler: h}, &rows
}

func isComplete(t *Tree) bool {
	select {
	case <-t.Complete:
		return true
	default:
		return false
	}
}

// A probe that fails must not keep those waiting that wait for the process tree.
func TestLoopFails(t *testing.T) {
	broken := errors.New("broken")
	l, _ := counting(true, Handler{Look: func(time.Time) error { return broken }})
	if err := l.watch(context.Background()); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if !isComplete(l.tree) {
		t.Error("the tree is not complete: the other probes wait for ever")
	}
}

// What is counted is read for the last time when the process tree is complete,
// and what that cost is written.
func TestLoopEnds(t *testing.T) {
	var l *loop
	looked, ended := 0, false
	ctx, cancel := context.WithCancel(context.Background())
	l, rows := counting(false, Handler{
		Look: func(time.Time) error {
			if looked++; looked == 2 {
				cancel()
				time.AfterFunc(10*time.Millisecond, func() { close(l.tree.Complete) })
			}
			return nil
		},
		Runs: func() uint64 { return 7 },
		End: func() error {
			ended = true
			if !isComplete(l.tree) {
				t.Error("ended before the process tree was complete")
			}
			l.programs.Lost("cow", "no room", 3)
			l.programs.Lost("cow", "no room", 5)
			l.programs.Lost("cow", "no room", 5)
			return nil
		},
	})
	if err := l.watch(ctx); err != nil {
		t.Fatal(err)
	}
	if looked != 2 || !ended {
		t.Errorf("looked %d times, ended %v", looked, ended)
	}
	var lost []uint64
	costs := 0
	for _, r := range *rows {
		switch r := r.(type) {
		case traces.Lost:
			lost = append(lost, r.Count)
		case traces.Overhead:
			costs++
			if r.Probe != "test" {
				t.Errorf("cost of %q", r.Probe)
			}
		}
	}
	if len(lost) != 2 || lost[0] != 3 || lost[1] != 2 || costs != 1 {
		t.Errorf("losses %d, want 3 and 2; %d rows of costs, want 1", lost, costs)
	}
}
