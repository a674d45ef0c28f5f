package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/docs"
)

// texts are error texts as users meet them, and the pages that they lead to, the first of them first.
// Those of whole runs are in testdata/errors.
var texts = []struct {
	text  string
	pages string
}{
	{"RuntimeError: DataLoader worker (pid 13) is killed by signal: Bus error.", "shared-memory-full"},
	{"RuntimeError: DataLoader worker (pid 31035) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. " +
		"Please try to raise your shared memory limit.", "shared-memory-full"},
	{"[rank0]: RuntimeError: DataLoader worker (pid 13) is killed\n[rank0]:  by signal: Bus er\n[rank0]: ror. It is", "shared-memory-full"},
	{"ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).", "shared-memory-full"},
	{"RuntimeError: unable to write to file </torch_739_144252761_4>: No space left on device (28)", "shared-memory-full no-space-left"},
	{"RuntimeError: unable to write to file </torch_18693_1954506624> at /pytorch/torch/lib/TH/THAllocator.c:271", "shared-memory-full"},
	{"RuntimeError: unable to resize file </torch_91_2> to the right size", "shared-memory-full"},
	{"train.sh: line 7:  1204 Bus error               (core dumped) python train.py", "shared-memory-full"},
	{"RuntimeError: DataLoader worker (pid 1817) is killed by signal: Killed.", "worker-killed-signal-9"},
	{"slurmstepd: error: Detected 1 oom_kill event in StepId=10609057.batch. Some of the step tasks have been OOM Killed.", "worker-killed-signal-9"},
	{"slurmstepd: error: Detected 2 oom-kill event(s) in step 3756240.batch cgroup.", "worker-killed-signal-9"},
	{"srun: error: gpu001: task 0: Out Of Memory", "worker-killed-signal-9"},
	{"Epoch 3:  41%|████      | 412/1000\rEpoch 3:  42%|\nKilled\n", "worker-killed-signal-9"},
	{"[ 9214.11] Memory cgroup out of memory: Killed process 4711 (python) total-vm:81", "worker-killed-signal-9"},
	{"[1204.1] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null)", "worker-killed-signal-9"},
	{"  exitcode  : -9 (pid: 1204)\n  error_file: <N/A>\n  traceback : Signal 9 (SIGKILL) received by PID 1204", "worker-killed-signal-9"},
	{"RuntimeError: DataLoader worker (pid 2811) is killed by signal: Segmentation fault. Details are lost due to multiprocessing. " +
		"Rerunning with num_workers=0 may give better error trace.", "worker-crashed"},
	{"ERROR: Unexpected segmentation fault encountered in worker.", "worker-crashed"},
	{"Segmentation fault (core dumped)", "worker-crashed"},
	{"RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method", "cuda-after-fork"},
	{"RuntimeError: received 0 items of ancdata", "too-many-open-files"},
	{"OSError: [Errno 24] Too many open files: '/data/train/00017.jpg'", "too-many-open-files"},
	{"RuntimeError: unable to open shared memory object </torch_19_22> in read-write mode: Too many open files (24)", "too-many-open-files"},
	{"AttributeError: Can't pickle local object 'main.<locals>.<lambda>'", "cannot-pickle"},
	{"AttributeError: Can't get local object 'main.<locals>.collate'", "cannot-pickle"},
	{"TypeError: cannot pickle '_io.BufferedReader' object", "cannot-pickle"},
	{"_pickle.PicklingError: Can't pickle <function <lambda> at 0x7f1c>: attribute lookup <lambda> on __main__ failed", "cannot-pickle"},
	{"AttributeError: Can't get attribute 'Cells' on <module '__main__' (built-in)>", "cannot-pickle"},
	{"RuntimeError: stack expects each tensor to be equal size, but got [3, 224, 298] at entry 0 and [3, 224, 336] at entry 1", "unequal-samples"},
	{"RuntimeError: Trying to resize storage that is not resizable", "unequal-samples"},
	{"TypeError: default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found <class 'NoneType'>", "unequal-samples"},
	{"ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 512])", "batch-of-one"},
	{"TypeError: tensor should be a torch tensor. Got <class 'PIL.Image.Image'>.", "normalize-before-tensor"},
	{"TypeError: Input tensor should be a torch tensor. Got <class 'PIL.JpegImagePlugin.JpegImageFile'>.", "normalize-before-tensor"},
	{"ValueError: sampler option is mutually exclusive with shuffle", "sampler-and-shuffle"},
	{"ValueError: batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last", "sampler-and-shuffle"},
	{"zipfile.BadZipFile: Bad CRC-32 for file 'arr_0.npy'", "shared-file-handle"},
	{"KeyError: 'Unable to open object (bad object header version number)'", "shared-file-handle"},
	{"UserWarning: Length of IterableDataset <__main__.Stream object at 0x7f> was reported to be 78 (when accessing len(dataloader)), but 79 samples have been fetched. ",
		"iterable-longer-than-told"},
	{"ValueError: you need to add an explicit nodesplitter to your input pipeline for multi-node training", "iterable-longer-than-told"},
	{"Too many dataloader workers: 16 (max is dataset.num_shards=2). Stopping 14 dataloader workers.", "more-workers-than-shards"},
	{"OSError: [Errno 28] No space left on device: 'checkpoint-300'", "no-space-left"},
	{"RuntimeError: DataLoader timed out after 120 seconds", "loader-timeout"},
	{"RuntimeError: DataLoader worker (pid(s) 14455, 14456) exited unexpectedly", "worker-exited"},
	{"│ ❱ 1024 │   │   raise RuntimeError('DataLoader worker (pid(s) {}) exited unexpectedly'.f │\n╰──╯\nRuntimeError: DataLoader worker (pid(s) 4) exited\nunexpectedly",
		"worker-exited"},
	{"ConnectionResetError: [Errno 104] Connection reset by peer", "worker-connection-lost"},
	{"[rank0]:[E321 02:07:08.408271257 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: " +
		"WorkNCCL(SeqNum=1580, OpType=ALLREDUCE, NumelIn=466119168, Numel\nOut=466119168, Timeout(ms)=600000) ran for 600060 milliseconds before timing out.", "collective-timeout"},
	{"RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv operation to complete", "collective-timeout"},
	{"/usr/lib/python3.12/multiprocessing/popen_fork.py:66: DeprecationWarning: This process (pid=35951) is multi-threaded, use of fork() may lead to " +
		"deadlocks in the child.\n  self.pid = os.fork()", "fork-with-threads"},
	{"<string>:4: DeprecationWarning: This process (pid=5219) is multi-threaded, use of\n fork() may lead to deadlocks in\n the child.", "fork-with-threads"},
	{"huggingface/tokenizers: The current process just got forked, after parallelism has already been used. Disabling parallelism to avoid deadlocks...", "fork-with-threads"},
	{"resource_tracker: There appear to be 7 leaked shared_memory objects to clean up at shutdown", "leftover-shared-memory"},
	{"FileExistsError: [Errno 17] File exists: '/000010_locals'", "leftover-shared-memory"},
	{"ValueError: Reused local directory: ['/tmp/mds'] vs ['/tmp/mds']. Provide a different one.", "leftover-shared-memory"},
	{"PossibleUserWarning: Using `DistributedSampler` with the dataloaders. During `trainer.test()`, it is recommended to use `Trainer(devices=1, num_nodes=1)`",
		"evaluation-padded"},
	{"It looks like you are trying to rescale already rescaled images. If the input images have pixel values between 0 and 1", "rescaled-twice"},
	{"UserWarning: This DataLoader will create 104 worker processes in total. Our suggested max number of worker in current system is 23", "worker-number"},
	{"PossibleUserWarning: The dataloader, train_dataloader, does not have many workers which may be a bottleneck.", "worker-number"},

	// several in one text: what says most comes first
	{"ConnectionResetError: [Errno 104] Connection reset by peer\n...\nRuntimeError: DataLoader worker (pid(s) 9) exited unexpectedly\nslurmstepd: error: Detected 1 oom_kill event in StepId=1.0",
		"worker-killed-signal-9 worker-exited worker-connection-lost"},
	{"This DataLoader will create 64 worker processes in total.\nRuntimeError: unable to write to file </torch_1_2>", "shared-memory-full worker-number"},

	// prefixes of launchers and logs, and forms of terminals
	{"trainer-1  | RuntimeError: received 0 items\ntrainer-1  |  of ancdata", "too-many-open-files"},
	{"2026-11-20T10:00:01.123456789Z stderr F RuntimeError: received 0\n2026-11-20T10:00:01.123456790Z stderr F items of ancdata", "too-many-open-files"},
	{"[1,3]<stderr>:RuntimeError: received 0 items of\n[1,3]<stderr>: ancdata", "too-many-open-files"},
	{"3: RuntimeError: received 0 items\n3:  of ancdata", "too-many-open-files"},
	{"(RayTrainWorker pid=4711, ip=10.0.0.2) RuntimeError: received\n(RayTrainWorker pid=4711, ip=10.0.0.2) 0 items of ancdata", "too-many-open-files"},
	{"\x1b[31mRuntimeError\x1b[0m: received \x1b[1m0 items\x1b[0m of ancdata", "too-many-open-files"},
	{`{"level":"error","message":"Traceback:\nRuntimeError: received 0 items\nof ancdata"}`, "too-many-open-files"},
	{"runtimeerror: RECEIVED 0 ITEMS OF ANCDATA", "too-many-open-files"},

	// nothing
	{"", ""},
	{"Epoch 1: loss 0.3, 1817 samples, 0 items of 12 killed by filter", ""},
	{"RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB", ""},
	{"srun: job 4711 queued and waiting for resources\ntask 3: torch.cuda.OutOfMemoryError: CUDA out of memory.", ""},
	{"RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x512 and 256x10)", ""},
	{"RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation", ""},
	{"ModuleNotFoundError: No module named 'torch'", ""},
	{"IndexError: list index out of range", ""},
	{"KeyError: 'validation'", ""},
	{"the process was Killed by the user, bus errors happen; a segmentation fault is a kind of crash", ""},
	{"Killed 3 zombie processes", ""},
	{"INFO shuffle: sampler option chosen, workers 8, shared memory 64 GB free", ""},
	{"DataLoader(dataset, num_workers=8, timeout=120)  # workers exited normally", ""},
	{"FileExistsError: [Errno 17] File exists: 'checkpoints'", ""},
	{"EOFError: Ran out of input", ""},
	{"BrokenPipeError: [Errno 32] Broken pipe", ""},
	{"UserWarning: The use of `x.T` on tensors of dimension other than 2 is deprecated", ""},
	{"DeprecationWarning: pkg_resources is deprecated as an API", ""},
	{"PicklingError is raised by pickle", ""},
	{"zip archive written, CRC-32 ok", ""},
}

