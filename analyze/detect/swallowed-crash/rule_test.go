package crash_test

import (
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/detect/detecttest"
	crash "github.com/dptrace/dptrace/analyze/detect/swallowed-crash"
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

func (s *scene) kernel(proc uint32, code, signal int32) {
	s.Wait(second)
	s.Add(proc, traces.Exit{ExitCode: code, Signal: signal, Source: "kernel"})
}

const (
	python = "/usr/bin/python3"
	bash   = "/usr/bin/bash"
)

var cases = []struct {
	name, tier string
	play       func(*scene)
	want, not  string
}{
	// Found.
	{"a wrapper in Python", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 run.py")
		s.torch(2, 100, "python", "python3 train.py --fast")
		s.trains(2)
		s.raises(2, "KeyError")
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|train.py crashed (KeyError, exit code 1) and the command exited with 0|Nobody caught KeyError: no such key, at data.py:31 in load|3 batches into it, after 2 optimizer steps|sys.exit(result.returncode)|The command, `python3 run.py`, exited with 0", "set -e"},
	{"a wrapper in shell", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.Add(2, traces.Signal{Signal: 11, SiCode: 1, SenderPid: 101, SenderProc: 2, SenderAncestor: true, Address: 64, Mapping: "none"})
		s.kernel(2, -1, 11)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|train.py crashed (SIGSEGV)|set -eo pipefail      # at the top of run.sh", "subprocess"},
	{"it trained nothing, and nobody did", "kernel", func(s *scene) {
		s.process(1, 99, "target", "/usr/bin/dash", "sh run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.raises(2, "FileNotFoundError")
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|before its first batch|No process of the run iterated a DataLoader|set -e  ", "pipefail"},
	{"the one in the middle hid it", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash all.sh")
		s.process(2, 100, "python", python, "python3 launch.py")
		s.torch(3, 101, "python", "python3 train.py")
		s.trains(3)
		s.kernel(3, 3, 0)
		s.kernel(2, 0, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|Its ancestor pid 101, `python3 launch.py`, ended with exit code 0, and so did the command|sys.exit(result.returncode)", ""},
	{"killed by the out-of-memory killer", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.Add(2, traces.Signal{Signal: 9, SiCode: 128}, traces.Oom{Comm: "python3"})
		s.kernel(2, -1, 9)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|SIGKILL|the out-of-memory killer had chosen it", ""},
	{"two ranks", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		for p := range uint32(2) {
			s.torch(2+p, 100, "python", "python3 train.py")
			s.trains(2 + p)
		}
		s.kernel(2, 1, 0)
		s.kernel(3, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|2 processes of train.py crashed", ""},
	{"a child of multiprocessing", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 run.py")
		s.torch(2, 100, "fork", "python3 run.py")
		s.trains(2)
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|process.exitcode", ""},
	{"hook tier", "hook", func(s *scene) {
		s.torch(1, 99, "target", "python3 run.py")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.raises(2, "KeyError")
		s.Add(2, traces.Exit{ExitCode: -1, Source: "gone"})
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "likely|train.py crashed (KeyError) and the command exited with 0", "exit code 1"},
	{"not hooked, torch is loaded", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.Add(2, traces.Process{Pid: 101, Ppid: 100, Kind: "python", Hook: "off", Cmdline: "python3 -I train.py", Exe: python, Note: "started with -I, which ignores PYTHONPATH; torch is loaded", Rank: -1})
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely|not known, it was not watched from inside", ""},
	{"a helper beside a training", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 check_gpu.py")
		s.raises(2, "RuntimeError")
		s.kernel(2, 1, 0)
		s.torch(3, 100, "python", "python3 train.py")
		s.trains(3)
		s.kernel(3, 0, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely|check_gpu.py crashed", ""},
	{"a probe", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 -c import torch; torch.ones(1).cuda()")
		s.raises(2, "RuntimeError")
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely", ""},
	{"a usage error", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py --no-such")
		s.kernel(2, 2, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely|exit code 2", ""},
	{"an orphan", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.process(2, 100, "other", bash, "bash start.sh")
		s.torch(3, 101, "python", "python3 train.py")
		s.trains(3)
		s.kernel(2, 0, 0)
		s.kernel(3, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely|its parent had ended before", ""},
	{"tried again, and it went well", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.kernel(2, 1, 0)
		s.torch(3, 100, "python", "python3 train.py")
		s.trains(3)
		s.kernel(3, 0, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "note|ended well when it was run again|run again as pid 102", ""},
	{"tried again, and it crashed again", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		for p := range uint32(2) {
			s.torch(2+p, 100, "python", "python3 train.py")
			s.trains(2 + p)
			s.kernel(2+p, 1, 0)
		}
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|2 processes of train.py crashed", ""},
	{"tried again, hook tier", "hook", func(s *scene) {
		s.torch(1, 99, "target", "python3 run.py")
		s.torch(2, 100, "python", "python3 train.py")
		s.raises(2, "KeyError")
		s.Wait(second)
		s.torch(3, 100, "python", "python3 train.py")
		s.trains(3)
		s.End("0")
	}, "note", ""},
	{"a crash under a crash", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.torch(3, 101, "fork", "python3 train.py")
		s.trains(3)
		s.kernel(3, -1, 6)
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|train.py crashed (exit code 1)", "SIGABRT"},

	// Silent.
	{"the command reports it", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.raises(2, "KeyError")
		s.kernel(2, 1, 0)
		s.kernel(1, 1, 0)
		s.End("1")
	}, "clean|the command itself ended with exit code 1", ""},
	{"all is well", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.kernel(2, 0, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "clean|1 process that used torch, none crashed", ""},
	{"the command is the training", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "nothing", ""},
	{"a worker and a pool's child", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.torch(2, 100, "worker", "python3 train.py")
		s.torch(3, 100, "task", "python3 train.py")
		s.kernel(2, -1, 9)
		s.kernel(3, -1, 11)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "nothing", ""},
	{"a worker that could not load its dataset", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.Add(1, traces.Loader{Loader: 1, NumWorkers: 1, File: "/home/me/train.py", Line: 8}, traces.Pass{Loader: 1, Phase: "begin"}, traces.Worker{Loader: 1, Pid: 101, Phase: "begin"})
		s.torch(2, 100, "python", "python3 -c from multiprocessing.spawn import spawn_main --multiprocessing-fork")
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "nothing", ""},
	{"stopped by its parent", "kernel", func(s *scene) {
		s.process(1, 99, "target", python, "python3 run.py")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.Add(2, traces.Signal{Signal: 15, SenderPid: 100, SenderProc: 1, SenderAncestor: true})
		s.kernel(2, -1, 15)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"stopped by its parent, it ends with a code of its own", "kernel", func(s *scene) {
		s.process(1, 99, "target", python, "python3 run.py")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.Add(2, traces.Signal{Signal: 15, SenderPid: 100, SenderProc: 1, SenderAncestor: true})
		s.kernel(2, 143, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"stopped with the command, which ends well", "kernel", func(s *scene) {
		s.process(1, 99, "target", python, "python3 run.py")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		for _, p := range []uint32{1, 2} {
			s.Add(p, traces.Signal{Signal: 2, SiCode: 128})
		}
		s.kernel(2, -1, 2)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"Ctrl-C, hook tier", "hook", func(s *scene) {
		s.process(1, 99, "target", python, "python3 run.py")
		s.torch(2, 100, "python", "python3 train.py")
		s.raises(2, "KeyboardInterrupt")
		s.End("0")
	}, "clean", ""},
	{"no torch", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.process(2, 100, "other", "/usr/bin/git", "git diff --quiet")
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "nothing", ""},
	{"a fork with the hook that became another program", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.torch(2, 100, "fork", "python3 train.py")
		s.process(2, 100, "", "/usr/bin/git", "git diff --quiet")
		s.kernel(2, 1, 0)
		s.torch(3, 100, "fork", "python3 train.py")
		s.process(3, 100, "", python, "python3 lint.py")
		s.kernel(3, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "nothing", ""},
	{"it outlived the command", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.kernel(1, 0, 0)
		s.kernel(2, 1, 0)
		s.End("0")
	}, "clean", ""},
	{"it was left running", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"torch's own helper", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.torch(2, 100, "python", "python3 /usr/lib/python3/torch/_inductor/compile_worker/__main__.py --workers=8")
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "nothing", ""},
	{"it kills itself when its parent is gone", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.torch(3, 101, "python", "python3 watcher.py")
		s.kernel(2, 0, 0)
		s.Add(3, traces.Signal{Signal: 9, SenderPid: 102, SenderProc: 3, SenderAncestor: true})
		s.kernel(3, -1, 9)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"ends unknown", "hook", func(s *scene) {
		s.process(1, 99, "target", python, "torchrun train.py")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.Add(2, traces.Exit{ExitCode: -1, Source: "gone"})
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "cannot-tell|how 1 of 1 process that used torch ended is not known: it is visible in the kernel tier only", ""},
	{"not hooked, nobody knows whether it used torch", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.Add(2, traces.Process{Pid: 101, Ppid: 100, Kind: "python", Hook: "off", Cmdline: "python3 -I x.py", Exe: python, Rank: -1})
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "cannot-tell|were not hooked", ""},
	{"not hooked, it lived too shortly for torch", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(3, 100, "python", "python3 train.py")
		s.kernel(3, 0, 0)
		s.Add(2, traces.Process{Pid: 101, Ppid: 100, Kind: "python", Hook: "off", Cmdline: "python3 -I x.py", Exe: python, Rank: -1},
			traces.Exit{ExitCode: 1, Source: "kernel"})
		s.kernel(1, 0, 0)
		s.End("0")
	}, "clean|1 process that used torch, none crashed", ""},
	{"cut", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.kernel(2, 1, 0)
	}, "cannot-tell|exit code is not known", ""},
	{"exit rows were lost", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.Add(0, traces.Lost{Source: "kernel", Table: "exit", Count: 3, Reason: "the ring was full"})
		s.kernel(1, 0, 0)
		s.End("0")
	}, "cannot-tell|records were lost: 3 of exit", ""},
}

func TestCrashes(t *testing.T) {
	for _, c := range cases {
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
		if f.Rule == crash.Rule.ID {
			text := f.Certainty.String() + "\n" + f.Title
			for _, e := range f.Evidence {
				text += "\n" + e.Text
			}
			return text + "\n" + f.Cost + "\n" + f.Fix
		}
	}
	for _, c := range r.Checks {
		if c.Rule == crash.Rule.ID {
			return string(c.Status) + "\n" + c.Reason
		}
	}
	return "nothing\n"
}
