package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/accept"
	"github.com/dptrace/dptrace/analyze/account"
	"github.com/dptrace/dptrace/analyze/collect"
	"github.com/dptrace/dptrace/analyze/finding"
	"github.com/dptrace/dptrace/analyze/timeline"
	"github.com/dptrace/dptrace/traces"
)

var update = flag.Bool("update", false, "rewrite the golden files of testdata")

// results are the cases: each is printed as text (NAME.txt), for a terminal
// (NAME.tty.txt) and as JSON (NAME.json).
var results = map[string]func() *analyze.Result{
	"accepted": accepted,
	"clean":    clean,
	"found":    found,
	"many":     many,
	"gaps":     gaps,
	"hostile":  hostile,
	"kernel":   kernel,
	"nothing":  nothing,
	"swarm":    swarm,
	"unhooked": without,
}

func TestGolden(t *testing.T) {
	for name, make := range results {
		t.Run(name, func(t *testing.T) {
			r := make()
			var plain, tty, verbose, document bytes.Buffer
			if err := Text(&plain, r, Options{}); err != nil {
				t.Fatal(err)
			}
			if err := Text(&tty, r, Options{Width: 80, Color: true, Unicode: true}); err != nil {
				t.Fatal(err)
			}
			if err := Text(&verbose, r, Options{Verbose: true}); err != nil {
				t.Fatal(err)
			}
			if err := JSON(&document, r, Options{}); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", plain.Bytes())
			golden(t, name+".tty.txt", tty.Bytes())
			golden(t, name+".verbose.txt", verbose.Bytes())
			golden(t, name+".json", document.Bytes())
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (make it with -update, and read it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestShortWhereLittleIsWrong(t *testing.T) {
	for name, want := range map[string]int{"clean": 12, "nothing": 12, "gaps": 16, "swarm": 20} {
		var text bytes.Buffer
		if err := Text(&text, results[name](), Options{}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(text.String(), "\n"); n > want {
			t.Errorf("%s: %d lines, want at most %d:\n%s", name, n, want, text.String())
		}
	}
}

// A program that failed is not told that nothing is wrong, and no more.
func TestFailed(t *testing.T) {
	for code, want := range map[int]string{-1: "Nothing wrong found: ", 0: "Nothing wrong found: ", 130: "Nothing wrong found: ",
		1: "Nothing wrong found, though the program failed: ", 137: "Nothing wrong found, though the program failed: "} {
		r := clean()
		r.Timeline.ExitCode = code
		var b bytes.Buffer
		if err := Text(&b, r, Options{}); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(b.String(), want) {
			t.Errorf("exit code %d: %.60q, want %q", code, b.String(), want)
		}
	}
}

func TestPlainTextIsASCIIWithoutEscapes(t *testing.T) {
	for name, make := range results {
		var text bytes.Buffer
		if err := Text(&text, make(), Options{}); err != nil {
			t.Fatal(err)
		}
		for _, c := range text.String() {
			if c > '~' && c != 'é' || c < ' ' && c != '\n' { // é: of the user's file name
				t.Errorf("%s: character %q", name, c)
			}
		}
	}
}

// TestControlCharacters: what a trace says can neither move the cursor nor
// colour the screen.
func TestControlCharacters(t *testing.T) {
	var text bytes.Buffer
	if err := Text(&text, hostile(), Options{Unicode: true}); err != nil {
		t.Fatal(err)
	}
	for _, c := range "\x1b\r\b\x07\u202e\x9b" {
		if strings.ContainsRune(text.String(), c) {
			t.Errorf("%q went through", c)
		}
	}
}

func TestJSONKeys(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, found(), Options{}); err != nil {
		t.Fatal(err)
	}
	var got map[string]json.RawMessage
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"schema", "trace", "run", "loaders", "findings", "checks", "lost", "overhead", "processes", "unhooked", "incomplete", "loops"} {
		if got[key] == nil {
			t.Errorf("no key %q", key)
		}
	}
	if len(got) != 12 {
		t.Errorf("%d keys, want 12: the schema is a promise", len(got))
	}
}

func TestFails(t *testing.T) {
	r := &analyze.Result{Findings: []finding.Finding{{Certainty: finding.Proven, Accepted: "why"}, {Certainty: finding.Likely}, {Certainty: finding.Note}}}
	for _, c := range []struct {
		atLeast finding.Certainty
		want    bool
	}{{finding.Note, true}, {finding.Likely, true}, {finding.Proven, false}, {finding.Proven + 1, false}} {
		if got := Fails(r, c.atLeast); got != c.want {
			t.Errorf("Fails(%v) = %v, want %v", c.atLeast, got, c.want)
		}
	}
}

func TestIncomplete(t *testing.T) {
	part := &traces.Part{Name: "host-1", Sealed: true}
	whole := &traces.Run{Parts: []*traces.Part{part}}
	hookLost := account.Loss{Source: "hook", Reason: "the hook gave up: no recorder for 10 s"}
	for _, c := range []struct {
		name    string
		run     *traces.Run
		account account.Account
		want    int
	}{
		{"sealed", whole, account.Account{}, 0},
		{"cut", &traces.Run{Parts: []*traces.Part{part, {Name: "host-2"}}}, account.Account{}, 1},
		{"torn", &traces.Run{Parts: whole.Parts, Problems: []traces.Problem{{Part: part, Kind: traces.Torn}}}, account.Account{}, 1},
		{"a newer table only", &traces.Run{Parts: whole.Parts, Problems: []traces.Problem{{Part: part, Kind: traces.Newer}}}, account.Account{}, 0},
		{"a hook that gave up: nobody knows how much is lost", whole, account.Account{Lost: []account.Loss{hookLost}}, 1},
		{"rows that a full disk lost, and a ring", whole, account.Account{Lost: []account.Loss{{Source: "writer", Table: "batch_next", Count: 9}, {Source: "kernel", Count: 1}}}, 2},
		{"torn, which the account has too", &traces.Run{Parts: whole.Parts, Problems: []traces.Problem{{Part: part, Kind: traces.Torn}}},
			account.Account{Lost: []account.Loss{{Source: "trace", Count: 3}}}, 1},
		{"a torch process without the hook", whole, account.Account{Processes: account.Processes{Unhooked: []account.Unhooked{{Pid: 7, Torch: true}}}}, 1},
		{"a tool without the hook", whole, account.Account{Processes: account.Processes{Watched: 1, Unhooked: []account.Unhooked{{Pid: 7}}}}, 0},
		{"a tool without the hook, and a Python that had it", whole,
			account.Account{Processes: account.Processes{Hooked: 1, Unhooked: []account.Unhooked{{Pid: 7}}}}, 0},
		{"nothing but a Python without the hook", whole, account.Account{Processes: account.Processes{Unhooked: []account.Unhooked{{Pid: 7}, {Pid: 8}}}}, 1},
	} {
		if got := Incomplete(&analyze.Result{Run: c.run, Account: &c.account}); len(got) != c.want {
			t.Errorf("%s: %q, want %d lines", c.name, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"one two three", []string{"one two", "three"}},
		{"  indented text is kept", []string{"  indented", "  text is", "  kept"}},
		{"averylongword and", []string{"averylongword", "and"}},
		{"a\n\nb", []string{"a", "", "b"}},
		{"été été été", []string{"été été", "été"}},
	} {
		if diff := cmp.Diff(c.want, wrap(c.text, 10)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

// program is a run of one process with a training loader, and perhaps more.
type program struct {
	part    *traces.Part
	builder collect.Collector[*timeline.Timeline]
}

const second = int64(1e9)

func newProgram(command string, sealed bool) *program {
	p := &program{&traces.Part{Name: "node-77", Trace: "run.dptrace", Sealed: sealed}, timeline.NewBuilder()}
	p.add("meta", []traces.Meta{{Head: head(0, 0), Key: "command", Value: command}, {Head: head(0, 0), Key: "exit_code", Value: "0"}})
	return p
}

func head(proc uint32, seconds float64) traces.Head {
	return traces.Head{TsNS: second + int64(seconds*float64(second)), Proc: proc}
}

func (p *program) add(table string, rows any) {
	p.builder.Add(traces.Batch{Part: p.part, Table: table, Rows: rows})
}

func (p *program) python(torch string) {
	p.add("process", []traces.Process{{Head: head(1, 0), Pid: 78, Kind: "target", Hook: "on", Cwd: "/home/u", Python: "3.11.2", Torch: torch, Rank: -1}})
}

// loader with passes of 11 deliveries, 0.1 s apart; next() takes wait seconds.
func (p *program) loader(n uint32, file string, workers int32, passes uint32, wait float64, steps bool) {
	p.add("loader", []traces.Loader{{Head: head(1, 0.5), Loader: n, NumWorkers: workers, Length: 44, BatchSize: 4, File: file, Line: int32(10 * n)}})
	var rows []traces.BatchNext
	var done uint64
	for pass := range passes {
		for batch := range uint32(11) {
			at := 1 + 1.2*float64(pass) + 0.1*float64(batch)
			r := traces.BatchNext{Head: head(1, at), Loader: n, Pass: pass, Batch: batch, Status: "ok", Grad: steps, CallNS: head(1, at-wait).TsNS}
			if steps {
				r.Steps, r.Optimizer = done, 1
				done++
			}
			rows = append(rows, r)
		}
		rows = append(rows, traces.BatchNext{Head: head(1, 1+1.2*float64(pass)+1.1), Loader: n, Pass: pass, Status: "stop", Steps: done, Optimizer: min(uint32(done), 1)})
	}
	p.add("batch_next", rows)
}

func (p *program) result(problems ...traces.Problem) *analyze.Result {
	run := &traces.Run{Parts: []*traces.Part{p.part}, Problems: problems}
	return &analyze.Result{Run: run, Timeline: p.builder.Build(&collect.Evidence{Run: run}), Account: &account.Account{Overhead: account.Overhead{Percent: 0.417, Method: "(hook + recorder) / program, CPU time"}}}
}

func clean() *analyze.Result {
	p := newProgram(`["python","train.py","--epochs","2"]`, true)
	p.python("2.15.0")
	p.loader(1, "/home/u/train.py", 4, 2, 0.002, true)
	p.loader(2, "/data/donnée.py", 0, 2, 0, false)
	r := p.result()
	r.Tier = account.Tier{Name: "hook", Refused: "no process probe of the kernel tier: operation not permitted; `dptrace doctor` says how to get it"}
	r.Processes = account.Processes{Seen: 9, Kinds: map[string]int{"target": 1, "worker": 8}}
	r.Overhead.Parts = costs(0.3, 0.117)
	r.Checks = []finding.Check{
		{Rule: "rng-duplicate-workers", Loader: 1, Status: finding.Clean, Reason: "8 streams, all distinct"},
		{Rule: "rng-duplicate-workers", Loader: 2, Status: finding.CannotTell, Reason: "nothing random, or a generator that dptrace cannot reach"},
		{Rule: "rng-duplicate-epochs", Loader: 1, Status: finding.Clean, Reason: "8 streams, all distinct"},
		{Rule: "rng-duplicate-epochs", Loader: 2, Status: finding.CannotTell, Reason: "nothing random, or a generator that dptrace cannot reach"},
		{Rule: "rng-duplicate-ranks", Loader: 1, Status: finding.CannotTell, Reason: "one rank"},
		{Rule: "rng-duplicate-ranks", Loader: 2, Status: finding.CannotTell, Reason: "one rank"},
		{Rule: "swallowed-crash", Loader: 0, Status: finding.Clean, Reason: "9 processes, none ended badly"},
		{Rule: "worker-killed", Loader: 0, Status: finding.Clean, Reason: "8 workers ended when they were asked to"},
		{Rule: "worker-killed", Loader: 1, Status: finding.Clean, Reason: "8 workers ended when they were asked to"},
	}
	return r
}

// costs are parts of the overhead in percent: of the hook, of the recorder, and
// of one probe's eBPF programs.
func costs(percent ...float64) []account.Cost {
	kinds := []account.Cost{
		{Name: "hook", Tier: "hook", Kind: account.CostHook},
		{Name: "recorder", Tier: "hook", Kind: account.CostRecorder},
		{Name: "cow eBPF", Tier: "kernel", Kind: account.CostBPF},
	}[:len(percent)]
	for i, p := range percent {
		kinds[i].Percent, kinds[i].NS = p, int64(p*1e7)
	}
	return kinds
}

func found() *analyze.Result {
	p := newProgram(`["torchrun","--nproc_per_node","2","train.py"]`, true)
	p.python("1.13.1")
	p.loader(1, "/home/u/train.py", 2, 2, 0.04, true)
	r := p.result()
	at := finding.Loader{ID: 1, At: "train.py:10", Role: "train"}
	fix := "def seed_worker(worker_id):\n    info = torch.utils.data.get_worker_info()\n    info.dataset.transform.rng.bit_generator.state = np.random.default_rng(info.seed).bit_generator.state  # long on purpose\n\nDataLoader(..., worker_init_fn=seed_worker)"
	replay := "To see them by hand: g = np.random.PCG64(); g.state = {…}; g.random_raw(3)."
	r.Findings = []finding.Finding{
		{Rule: "rng-duplicate-workers", DP: "DP1", Certainty: finding.Proven, Loader: at, Proof: "hook",
			Title: "Both workers draw the same random numbers from dataset.transform.rng, in both passes",
			Evidence: []finding.Evidence{
				{Text: "dataset.transform.rng: worker 0 in pass 0 and worker 1 in pass 0 drew the same 96 outputs of 64 bits.", Refs: []finding.Ref{{Part: "node-77", Table: "rng_state", Seq: 3}, {Part: "node-77", Table: "rng_state", Seq: 39}}},
				{Text: replay},
			},
			Cost: "96 distinct of 384 drawn", Fix: fix, Verify: "Record again.", NotABugIf: "you want the k-th sample of each worker to be augmented alike."},
		{Rule: "rng-duplicate-epochs", DP: "DP1", Certainty: finding.Likely, Loader: at, Proof: "hook",
			Title:    "Pass 1 draws the random numbers of pass 0 again",
			Evidence: []finding.Evidence{{Text: "dataset.transform.rng: worker 0 in pass 0 and worker 0 in pass 1 drew the same 96 outputs of 64 bits."}, {Text: replay}},
			Cost:     "1 of 2 passes repeats an earlier one", Fix: fix, Verify: "Record again.", NotABugIf: "every pass is meant to see the same augmentations."},
		{Rule: "rng-duplicate-ranks", Certainty: finding.Note, Loader: at, Proof: "hook", Title: "Ranks 0 and 1 draw alike in fewer than half of their fetches"},
	}
	r.Checks = []finding.Check{
		{Rule: "rng-duplicate-workers", Loader: 1, Status: finding.Found, Reason: "the same numbers from dataset.transform.rng"},
		{Rule: "rng-duplicate-epochs", Loader: 1, Status: finding.Found, Reason: "the same numbers from dataset.transform.rng"},
		{Rule: "rng-duplicate-ranks", Loader: 1, Status: finding.CannotTell, Reason: "one rank"},
	}
	return r
}

// many is more findings than are seen at a glance, with more evidence than is
// read.
func many() *analyze.Result {
	r := found()
	for i := range 5 {
		f := r.Findings[0]
		f.Rule, f.Fix, f.Loader.At = "not-shuffled", fmt.Sprintf("# fix %d", i), fmt.Sprintf("train.py:%d", 20+i)
		f.Title += strings.Repeat(" and so on", i)
		f.Evidence = []finding.Evidence{{Text: "key words 1 to 4", Detail: true}}
		for k := range 2 * i {
			f.Evidence = append(f.Evidence, finding.Evidence{Text: fmt.Sprintf("pass %d of finding %d", k, i)})
		}
		r.Findings = append(r.Findings, f)
	}
	return r
}

// accepted is found with findings that the user wants as they are.
func accepted() *analyze.Result {
	r := found()
	r.Findings[0].Accepted = "the same augmentations in all workers are the point of this ablation, see the notes of last week's meeting"
	r.Findings[2].Accepted = "known"
	r.Unused = []accept.Entry{{Rule: "order-repeats", At: "train.py:88", Reason: "x", Place: "dptrace.toml:9"}, {Rule: "uneven-shards", Reason: "x", Place: "dptrace.toml:14"}}
	return r
}

// gaps is a recording that was cut, damaged and partly blind.
func gaps() *analyze.Result {
	p := newProgram(`["bash","run.sh"]`, false)
	p.python("2.15.0")
	p.loader(1, "/home/u/train.py", 2, 1, 0.01, true)
	r := p.result(traces.Problem{Part: p.part, Table: "rng_state", Segment: "rng_state-0.arrow", Offset: 4096, Kind: traces.Torn, Text: "ends in the middle of a message", LostRows: -1})
	r.Checks = []finding.Check{{Rule: "rng-duplicate-workers", Loader: 1, Status: finding.CannotTell, Reason: "the recording was cut before the program ended"}}
	r.Lost = []account.Loss{
		{Source: "hook", Table: "rng_state", Count: 12, Reason: "ring full"},
		{Source: "trace", Table: "rng_state", Reason: "torn: ends in the middle of a message"},
	}
	r.Processes = account.Processes{Seen: 4, Watched: 1, Kinds: map[string]int{"target": 1, "other": 1, "python": 2}, Unhooked: []account.Unhooked{
		{Pid: 92, Cmdline: "python3 a.py", Exe: "/usr/bin/python3.11", Reason: "spool is full"},
		{Pid: 91, Cmdline: "python3 -I tool.py " + strings.Repeat("x", 100), Exe: "/usr/bin/python3.11", Reason: "started with -I, which ignores PYTHONPATH; torch is loaded", Torch: true},
	}}
	r.Overhead = account.Overhead{Percent: -1, Method: "the program's CPU time was not sampled", Parts: []account.Cost{{Name: "hook", Tier: "hook", Kind: account.CostHook, NS: 1234567, Percent: -1}}}
	return r
}

func hostile() *analyze.Result {
	p := newProgram(`["python","\u001b[2Jtrain.py\r\b\u0007"]`, true)
	p.python("3\x9b\xff\u202e")
	p.loader(1, "/tmp/\x1b[31m.py", 2, 1, 0.01, true)
	r := p.result()
	r.Findings = []finding.Finding{{Rule: "x", Certainty: finding.Proven, Title: "\x1b]0;title\x07", Fix: "a\r\n\x1b[2J", Evidence: []finding.Evidence{{Text: "\u202eright to left\ttab"}}}}
	return r
}

// kernel is a run of the kernel tier; two of its findings are about no loader.
func kernel() *analyze.Result {
	p := newProgram(`["bash","run.sh"]`, true)
	p.python("2.15.0")
	p.loader(1, "/home/u/train.py", 2, 2, 0.001, true)
	r := p.result()
	r.Tier = account.Tier{Name: "kernel"}
	r.Processes = account.Processes{Seen: 5001, Kinds: map[string]int{"target": 1, "worker": 4, "other": 4996}, KernelOnly: 4990}
	r.Findings = []finding.Finding{
		{Rule: "swallowed-crash", Certainty: finding.Proven, Proof: "kernel", Title: "The command exits 0, but its training ended by SIGSEGV",
			Evidence: []finding.Evidence{{Text: "pid 78, python train.py, with torch: SIGSEGV after 3.1 s. The recorded command, bash run.sh: exit code 0."}}, Cost: "the whole run", Fix: "set -e"},
		{Rule: "memory-growth-cow", Certainty: finding.Likely, Proof: "kernel", Loader: finding.Loader{ID: 1, At: "train.py:10", Role: "train"},
			Title: "Each worker will copy 305 MB of dataset.records", Evidence: []finding.Evidence{{Text: "worker 0 in pass 0: 120 MB"}}, Cost: "610 MB"},
		{Rule: "worker-killed", Certainty: finding.Note, Proof: "kernel", Title: "The whole group was killed"},
	}
	r.Checks = []finding.Check{
		{Rule: "swallowed-crash", Status: finding.Found, Reason: "pid 78"},
		{Rule: "memory-growth-cow", Loader: 1, Status: finding.Found, Reason: "120 MB so far"},
		{Rule: "dataset-copied-per-worker", Status: finding.Clean, Reason: "forked workers"},
		{Rule: "dataset-copied-per-worker", Loader: 1, Status: finding.Clean, Reason: "forked workers"},
	}
	r.Lost = []account.Loss{{Source: "kernel", Table: "cow", Count: 17, Reason: "the map of blocks was full"}}
	r.Overhead = account.Overhead{Percent: 0.9, Method: "(hook + recorder + eBPF) / program, CPU time", Parts: costs(0.3, 0.2, 0.4), Untimed: 12, Start: 0.14}
	r.Overhead.Parts[1].StartNS = 1_400_000
	return r
}

// swarm is a program that starts many Pythons without the hook, in more kinds
// than are shown.
func swarm() *analyze.Result {
	r := clean()
	r.Processes.Watched = 1
	for i := range int32(40) {
		u := account.Unhooked{Pid: 1000 + i, Cmdline: "/opt/conda/envs/preprocessing/bin/python3 -I -c pass", Exe: "/opt/conda/bin/python3", Reason: "started with -I, which ignores PYTHONPATH"}
		switch {
		case i == 37:
			u.Torch, u.Cmdline, u.Reason = true, "python3 -E finetune.py", "started with -E, which ignores PYTHONPATH; torch is loaded"
		case i%8 == 7:
			u.Cmdline = "python3 -I tool" + strings.Repeat("x", int(i/8)) + ".py"
		}
		r.Processes.Unhooked = append(r.Processes.Unhooked, u)
	}
	return r
}

// nothing is a program without torch.
// without is a run whose only Python lost the hook.
func without() *analyze.Result {
	p := newProgram(`["env","-i","python3","train.py"]`, true)
	r := p.result()
	r.Processes = account.Processes{Seen: 3, Kinds: map[string]int{"target": 1, "python": 2}}
	for pid := range int32(2) {
		r.Processes.Unhooked = append(r.Processes.Unhooked, account.Unhooked{
			Pid: 90 + pid, Cmdline: "python3 train.py", Exe: "/usr/bin/python3.11", Torch: true,
			Reason: "started without the recording's PYTHONPATH; torch is loaded", Fix: "env -i $(which dptrace) record -- python3 train.py",
		})
	}
	return r
}

func nothing() *analyze.Result {
	p := newProgram(`["python","hello.py"]`, true)
	p.python("")
	return p.result()
}