func TestTexts(t *testing.T) {
	explained := map[string]int{}
	for _, c := range texts {
		got := names(t, c.text)
		if strings.Join(got, " ") != c.pages {
			t.Errorf("%q\nleads to %q, want %q", c.text, got, c.pages)
		}
		for _, name := range got {
			explained[name]++
		}
	}
	logs, err := filepath.Glob("testdata/errors/*.txt")
	if err != nil || len(logs) == 0 {
		t.Fatalf("%d logs: %v", len(logs), err)
	}
	for _, path := range logs {
		log, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, _, _ := strings.Cut(filepath.Base(path), "_")
		for how, text := range map[string]string{"as it was": string(log), "below a prefix and wrapped": wrapped(string(log))} {
			got := names(t, text)
			if len(got) == 0 || got[0] != want {
				t.Errorf("%s, %s: leads to %q", path, how, got)
			}
		}
		explained[want]++
	}
	for _, name := range docs.ErrorNames {
		if explained[name] == 0 {
			t.Errorf("%s: no text of this test leads there", name)
		}
	}
}

// wrapped is a log as a terminal of 60 columns gives it away, each line with the rank before it.
func wrapped(log string) string {
	var b strings.Builder
	for line := range strings.Lines(log) {
		for line = strings.TrimSuffix(line, "\n"); len(line) > 60; line = line[60:] {
			fmt.Fprintf(&b, "[rank1]: %s\n", line[:60])
		}
		fmt.Fprintf(&b, "[rank1]: %s\n", line)
	}
	return b.String()
}

