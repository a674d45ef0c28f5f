package swallowedcrash_test

import (
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	"github.com/dptrace/dptrace/analyze/detect/swallowedcrash"
	"github.com/dptrace/dptrace/traces"
)

const second = int64(1e9)

// scene is a command (number 1, pid 100) and what it starts.
type scene struct{ *detecttest.Run }

func (s *scene) process(proc uint32, ppid int32, kind, exe, cmdline string) {
	s.Add(proc, traces.Process{Pid: int32(99 + proc), Ppid: ppid, StartTicks: uint64(proc), Kind: kind, Hook: "none", Cmdline: cmdline, Exe: exe, Cwd: "/home/me", Rank: -1, LocalRank: -1})
}

// torch is a process that imported torch.
func (s *scene) torch(proc uint32, ppid int32, kind, cmdline string) {
	s.Add(proc, traces.Process{Pid: int32(99 + proc), Ppid: ppid, StartTicks: uint64(proc), Kind: kind, Hook: "on", Cmdline: cmdline, Exe: "/usr/bin/python3", Cwd: "/home/me", Torch: "2.15.0", Rank: -1, LocalRank: -1})
}

// trains plays a few steps.
func (s *scene) trains(proc uint32) {
	s.Add(proc, traces.Loader{Loader: 1, File: "/home/me/train.py", Line: 8}, traces.Pass{Loader: 1, Phase: "begin"}, traces.Optimizer{Optimizer: 1})
	for b := range uint32(3) {
		s.Add(proc, traces.BatchNext{Loader: 1, Batch: b, Worker: -1, Status: "ok", Steps: uint64(b), Grad: true})
	}
}

func (s *scene) raises(proc uint32, kind string) {
	s.Add(proc, traces.Exception{Worker: -1, Stage: "exit", Sample: -1, Type: kind, Message: "no such key", File: "/home/me/data.py", Line: 31, Func: "load"})
}

// breaks is an error that comes out of the loader.
func (s *scene) breaks(proc uint32, kind string) {
	s.Add(proc, traces.Exception{Loader: 1, Worker: -1, Stage: "fetch", Sample: 7, Type: kind, Message: "no such key", File: "/home/me/data.py", Line: 31, Func: "load"})
	s.Add(proc, traces.BatchNext{Loader: 1, Batch: 3, Worker: -1, Status: "error", Steps: 3}, traces.Pass{Loader: 1, Phase: "end", End: "error", Delivered: 3})
}

func (s *scene) kernel(proc uint32, code, signal int32) {
	s.Wait(second)
	s.Add(proc, traces.Exit{ExitCode: code, Signal: signal, Source: "kernel"})
}

// told is that a parent waited for a process, and whether anything looked at what
// it got; "": nobody can say so.
func (s *scene) told(parent, pid, code int32, read string) {
	first := read
	if read == "yes" {
		first = "no"
	}
	s.Add(uint32(parent), traces.Act{Op: "status", Pid: pid, ExitCode: code, Read: first, By: "Popen.returncode"})
	if read == "yes" {
		s.Add(uint32(parent), traces.Act{Op: "status", Pid: pid, ExitCode: code, Read: read, By: "subprocess.call"})
	}
}

const (
	python = "/usr/bin/python3"
	bash   = "/usr/bin/bash"
)

func TestCrashes(t *testing.T) {
	for _, c := range scenes {
		t.Run(c.name, func(t *testing.T) {
			s := &scene{detecttest.NewRun(t)}
			s.Meta("tier", c.tier)
			c.play(s)
			result, err := analyze.Run(s.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			said := verdict(result)
			words := strings.Split(c.want, "|")
			if !strings.HasPrefix(said, words[0]+"\n") {
				t.Fatalf("is not %s:\n%s", words[0], said)
			}
			for _, w := range words[1:] {
				if !strings.Contains(said, w) {
					t.Errorf("does not say %q:\n%s", w, said)
				}
			}
			if c.not != "" && strings.Contains(said, c.not) {
				t.Errorf("says %q:\n%s", c.not, said)
			}
		})
	}
}

// verdict is what the rule says about the run: its finding in whole, else its check.
func verdict(r *analyze.Result) string {
	for _, f := range r.Findings {
		if f.Rule == swallowedcrash.Rule.ID {
			text := f.Certainty.String() + "\n" + f.Title
			for _, e := range f.Evidence {
				text += "\n" + e.Text
			}
			return text + "\n" + f.Cost + "\n" + f.Fix + "\nno bug if " + f.NotABugIf
		}
	}
	for _, c := range r.Checks {
		if c.Rule == swallowedcrash.Rule.ID {
			return string(c.Status) + "\n" + c.Reason
		}
	}
	return "nothing\n"
}

// TestHosts: of several recordings the one that says most counts: a crash, what is
// not known, what is right; one that is a training itself does not count.
func TestHosts(t *testing.T) {
	training := func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.kernel(1, 0, 0)
		s.End("0")
	}
	below := func(code int32, source string) func(*scene) {
		return func(s *scene) {
			s.process(1, 99, "target", bash, "bash run.sh")
			s.torch(2, 100, "python", "python3 train.py")
			s.trains(2)
			s.Wait(second)
			s.Add(2, traces.Exit{ExitCode: code, Source: source})
			s.kernel(1, 0, 0)
			s.End("0")
		}
	}
	well, unknown, crashed := below(0, "kernel"), below(-1, "gone"), below(1, "kernel")
	for _, c := range []struct {
		name string
		play [3]func(*scene)
		want string
	}{
		{"trainings", [3]func(*scene){training, training, training}, "not-applicable"},
		{"one went well", [3]func(*scene){training, well, training}, "clean"},
		{"of one it is not known", [3]func(*scene){training, well, unknown}, "cannot-tell"},
		{"one crashed", [3]func(*scene){well, unknown, crashed}, "proven"},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := detecttest.NewRun(t)
			for i, play := range c.play {
				s := &scene{first}
				if i > 0 {
					s.Run = first.Part(t, "host-"+string(rune('1'+i)))
				}
				s.Meta("tier", "kernel")
				play(s)
			}
			result, err := analyze.Run(first.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			if said := verdict(result); !strings.HasPrefix(said, c.want+"\n") {
				t.Errorf("is not %s:\n%s", c.want, said)
			}
		})
	}
}
