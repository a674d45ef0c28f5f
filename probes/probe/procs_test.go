package probe

import (
	"slices"
	"testing"

	"github.com/dptrace/dptrace/traces"
)

type exits []traces.Exit

func (e *exits) Append(row any) { *e = append(*e, row.(traces.Exit)) }

func TestNumbers(t *testing.T) {
	p := NewProcs()
	first, isNew := p.Of(10, 1)
	if first.Number != 1 || !isNew {
		t.Errorf("first: %+v, new %v", first, isNew)
	}
	if again, isNew := p.Of(10, 1); again.Number != 1 || isNew {
		t.Errorf("again: %+v, new %v", again, isNew)
	}
	if reused, _ := p.Of(10, 2); reused.Number != 2 {
		t.Errorf("a pid used again: %+v", reused)
	}
	p.MarkHooked(10, 2, true)
	if after := p.Exec(10, 2); after.Number != 3 || after.Hooked {
		t.Errorf("after exec: %+v", after)
	}
	if got, _ := p.ByPid(10); got.Number != 3 {
		t.Errorf("by pid: %+v", got)
	}
	// The ring of a process that had ended before anybody could ask for its start.
	if got := p.OfEnded(10); got.Number != 3 {
		t.Errorf("ended, and seen alive by another probe: %+v", got)
	}
	if got := p.OfEnded(11); got.Number != 4 || got.Start != 0 {
		t.Errorf("ended, never seen: %+v", got)
	}
	p.Forget(10, 2)
	if got, _ := p.ByPid(10); got.Number != 1 {
		t.Errorf("by pid after it was forgotten: %+v", got)
	}
	if torch, unhooked := p.Count(); torch != 1 || unhooked != 0 {
		t.Errorf("counts %d %d", torch, unhooked)
	}
}

func TestExits(t *testing.T) {
	p := NewProcs()
	p.Of(10, 1)
	var rows exits
	for _, source := range []string{"gone", "exitcode", "gone"} {
		p.Exit(&rows, 10, 1, traces.Exit{Source: source})
	}
	p.Exit(&rows, 77, 1, traces.Exit{Source: "gone"}) // not of the run
	var got []string
	for _, r := range rows {
		got = append(got, r.Source)
	}
	if want := []string{"gone", "exitcode"}; !slices.Equal(got, want) {
		t.Errorf("exits %q, want %q", got, want)
	}
}

// What procfs says of a process must not come after what its hook says.
func TestIfUnhooked(t *testing.T) {
	p := NewProcs()
	p.Of(10, 1)
	ran := 0
	p.IfUnhooked(10, 1, func() { ran++ })
	p.MarkHooked(10, 1, false)
	p.IfUnhooked(10, 1, func() { ran++ })
	p.IfUnhooked(11, 1, func() { ran++ })
	if ran != 1 {
		t.Errorf("ran %d times, want once", ran)
	}
}
