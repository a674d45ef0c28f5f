package e2e

import (
	"testing"
)

var deathCases = []tierCase{
	// A worker dies, and the training with it.
	{name: "killed by a third process", often: true, command: "python worker.py kill", code: 1,
		hook: "worker-killed proven SIGKILL", kernel: "worker-killed proven SIGKILL sent by (sh)"},
	{name: "terminated by a third process", command: "python worker.py term", code: 1,
		hook: "worker-killed cannot-tell", kernel: "worker-killed proven SIGTERM sent by (sh)"},
	{name: "SIGSEGV", command: "python worker.py segv", code: 1,
		hook: "worker-killed proven SIGSEGV", kernel: "worker-killed proven SIGSEGV"},
	{name: "SIGBUS of a file", command: "python worker.py bus", code: 1,
		hook: "worker-killed proven SIGBUS", kernel: "worker-killed proven SIGBUS samples-"},
	{name: "os._exit in a worker", command: "python worker.py exit", code: 1,
		hook: "worker-killed proven exit code 3", kernel: "same"},
	{name: "exception in a worker", command: "python worker.py raise", code: 1,
		hook: "", kernel: "same"}, // it is handed to the loop, which raises it: no worker died of it

	// Nothing is wrong with how they ended.
	{name: "to the end", command: "python worker.py none", hook: "worker-killed clean", kernel: "same"},
	{name: "early break", often: true, command: "python worker.py break", hook: "worker-killed clean", kernel: "same"},
	{name: "Ctrl-C", often: true, command: "python worker.py interrupt", code: 130, hook: "", kernel: "same"},
	{name: "all killed at once", command: "python worker.py all", code: 137, hook: "", kernel: "same"},
	{name: "pool terminated", command: "python worker.py pool", hook: "", kernel: "same"},
	{name: "executor terminated", command: "python worker.py executor", hook: "", kernel: "same"},

	// Wrappers. A killed training has told of all batches that it was given.
	{name: "wrapper swallows an exception", command: "python wrapper.py swallows raise",
		hook: "swallowed-crash proven RuntimeError", kernel: "same"},
	{name: "wrapper swallows SIGSEGV", command: "python wrapper.py swallows segv",
		hook: "swallowed-crash proven SIGSEGV 6 batches 5 optimizer steps", kernel: "same"},
	{name: "wrapper swallows an exit code", command: "python wrapper.py swallows exit",
		hook: "swallowed-crash proven 7 6 batches 5 optimizer steps", kernel: "same"},
	{name: "wrapper reads an exit code", often: true, command: "python wrapper.py reads exit", hook: "", kernel: "same"},
	{name: "wrapper reads that it crashed", command: "python wrapper.py reads segv", hook: "", kernel: "same"},
	{name: "shell swallows an exception", command: "sh wrapper.sh swallows python raise",
		hook: "swallowed-crash likely RuntimeError", kernel: "swallowed-crash proven RuntimeError"},
	{name: "shell swallows SIGKILL", often: true, command: "sh wrapper.sh swallows python kill",
		hook: "", kernel: "swallowed-crash proven SIGKILL 6 batches 5 optimizer steps"},
	{name: "shell looks", command: "sh looks.sh python raise",
		hook: "swallowed-crash likely RuntimeError", kernel: "swallowed-crash likely RuntimeError"},
	{name: "wrapper reports", command: "python wrapper.py reports exit", code: 7, hook: "", kernel: "swallowed-crash clean"},
	{name: "shell reports", command: "sh wrapper.sh reports python exit", code: 7, hook: "", kernel: "swallowed-crash clean"},
	{name: "wrapper retries", often: true, command: "python wrapper.py retries once", hook: "", kernel: "same"},
	{name: "wrapper of a good training", command: "python wrapper.py swallows well", hook: "", kernel: "swallowed-crash clean"},

	// Pythons without the hook.
	{name: "isolated", often: true, command: "python unhooked.py isolated", hook: "", kernel: "same", unhooked: "-I -I torch false"},
	{name: "isolated, with torch", command: "python unhooked.py isolated torch", hook: "", kernel: "same", unhooked: "-I -I torch true"},
	{name: "cleaned environment", command: "python unhooked.py cleaned", hook: "", kernel: "same", unhooked: "PYTHONPATH torch false"},
}

// TestDeath runs the programs about life and death in both tiers.
func TestDeath(t *testing.T) {
	eachTier(t, "death", deathCases, nil)
}

// TestForkBomb: of thousands of children that live for a millisecond the kernel
// tier misses none, or says how many.
func TestForkBomb(t *testing.T) {
	const children = 5000
	bomb := []tierCase{{name: "5000 children", command: "python bomb.py 5000", hook: "", kernel: "same"}}
	eachTier(t, "death", bomb, func(t *testing.T, _ tierCase, f form, r tierRun) {
		seen := r.report.Processes
		t.Logf("tier %s: %+v", f.tier, seen)
		if f.tier == "kernel" && seen.Seen < children+1 {
			t.Errorf("%d processes seen, want %d", seen.Seen, children+1)
		}
		if f.tier == "kernel" && seen.KernelOnly < children/2 {
			t.Errorf("%d seen by the kernel alone: procfs cannot have seen so many of the others", seen.KernelOnly)
		}
	})
}