func names(t *testing.T, text string) (names []string) {
	t.Helper()
	found, err := docs.FindErrors(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		names = append(names, f.Page.Name)
	}
	return names
}

// TestEveryPattern: each pattern is one that its own text is found by, with what is left open filled in.
func TestEveryPattern(t *testing.T) {
	for _, page := range docs.Errors {
		for _, p := range page.Patterns {
			text := strings.NewReplacer("**", " in\nframes ", "*", " 17 ", "^", "", "$", "").Replace(p.Source)
			if got := names(t, text); !slices.Contains(got, page.Name) {
				t.Errorf("%s: %q leads to %q", page.Name, text, got)
			}
		}
	}
}

// TestLargeLog: an error is found anywhere in a log, also across the places where it is cut into blocks, and
// its line is told.
func TestLargeLog(t *testing.T) {
	filler := strings.Repeat("step 4711 loss 0.123456789 lr 0.001 samples/s 1234.5 memory 12.3 GB\n", 1<<14)
	for _, before := range []int{0, 1, 1 << 13, 1<<14 - 1, 1<<14 + 3} {
		lines := strings.SplitAfter(filler, "\n")
		log := strings.Join(lines[:min(before, len(lines))], "") + strings.Repeat("a line\n", max(before-len(lines), 0)) +
			"[rank3]: RuntimeError: received 0 items\n[rank3]: of ancdata\n" + filler + filler
		found, err := docs.FindErrors(strings.NewReader(log))
		if err != nil || len(found) != 1 || found[0].Page.Name != "too-many-open-files" {
			t.Fatalf("after %d lines: %v, %v", before, found, err)
		}
		if want := strings.Count(log[:strings.Index(log, "[rank3]")], "\n") + 1; found[0].Line != want || !strings.Contains(found[0].Text, "received 0 items") {
			t.Errorf("line %d %q, want %d", found[0].Line, found[0].Text, want)
		}
	}
}

