package frames_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dptrace/dptrace/probes/frames"
)

// Who watches processes is told of those that were there before, and of each that comes and goes, once.
func TestProcesses(t *testing.T) {
	var p frames.Processes
	var told []string
	p.Add(frames.Process{Pid: 1, Thread: 10})
	p.Watch(frames.Watcher{
		Begun: func(process frames.Process) {
			told = append(told, fmt.Sprintf("begun %d %d", process.Pid, process.Thread))
		},
		Ended: func(pid int32) { told = append(told, fmt.Sprintf("ended %d", pid)) },
	})
	p.Add(frames.Process{Pid: 2, Thread: 20})
	p.Add(frames.Process{Pid: 2, Thread: 21}) // exec, or the pid is another process's now
	p.Remove(3)
	p.Remove(2)
	p.Remove(2)
	if want := []string{"begun 1 10", "begun 2 20", "begun 2 21", "ended 2"}; !slices.Equal(told, want) {
		t.Errorf("%q, want %q", told, want)
	}
	if _, ok := p.Of(2); ok {
		t.Error("one that has ended is known")
	}
	if one, ok := p.Of(1); !ok || one.Thread != 10 {
		t.Errorf("%+v %v", one, ok)
	}
}
