package swallowedcrash_test

import "github.com/dptrace/dptrace/traces"

// scenes are commands and what they start.
var scenes = []struct {
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
		s.told(1, 101, 1, "no")
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|did not look at its exit code|train.py crashed (KeyError, exit code 1) and the command exited with 0|Nobody caught KeyError: no such key, at data.py:31 in load|3 batches into it, after 2 optimizer steps|sys.exit(result.returncode)|The command, `python3 run.py`, exited with 0", "set -e"},
	{"a wrapper in shell", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.Add(2, traces.Signal{Signal: 11, SiCode: 1, SenderPid: 101, SenderProc: 2, SenderAncestor: true, Address: 64, Mapping: "none"})
		s.kernel(2, -1, 11)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|train.py crashed (SIGSEGV)|set -eo pipefail      # at the top of run.sh", "subprocess"},
	{"a wrapper in shell that looks at the code", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.Add(1, traces.Act{Op: "looks"})
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.raises(2, "KeyError")
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely|the caller looks at how this process ended", ""},
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
		s.told(2, 102, 3, "no")
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
		s.told(1, 101, 1, "no")
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|process.exitcode", ""},
	{"a wrapper in Python that was not watched", "kernel", func(s *scene) {
		s.process(1, 99, "target", python, "python3 -I run.py")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.raises(2, "KeyError")
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely|no bug if the caller looks at how", ""},
	{"make, of which nobody knows what it was told to do about it", "kernel", func(s *scene) {
		s.process(1, 99, "target", "/usr/bin/make", "make -k models")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.raises(2, "KeyError")
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely|no bug if the caller looks at how", ""},
	{"a wrapper that looks at the exit code", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 run.py")
		s.torch(2, 100, "python", "python3 train.py --fast")
		s.trains(2)
		s.raises(2, "KeyError")
		s.kernel(2, 1, 0)
		s.told(1, 101, 1, "yes")
		s.kernel(1, 0, 0)
		s.End("0")
	}, "note|crashed (KeyError, exit code 1), and its parent looked at how it ended|(subprocess.call)|Nothing, if this is meant", "command exited with 0\n"},
	{"the one above the one who passes it on looks at it", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 sweep.py")
		s.process(2, 100, "other", bash, "bash one.sh")
		s.torch(3, 101, "python", "python3 train.py")
		s.trains(3)
		s.kernel(3, -1, 6)
		s.kernel(2, 134, 0)
		s.told(1, 101, 134, "yes")
		s.kernel(1, 0, 0)
		s.End("0")
	}, "note", ""},
	{"os.system, and what it gives is thrown away", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 sweep.py")
		begin := s.Now() - 1
		s.process(2, 100, "other", "/usr/bin/dash", "sh -c python3 train.py --lr 0.1")
		s.torch(3, 101, "python", "python3 train.py --lr 0.1")
		s.trains(3)
		s.kernel(3, -1, 6)
		s.kernel(2, 134, 0)
		s.Add(1, traces.Act{Op: "status", ExitCode: 134, Read: "no", By: "os.system", BeginNS: begin})
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|(os.system)", ""},
	{"an exit code of its own, in a shell", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.trains(2)
		s.Add(2, traces.Act{Op: "end"})
		s.kernel(2, 3, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely|ended badly (exit code 3)|no bug if its exit code is an answer", "crashed"},
	{"with fewer samples in a batch it goes well", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py --batch 64")
		s.trains(2)
		s.raises(2, "torch.cuda.OutOfMemoryError")
		s.kernel(2, 1, 0)
		s.torch(3, 100, "python", "python3 train.py --batch 32")
		s.trains(3)
		s.kernel(3, 0, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely|no bug if it was tried again with other arguments", ""},
	{"one of a sweep, whose driver waits for nobody's code", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 sweep.py")
		s.torch(2, 100, "python", "python3 train.py --lr 1")
		s.trains(2)
		s.raises(2, "ValueError")
		s.kernel(2, 1, 0)
		s.told(1, 101, 1, "no")
		s.torch(3, 100, "python", "python3 train.py --lr 0.1")
		s.trains(3)
		s.kernel(3, 0, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely|no bug if it was tried again with other arguments|train.py crashed (ValueError", "the caller looks at"},
	{"the last one of a sweep, whose driver waits for nobody's code", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 sweep.py")
		s.torch(2, 100, "python", "python3 train.py --lr 0.1")
		s.trains(2)
		s.kernel(2, 0, 0)
		s.torch(3, 100, "python", "python3 train.py --lr 1")
		s.trains(3)
		s.raises(3, "ValueError")
		s.kernel(3, 1, 0)
		s.told(1, 102, 1, "no")
		s.kernel(1, 0, 0)
		s.End("0")
	}, "proven|train.py crashed (ValueError", ""},
	{"a driver that gets what the training prints, or waits through a library", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 sweep.py")
		s.torch(2, 100, "python", "python3 train.py --lr 1")
		s.trains(2)
		s.raises(2, "ValueError")
		s.kernel(2, 1, 0)
		s.told(1, 101, 1, "")
		s.kernel(1, 0, 0)
		s.End("0")
	}, "likely|no bug if the caller looks at how this process ended, or at what it told", "did not look at its exit code"},
	{"hook tier, the parent waited for it", "hook", func(s *scene) {
		s.torch(1, 99, "target", "python3 run.py")
		s.torch(2, 100, "fork", "python3 run.py")
		s.trains(2)
		s.told(1, 101, 7, "no")
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "proven|(exit code 7) and the command exited with 0", ""},
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

	{"the loader's error is caught in the training itself", "hook", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.breaks(1, "KeyError")
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "likely|KeyError ended pass 0 of the loader at train.py:8 after 3 batches, and the program exited with 0|takes this error for the end of its data", ""},

	{"errors are passed over, and one of them ends the pass", "hook", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.breaks(1, "KeyError")
		s.Add(1, traces.BatchNext{Loader: 1, Batch: 3, Worker: -1, Status: "ok", Steps: 3, Grad: true},
			traces.Exception{Loader: 1, Worker: -1, Stage: "fetch", Sample: 9, Type: "OSError", Message: "gone", File: "/home/me/data.py", Line: 31, Func: "load"},
			traces.BatchNext{Loader: 1, Batch: 4, Worker: -1, Status: "error", Steps: 4})
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "likely|OSError ended pass 0 of the loader at train.py:8 after 4 batches, and the program exited with 0", "KeyError"},

	// Silent.
	{"the loader's error is passed over, and the pass comes to its end", "hook", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.breaks(1, "KeyError")
		s.Add(1, traces.BatchNext{Loader: 1, Batch: 3, Worker: -1, Status: "ok", Steps: 3, Grad: true}, traces.BatchNext{Loader: 1, Batch: 4, Worker: -1, Status: "stop", Steps: 4})
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "not-applicable|no process below the command used torch", ""},
	{"the loader's error is passed over, and the loop breaks off later", "hook", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.breaks(1, "KeyError")
		s.Add(1, traces.BatchNext{Loader: 1, Batch: 3, Worker: -1, Status: "ok", Steps: 3, Grad: true})
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "not-applicable|no process below the command used torch", ""},
	{"the loader's error is caught, and another pass comes", "hook", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.breaks(1, "KeyError")
		s.Wait(second)
		s.Add(1, traces.Pass{Loader: 1, Pass: 1, Phase: "begin"}, traces.BatchNext{Loader: 1, Pass: 1, Worker: -1, Status: "ok", Steps: 3, Grad: true})
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "not-applicable|no process below the command used torch", ""},
	{"the loader's error is caught, and the exit code says so", "hook", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.breaks(1, "KeyError")
		s.Add(1, traces.Exit{ExitCode: 1, Source: "wait"})
		s.End("1")
	}, "not-applicable|no process below the command used torch", ""},
	{"Ctrl-C in the loader", "hook", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.breaks(1, "KeyboardInterrupt")
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "not-applicable|no process below the command used torch", ""},
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
	}, "not-applicable|no process below the command used torch", "but workers"},
	{"a worker and a pool's child", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.trains(1)
		s.torch(2, 100, "worker", "python3 train.py")
		s.torch(3, 100, "task", "python3 train.py")
		s.kernel(2, -1, 9)
		s.kernel(3, -1, 11)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "not-applicable|no process below the command used torch but workers and children of pools", ""},
	{"a pool's child alone", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.torch(2, 100, "task", "python3 train.py")
		s.kernel(2, -1, 11)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "not-applicable|used torch but children of pools", "workers"},
	{"a worker alone", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.torch(2, 100, "worker", "python3 train.py")
		s.kernel(2, 0, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "not-applicable|used torch but workers", "pools"},
	{"a worker that could not load its dataset", "kernel", func(s *scene) {
		s.torch(1, 99, "target", "python3 train.py")
		s.Add(1, traces.Loader{Loader: 1, NumWorkers: 1, File: "/home/me/train.py", Line: 8}, traces.Pass{Loader: 1, Phase: "begin"}, traces.Worker{Loader: 1, Pid: 101, Phase: "begin"})
		s.torch(2, 100, "python", "python3 -c from multiprocessing.spawn import spawn_main --multiprocessing-fork")
		s.kernel(2, 1, 0)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "not-applicable|no process below the command used torch", ""},
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
	}, "not-applicable|no process below the command used torch", ""},
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
	}, "not-applicable|no process below the command used torch", ""},
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
	}, "not-applicable|no process below the command used torch", ""},
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
	}, "cannot-tell|the recording was cut before the program ended", ""},
	{"exit rows were lost", "kernel", func(s *scene) {
		s.process(1, 99, "target", bash, "bash run.sh")
		s.torch(2, 100, "python", "python3 train.py")
		s.Add(0, traces.Lost{Source: "kernel", Table: "exit", Count: 3, Reason: "the ring was full"})
		s.kernel(1, 0, 0)
		s.End("0")
	}, "cannot-tell|records were lost: 3 of exit", ""},
}