// TestEveryBlockEnd moves a text over the place where the first block ends.
func TestEveryBlockEnd(t *testing.T) {
	line := strings.Repeat("x", 62) + "\n"
	for shift := 0; shift < 64; shift += 5 {
		log := strings.Repeat(line, 1<<20/62) + strings.Repeat("y", shift) + "\nRuntimeError: received\n0\nitems\nof\nancdata\n"
		if got := names(t, log); len(got) != 1 {
			t.Fatalf("moved by %d: %q", shift, got)
		}
	}
}

// TestLongLine: what has no line ends is looked at as far as memory is bounded, and what comes after it too.
func TestLongLine(t *testing.T) {
	log := "received 0 items of ancdata " + strings.Repeat("z", 5<<20) + "\nKilled\n"
	found, err := docs.FindErrors(strings.NewReader(log))
	if err != nil || len(found) != 2 || found[0].Page.Name != "worker-killed-signal-9" || found[0].Line != 2 || found[1].Line != 1 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestRaised: the error itself is quoted, not the line of the source that raises it.
func TestRaised(t *testing.T) {
	log := "Traceback\n  File \"dataloader.py\", line 1269, in _get_data\n    raise RuntimeError('DataLoader timed out after {} seconds'.format(self._timeout))\n" +
		"RuntimeError: DataLoader timed out after 1 seconds\n"
	found, err := docs.FindErrors(strings.NewReader(log))
	if err != nil || len(found) != 1 || found[0].Line != 4 {
		t.Errorf("%v, %v", found, err)
	}
}

var errorHeadings = []string{"## What it can be", "## What dptrace records to tell", "## What fixes it", "## What does not"}

var explains = regexp.MustCompile("dptrace explain ([a-z0-9-]+)")

func TestErrorPages(t *testing.T) {
	files, err := filepath.Glob("errors/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); !slices.Contains(docs.ErrorNames, name) {
			t.Errorf("%s: not in docs.ErrorNames", file)
		}
	}
	var topics []string
	for _, r := range analyze.Rules {
		topics = append(topics, r.ID)
	}
	for _, e := range docs.Errors {
		if slices.Contains(topics, e.Name) {
			t.Errorf("%s: a rule has this name", e.Name)
		}
	}
	topics = append(topics, docs.ErrorNames...)
	for _, e := range docs.Errors {
		if !strings.HasPrefix(e.Text, "# "+e.Name+"\n\n") || e.Summary == "" || strings.Contains(e.Summary, "#") {
			t.Errorf("%s: wants its name as title and a sentence below, has %q", e.Name, e.Summary)
		}
		var headings []string
		for line := range strings.Lines(e.Text) {
			if strings.HasPrefix(line, "## ") {
				headings = append(headings, strings.TrimSpace(line))
			}
			if n := len([]rune(line)); n > 160 {
				t.Errorf("%s: a line of %d characters", e.Name, n)
			}
		}
		if !slices.Equal(headings, errorHeadings) {
			t.Errorf("%s: headings %q, want %q", e.Name, headings, errorHeadings)
		}
		for _, m := range explains.FindAllStringSubmatch(e.Text, -1) {
			if !slices.Contains(topics, m[1]) {
				t.Errorf("%s: tells to explain %s, which is neither a rule nor a page", e.Name, m[1])
			}
		}
	}
}
