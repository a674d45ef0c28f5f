package workerkilled_test

import "github.com/dptrace/dptrace/traces"

// scenes are played after newScene.
var scenes = []struct {
	name, tier string
	play       func(*scene)
	want       string // certainty or status, then words that the title, evidence or reason hold
	not        string // words that they do not
}{
	// Found.
	{"killed, hook tier", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.exit(0, 0, "yes")
		s.exit(1, -9, "no")
		s.End("0")
	}, "proven|Worker 1 died in pass 0: SIGKILL|before its parent began|Who sent SIGKILL is visible in the kernel tier only|batch 5 (samples 10, 11) and had not|batch 7|The training loop then got RuntimeError", "batch 4"},
	{"killed, hook tier, the error is not caught", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.Add(2, traces.Exit{ExitCode: -1, Source: "gone"})
		s.Add(3, traces.Exit{ExitCode: -1, Source: "gone"})
		s.End("1")
	}, "proven|Worker 1 died in pass 0: SIGKILL|which torch reported", ""},
	{"killed while the loop trains", "hook", func(s *scene) {
		s.complaint("exit", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.End("1")
	}, "proven|Worker 1 died in pass 0: SIGKILL", ""},
	{"killed by another process", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 9, SenderPid: 4242, SenderComm: "reaper", SenderCmdline: "/bin/sh reaper.sh"})
		s.kernel(3, -1, 9)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.exit(1, -9, "no")
		s.kernel(2, 0, 0)
		s.End("1")
	}, "proven|SIGKILL sent by pid 4242 (reaper)|/bin/sh reaper.sh, which is not of the run|Keep `/bin/sh reaper.sh`", "visible in the kernel tier"},
	{"SIGTERM by another process", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 15, SenderPid: 4242, SenderComm: "reaper"})
		s.kernel(3, -1, 15)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Terminated. ")
		s.kernel(2, 0, 0)
		s.End("1")
	}, "proven|SIGTERM sent by pid 4242 (reaper)", ""},
	{"killed, forkserver: nobody knows whether it was asked", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 9, SenderPid: 4242, SenderComm: "reaper"})
		s.kernel(3, -1, 9)
		s.Wait(second)
		s.Add(1, traces.BatchNext{Loader: 1, Batch: 4, Worker: -2, Status: "ok", CallNS: s.Now()})
		s.exit(1, -9, "")
		s.exit(0, 0, "")
		s.End("0")
	}, "proven|SIGKILL sent by pid 4242", ""},
	{"oom, control group", "kernel", func(s *scene) {
		s.oomKills(s.begin, 4)
		s.Add(3, traces.Signal{Signal: 9, SiCode: 128}, traces.Oom{Comm: "python3"})
		s.kernel(3, -1, 9)
		s.oomKills(s.Now()+second, 5)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.End("1")
	}, "proven|control group /job may use 2.15 GB|rose from 4 to 5|marked pid 102|memory-growth-cow", "host"},
	{"oom, machine", "kernel", func(s *scene) {
		s.oomKills(s.begin, 4)
		s.Add(3, traces.Signal{Signal: 9, SiCode: 128}, traces.Oom{Comm: "python3"})
		s.kernel(3, -1, 9)
		s.oomKills(s.Now()+second, 4)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.End("1")
	}, "proven|the machine was out of memory|the machine has 68.72 GB", "/job may use"},
	{"oom, by the counter alone", "hook", func(s *scene) {
		s.oomKills(s.begin, 4)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.oomKills(s.Now()+second, 5)
		s.End("1")
	}, "proven|SIGKILL by the out-of-memory killer, control group /job may use 2.15 GB|exactly 1 process", "kernel tier"},
	{"oom, more kills than deaths", "hook", func(s *scene) {
		s.oomKills(s.begin, 4)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.oomKills(s.Now()+second, 7)
		s.End("1")
	}, "proven|SIGKILL while the out-of-memory killer was at work on control group /job|rose from 4 to 7", "by the out-of-memory killer,"},
	{"no oom, by the counter", "hook", func(s *scene) {
		s.oomKills(s.begin-20*second, 4)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.oomKills(s.Now()+second, 4)
		s.End("1")
	}, "proven|stayed at 4|kernel tier only", "the out-of-memory killer,"},
	{"oom takes the main process too", "kernel", func(s *scene) {
		s.oomKills(s.begin, 4)
		for _, proc := range []uint32{3, 1} {
			s.Add(proc, traces.Signal{Signal: 9, SiCode: 128}, traces.Oom{Comm: "python3"})
			s.kernel(proc, -1, 9)
		}
		s.kernel(2, 0, 0)
		s.oomKills(s.Now()+second, 6)
		s.End("137")
	}, "proven|control group /job may use", ""},
	{"oom takes the main process too, by the counter alone", "hook", func(s *scene) {
		s.oomKills(s.begin, 4)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.Add(1, traces.Exit{ExitCode: -1, Signal: 9, Source: "wait"})
		s.oomKills(s.Now()+second, 6)
		s.End("137")
	}, "proven|SIGKILL by the out-of-memory killer, control group /job|exactly 2 processes", ""},
	{"SIGBUS in /dev/shm", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 7, SiCode: 2, SenderPid: 102, SenderProc: 3, SenderAncestor: true, Address: 0x7f0000, Mapping: "shm", MappingPath: "/dev/shm/torch_102_1_0"},
			traces.Signal{Signal: 7, SiCode: -6, SenderPid: 102, SenderProc: 3, SenderAncestor: true})
		s.kernel(3, -1, 7)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.")
		s.End("1")
	}, "proven|SIGBUS in /dev/shm/torch_102_1_0, shared memory was full|--shm-size|(2 x 2 + 1) = 5", "file_system\""},
	{"SIGBUS in a file", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 7, SiCode: 2, SenderPid: 102, SenderProc: 3, SenderAncestor: true, Address: 0x7f0000, Mapping: "file", MappingPath: "/data/x.bin"})
		s.kernel(3, -1, 7)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.")
		s.End("1")
	}, "proven|SIGBUS in /data/x.bin, which is not shared memory|/dev/shm has no part in it", "shm-size"},
	{"SIGBUS, hook tier", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.")
		s.End("1")
	}, "proven|SIGBUS, in memory whose backing is gone|kernel tier only", ""},
	{"SIGSEGV at null", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 11, SiCode: 1, SenderPid: 102, SenderProc: 3, SenderAncestor: true, Address: 0, Mapping: "none"},
			traces.Signal{Signal: 11, SiCode: -6, SenderPid: 102, SenderProc: 3, SenderAncestor: true})
		s.kernel(3, -1, 11)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Segmentation fault. ")
		s.End("1")
	}, "proven|SIGSEGV at address 0x0, a null pointer|for i in [10, 11]", ""},
	{"abort", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 6, SiCode: -6, SenderPid: 102, SenderProc: 3, SenderAncestor: true})
		s.kernel(3, -1, 6)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Aborted. ")
		s.End("1")
	}, "proven|SIGABRT, it called abort()", "sent by"},
	{"it kills itself", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 9, SenderPid: 102, SenderComm: "python3", SenderProc: 3, SenderAncestor: true})
		s.kernel(3, -1, 9)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.End("1")
	}, "proven|SIGKILL, which it sent to itself", ""},
	{"forkserver, killed", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid(s) 102) exited unexpectedly")
		s.exit(0, 0, "")
		s.exit(1, -9, "")
		s.End("1")
	}, "proven|SIGKILL", ""},
	{"os._exit", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid(s) 102) exited unexpectedly")
		s.exit(0, 0, "yes")
		s.exit(1, 3, "no")
		s.End("1")
	}, "proven|Worker 1 died in pass 0: exit code 3|os._exit()", "kernel tier"},
	{"sys.exit in a fetch", "hook", func(s *scene) {
		s.Add(3, traces.Exception{Worker: 1, Batch: 5, Stage: "fetch", Sample: 10, Type: "SystemExit", Message: "3", File: "/home/me/data.py", Line: 12, Func: "__getitem__"})
		s.exit(1, 3, "no")
		s.exit(0, 0, "yes")
		s.End("1")
	}, "proven|SystemExit at data.py:12, exit code 3|(sample 10)|At data.py:12: raise an Exception|batch 5 (samples 10, 11) and had not", ""},
	{"sys.exit in a fetch, and the parent finds it still alive", "hook", func(s *scene) {
		s.Add(3, traces.Exception{Worker: 1, Batch: 5, Stage: "fetch", Sample: 10, Type: "SystemExit", Message: "3", File: "/home/me/data.py", Line: 12, Func: "__getitem__"})
		s.complaint("next", "[Errno 2] No such file or directory")
		s.exit(1, 3, "yes")
		s.exit(0, 0, "yes")
		s.End("1")
	}, "proven|SystemExit at data.py:12, exit code 3", ""},
	{"a handler's sys.exit in a fetch, as the parent asks by SIGTERM", "hook", func(s *scene) {
		s.Add(1, traces.Pass{Loader: 1, Phase: "end", End: "dropped", Delivered: 4})
		s.Wait(second)
		s.Add(3, traces.Exception{Worker: 1, Batch: 5, Stage: "fetch", Sample: 10, Type: "SystemExit", Message: "3", File: "/home/me/data.py", Line: 12, Func: "__getitem__"})
		s.exit(1, 3, "yes")
		s.exit(0, 0, "yes")
		s.End("0")
	}, "clean", ""},
	{"sys.exit in a fetch, and the parent does not tell", "hook", func(s *scene) {
		s.Add(3, traces.Exception{Worker: 1, Batch: 5, Stage: "fetch", Sample: 10, Type: "SystemExit", Message: "3", File: "/home/me/data.py", Line: 12, Func: "__getitem__"})
		s.End("1")
	}, "proven|SystemExit at data.py:12|in a fetch", "exit code 3"},
	{"sys.exit() in a fetch, and the loop gets another error than torch's", "hook", func(s *scene) {
		s.leaves()
		s.missed("FileNotFoundError", connection)
		s.exit(1, 0, "no")
		s.exit(0, 0, "yes")
		s.End("0")
	}, "proven|Worker 1 died in pass 0: SystemExit at data.py:12, exit code 0|(sample 10)|batch 5 (samples 10, 11) and had not", ""},
	{"the same, and the parent finds it still alive", "kernel", func(s *scene) {
		s.leaves()
		s.kernel(3, 0, 0)
		s.missed("FileNotFoundError", connection)
		s.exit(1, 0, "yes")
		s.exit(0, 0, "yes")
		s.End("0")
	}, "proven|SystemExit at data.py:12, exit code 0|while its parent was still taking batches", ""},
	{"sys.exit() in a fetch, and in the loop: a handler's", "hook", func(s *scene) {
		s.leaves()
		s.missed("SystemExit", "/home/me/train.py")
		s.exit(1, 0, "no")
		s.exit(0, 0, "yes")
		s.End("0")
	}, "cannot-tell|1 of 2 workers: it left a fetch by SystemExit and ended with exit code 0; whether the whole run", ""},
	{"the same, kernel tier: the job was told", "kernel", func(s *scene) {
		for _, proc := range []uint32{1, 2, 3} {
			s.Add(proc, traces.Signal{Signal: 15, SenderPid: 7, SenderComm: "slurmstepd"})
		}
		s.leaves()
		s.kernel(3, 0, 0)
		s.missed("FileNotFoundError", connection)
		s.exit(1, 0, "no")
		s.exit(0, 0, "yes")
		s.End("0")
	}, "clean", ""},
	{"sys.exit() in a fetch, and the loop was left early", "hook", func(s *scene) {
		s.leaves()
		s.Wait(second)
		s.Add(1, traces.BatchNext{Loader: 1, Batch: 4, Worker: -2, Status: "ok", CallNS: s.Now()})
		s.Add(1, traces.Pass{Loader: 1, Phase: "end", End: "dropped", Delivered: 5})
		s.exit(1, 0, "no")
		s.exit(0, 0, "yes")
		s.End("0")
	}, "cannot-tell|it left a fetch by SystemExit", ""},
	{"a handler's sys.exit() in a fetch, as the parent asks", "hook", func(s *scene) {
		s.Add(1, traces.Pass{Loader: 1, Phase: "end", End: "dropped", Delivered: 4})
		s.Wait(second)
		s.leaves()
		s.exit(1, 0, "yes")
		s.exit(0, 0, "yes")
		s.End("0")
	}, "clean", ""},
	{"os._exit(0), and the loop gets another error than torch's", "hook", func(s *scene) {
		s.missed("FileNotFoundError", connection)
		s.exit(1, 0, "no")
		s.exit(0, 0, "yes")
		s.End("0")
	}, "cannot-tell|1 of 2 workers: it ended with exit code 0 before it was asked to, and the loop got FileNotFoundError", ""},
	{"an error of the program's own in the loop", "hook", func(s *scene) {
		s.missed("FileNotFoundError", "/home/me/sampler.py")
		s.exit(1, 0, "no")
		s.exit(0, 0, "yes")
		s.End("0")
	}, "clean", ""},
	{"killed by another child, which has ended", "kernel", func(s *scene) {
		s.Add(9, traces.Process{Pid: 150, Ppid: 102, Kind: "other", Hook: "none", Cmdline: "sh -c kill -9 102"})
		s.Add(3, traces.Signal{Signal: 9, SenderPid: 150, SenderComm: "sh", SenderProc: 9})
		s.kernel(3, -1, 9)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.End("1")
	}, "proven|SIGKILL sent by pid 150 (sh)|Keep `sh -c kill -9 102` from", "not of the run"},
	{"sys.exit(0) in a fetch", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid(s) 102) exited unexpectedly")
		s.exit(1, 0, "no")
		s.exit(0, 0, "yes")
		s.End("1")
	}, "proven|exit code 0", ""},
	{"both die", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid(s) 101, 102) exited unexpectedly")
		s.exit(0, -9, "no")
		s.exit(1, -9, "no")
		s.End("1")
	}, "proven|2 of 2 workers died, worker 0 first: SIGKILL|Worker 1 (pid 102)", ""},
	{"one of two by SIGTERM, hook tier", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Terminated. ")
		s.exit(0, 0, "yes")
		s.exit(1, -15, "no")
		s.End("1")
	}, "likely|SIGTERM", ""},
	{"nothing but that it is gone", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid(s) 102) exited unexpectedly")
		s.End("1")
	}, "likely|how is not known", ""},
	{"it dies before its first batch, while workers are started", "hook", func(s *scene) {
		s.Add(1, traces.Loader{Loader: 2, NumWorkers: 2, Prefetch: 2, File: "/home/me/train.py", Line: 30}, traces.Pass{Loader: 2, Phase: "begin"})
		s.complaint("exit", "DataLoader worker (pid(s) 107) exited unexpectedly")
		s.asked()
		s.End("1")
	}, "2 likely|A worker died in pass 0", ""},

	// Silent.
	{"killed by another process, and the program goes on with another pass", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 9, SenderPid: 4242, SenderComm: "reaper"})
		s.kernel(3, -1, 9)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.exit(1, -9, "no")
		s.again()
		s.End("0")
	}, "proven|SIGKILL sent by pid 4242 (reaper)", ""},
	{"killed by a helper of the program's, and it goes on with another pass", "kernel", func(s *scene) {
		s.Add(4, traces.Process{Pid: 103, Ppid: 100, Kind: "other", Hook: "none", Cmdline: "sh watchdog.sh", Exe: "/bin/sh", Rank: -1})
		s.Add(3, traces.Signal{Signal: 9, SenderPid: 103, SenderProc: 4, SenderComm: "sh"})
		s.kernel(3, -1, 9)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.exit(1, -9, "no")
		s.again()
		s.End("0")
	}, "likely|SIGKILL sent by pid 103 (sh)", ""},
	{"killed by somebody, and the program goes on with another pass", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.exit(1, -9, "no")
		s.again()
		s.End("0")
	}, "likely|Worker 1 died in pass 0: SIGKILL", ""},
	{"SIGSEGV, and the program goes on with another pass", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Segmentation fault. ")
		s.exit(1, -11, "no")
		s.again()
		s.End("0")
	}, "proven|SIGSEGV", ""},
	{"the program kills it itself, and goes on with another pass", "hook", func(s *scene) {
		s.Add(1, traces.Act{Op: "signal", Pid: 102, Signal: 9, By: "os.kill"})
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.exit(1, -9, "no")
		s.exit(0, 0, "yes")
		s.again()
		s.End("0")
	}, "clean|none died before it was asked", ""},
	{"a watchdog of the program's kills it", "hook", func(s *scene) {
		s.Add(4, traces.Process{Pid: 103, Ppid: 100, Kind: "python", Hook: "on", Cmdline: "python3 train.py", Torch: "2.15.0", Rank: -1})
		s.Add(4, traces.Act{Op: "signal", Pid: 102, Signal: 9, By: "os.kill"})
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.exit(1, -9, "no")
		s.exit(0, 0, "yes")
		s.again()
		s.End("0")
	}, "clean", ""},
	{"the program kills another one", "hook", func(s *scene) {
		s.Add(1, traces.Act{Op: "signal", Pid: 101, Signal: 9, By: "os.kill"}, traces.Act{Op: "signal", Pid: 102, Signal: 15, By: "os.kill"})
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.exit(1, -9, "no")
		s.End("1")
	}, "proven|Worker 1 died in pass 0: SIGKILL", ""},
	{"all is well", "hook", func(s *scene) { s.asked(); s.End("0") }, "clean|2 workers, none died", ""},
	{"exits unknown, but all batches came", "hook", func(s *scene) {
		s.Add(1, traces.BatchNext{Loader: 1, Batch: 4, Worker: -2, Status: "stop", CallNS: s.Now()}, traces.Pass{Loader: 1, Phase: "end", End: "exhausted", Delivered: 4})
		s.End("0")
	}, "clean|2 workers, none died", ""},
	{"early break", "hook", func(s *scene) {
		s.exit(0, 0, "yes")
		s.exit(1, 0, "yes")
		s.End("0")
	}, "clean", ""},
	{"early break, torch's patience ends", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 15, SenderPid: 100, SenderComm: "python3", SenderProc: 1, SenderAncestor: true})
		s.kernel(3, -1, 15)
		s.exit(1, -15, "yes")
		s.kernel(2, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"the interpreter ends with the iterator alive", "kernel", func(s *scene) {
		for _, proc := range []uint32{2, 3} {
			s.Add(proc, traces.Signal{Signal: 15, SenderPid: 100, SenderComm: "python3", SenderProc: 1, SenderAncestor: true})
			s.kernel(proc, -1, 15)
		}
		s.kernel(1, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"the same, hook tier", "hook", func(s *scene) {
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "cannot-tell|2 of 2 workers|visible in the kernel tier only", ""},
	{"the parent ends it by SIGKILL", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 9, SenderPid: 100, SenderComm: "python3", SenderProc: 1, SenderAncestor: true})
		s.kernel(3, -1, 9)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Killed. ")
		s.kernel(2, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"under forkserver the loader's process is no parent", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 15, SenderPid: 100, SenderComm: "python3", SenderProc: 1})
		s.kernel(3, -1, 15)
		s.kernel(2, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"Ctrl-C", "kernel", func(s *scene) {
		for _, proc := range []uint32{1, 2, 3} {
			s.Add(proc, traces.Signal{Signal: 2, SiCode: 128})
		}
		s.kernel(2, 1, 0)
		s.kernel(3, -1, 2)
		s.Add(1, traces.Exception{Loader: 1, Worker: -2, Stage: "next", Sample: -1, Type: "KeyboardInterrupt"})
		s.kernel(1, -1, 2)
		s.End("130")
	}, "clean", ""},
	{"Ctrl-C, hook tier", "hook", func(s *scene) {
		s.Add(1, traces.Exception{Loader: 1, Worker: -2, Stage: "next", Sample: -1, Type: "KeyboardInterrupt"})
		s.exit(0, 1, "no")
		s.exit(1, -2, "no")
		s.Add(1, traces.Exit{ExitCode: -1, Signal: 2, Source: "wait"})
		s.End("130")
	}, "clean", ""},
	{"Ctrl-C, hook tier, and the program ends well", "hook", func(s *scene) {
		s.Add(1, traces.Exception{Loader: 1, Worker: -2, Stage: "next", Sample: -1, Type: "KeyboardInterrupt"})
		s.exit(0, 1, "no")
		s.exit(1, -2, "no")
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "clean", ""},
	{"SIGTERM to the job, which goes on to save", "kernel", func(s *scene) {
		for _, proc := range []uint32{1, 2, 3} {
			s.Add(proc, traces.Signal{Signal: 15, SenderPid: 7, SenderComm: "slurmstepd"})
		}
		s.kernel(2, -1, 15)
		s.kernel(3, -1, 15)
		s.complaint("next", "DataLoader worker (pid 101) is killed by signal: Terminated. ")
		s.Wait(20 * second)
		s.kernel(1, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"the same with the handler that torch's workers have", "kernel", func(s *scene) {
		for _, proc := range []uint32{1, 2, 3} {
			s.Add(proc, traces.Signal{Signal: 15, SenderPid: 7, SenderComm: "slurmstepd"})
			if proc > 1 {
				s.Add(proc, traces.Signal{Signal: 15, SenderPid: int32(99 + proc), SenderProc: proc, SenderAncestor: true})
				s.kernel(proc, -1, 15)
			}
		}
		s.complaint("next", "DataLoader worker (pid 101) is killed by signal: Terminated. ")
		s.kernel(1, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"SIGTERM by another process, with that handler", "kernel", func(s *scene) {
		s.Add(3, traces.Signal{Signal: 15, SenderPid: 4242, SenderComm: "reaper"}, traces.Signal{Signal: 15, SenderPid: 102, SenderProc: 3, SenderAncestor: true})
		s.kernel(3, -1, 15)
		s.complaint("next", "DataLoader worker (pid 102) is killed by signal: Terminated. ")
		s.kernel(2, 0, 0)
		s.End("1")
	}, "proven|SIGTERM sent by pid 4242 (reaper)", "to itself"},
	{"the same, hook tier", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid 101) is killed by signal: Terminated. ")
		s.exit(0, -15, "no")
		s.exit(1, -15, "no")
		s.Wait(20 * second)
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "cannot-tell|ended by SIGTERM; whether the whole run", ""},
	{"SIGKILL to the job", "kernel", func(s *scene) {
		for _, proc := range []uint32{2, 3, 1} {
			s.Add(proc, traces.Signal{Signal: 9, SenderPid: 7, SenderComm: "slurmstepd"})
			s.kernel(proc, -1, 9)
		}
		s.End("137")
	}, "clean", ""},
	{"SIGTERM to the job, hook tier, the main process ends by it", "hook", func(s *scene) {
		s.exit(0, -15, "no")
		s.exit(1, -15, "no")
		s.Add(1, traces.Exit{ExitCode: -1, Signal: 15, Source: "wait"})
		s.End("143")
	}, "clean", ""},
	{"the parent is killed, the workers follow", "kernel", func(s *scene) {
		s.Add(1, traces.Signal{Signal: 9, SenderPid: 7, SenderComm: "bash"})
		s.kernel(1, -1, 9)
		s.Wait(second)
		s.kernel(2, 1, 0)
		s.kernel(3, 0, 0)
		s.End("137")
	}, "clean", ""},
	{"SIGSEGV while it shuts down", "kernel", func(s *scene) {
		s.asked()
		s.Add(3, traces.Signal{Signal: 11, SiCode: 1, SenderPid: 102, SenderProc: 3, SenderAncestor: true, Mapping: "none"})
		s.kernel(3, -1, 11)
		s.kernel(2, 0, 0)
		s.End("0")
	}, "clean", ""},
	{"SIGSEGV while it shuts down after a break", "kernel", func(s *scene) {
		s.exit(0, 0, "yes")
		s.exit(1, -11, "yes")
		s.Add(3, traces.Signal{Signal: 11, SiCode: 1, SenderPid: 102, SenderProc: 3, SenderAncestor: true, Mapping: "none"})
		s.kernel(3, -1, 11)
		s.Add(1, traces.BatchNext{Loader: 1, Batch: 4, Worker: -2, Status: "ok", CallNS: s.Now()})
		s.End("0")
	}, "clean", ""},
	{"it fails while next() shuts it down, and its parent does not tell", "kernel", func(s *scene) {
		call := s.Now()
		s.Wait(second)
		s.kernel(3, 1, 0)
		s.kernel(2, 0, 0)
		s.Wait(second)
		s.Add(1, traces.BatchNext{Loader: 1, Batch: 4, Worker: -2, Status: "stop", CallNS: call}, traces.Pass{Loader: 1, Phase: "end", End: "exhausted", Delivered: 4})
		s.End("0")
	}, "clean", ""},
	{"the parent leaves by os._exit, the workers follow", "kernel", func(s *scene) {
		s.kernel(1, 0, 0)
		s.Wait(second)
		s.kernel(2, 1, 0)
		s.kernel(3, 1, 0)
		s.End("0")
	}, "clean", ""},
	{"forkserver that was told to end with the job, which ends well", "hook", func(s *scene) {
		s.complaint("next", "DataLoader worker (pid(s) 101, 102) exited unexpectedly")
		s.exit(0, 255, "")
		s.exit(1, 255, "")
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "cannot-tell|its fork server did not tell how it ended", ""},
	{"forkserver, all batches came", "hook", func(s *scene) {
		s.asked()
		s.End("0")
	}, "clean", ""},
	{"SIGTERM to the job, hook tier, the main process ends well and one worker too", "hook", func(s *scene) {
		s.Add(1, traces.Exception{Loader: 1, Worker: -2, Stage: "next", Sample: -1, Type: "SystemExit", Message: "0"})
		s.exit(0, 0, "yes")
		s.exit(1, -15, "no")
		s.Add(1, traces.Exit{Source: "wait"})
		s.End("0")
	}, "cannot-tell|whether the whole run", ""},
	{"a fetch raises", "hook", func(s *scene) {
		s.Add(3, traces.Exception{Worker: 1, Batch: 5, Stage: "fetch", Sample: 10, Type: "ValueError", File: "/home/me/data.py", Line: 12})
		s.Add(1, traces.Exception{Loader: 1, Worker: -2, Stage: "next", Sample: -1, Type: "ValueError"})
		s.exit(0, 0, "yes")
		s.exit(1, 0, "yes")
		s.End("1")
	}, "clean", ""},
	{"somebody else's error with such words", "hook", func(s *scene) {
		s.Add(1, traces.Exception{Loader: 1, Worker: -2, Stage: "next", Type: "RuntimeError", Message: "DataLoader worker (pid 102) is killed by signal: Killed. ", File: "/home/me/mock.py"})
		s.Add(1, traces.BatchNext{Loader: 1, Batch: 4, Worker: -2, Status: "stop", CallNS: s.Now()}, traces.Pass{Loader: 1, Phase: "end", End: "exhausted", Delivered: 4})
		s.End("0")
	}, "clean", ""},
	{"a signal that is not asked for and not known to be unasked", "hook", func(s *scene) {
		s.exit(0, 0, "")
		s.exit(1, -9, "")
		s.End("0")
	}, "cannot-tell|whether its parent had asked it to stop is not known", ""},
	{"records were lost", "hook", func(s *scene) {
		s.asked()
		s.Add(1, traces.Lost{Source: "hook", Count: 3, Reason: "the ring was full"})
		s.End("0")
	}, "cannot-tell|records were lost", ""},
	{"cut", "hook", func(s *scene) { s.asked() }, "cannot-tell|the recording was cut", ""},
}
