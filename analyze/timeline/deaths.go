package timeline

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dptrace/dptrace/traces"
)

// WorkerDeathError is torch's error in the training loop that names dead workers. It
// is raised by next(), or by the handler of SIGCHLD wherever the loop is just
// then, and only while torch has not begun to shut the workers down.
type WorkerDeathError struct {
	*traces.Exception
	Pids   []int32
	Signal int32 // 0: none is named; -1: by a name that is not known here
	Code   int32 // -1: none is named
}

// Torch's words, from torch/csrc/DataLoader.cpp and torch/utils/data/dataloader.py.
var (
	workerDied = regexp.MustCompile(
		`^DataLoader worker \(pid(?:\(s\))? ([0-9]+(?:, [0-9]+)*)\) ` +
			`(?:is killed by signal: ([^.]+)\.|exited unexpectedly(?: with exit code ([0-9]+)\.)?)`,
	)
	byText = map[string]int32{
		"Hangup":                   SIGHUP,
		"Interrupt":                SIGINT,
		"Quit":                     SIGQUIT,
		"Illegal instruction":      SIGILL,
		"Trace/breakpoint trap":    SIGTRAP,
		"Aborted":                  SIGABRT,
		"Bus error":                SIGBUS,
		"Floating point exception": SIGFPE,
		"Killed":                   SIGKILL,
		"User defined signal 1":    SIGUSR1,
		"Segmentation fault":       SIGSEGV,
		"User defined signal 2":    SIGUSR2,
		"Broken pipe":              SIGPIPE,
		"Alarm clock":              SIGALRM,
		"Terminated":               SIGTERM,
		"CPU time limit exceeded":  SIGXCPU,
		"File size limit exceeded": SIGXFSZ,
		"Bad system call":          SIGSYS,
	}
)

func complaintOf(e *traces.Exception) (c WorkerDeathError, ok bool) {
	m := workerDied.FindStringSubmatch(e.Message)
	if m == nil || e.Type != "RuntimeError" || !strings.Contains(e.File, "/torch/utils/data/") && !strings.Contains(e.File, "/torchdata/") {
		return c, false
	}
	c = WorkerDeathError{Exception: e, Code: -1}
	for _, text := range strings.Split(m[1], ", ") {
		if pid, err := strconv.ParseInt(text, 10, 32); err == nil {
			c.Pids = append(c.Pids, int32(pid))
		}
	}
	if m[2] != "" {
		if c.Signal = byText[strings.TrimSpace(m[2])]; c.Signal == 0 {
			c.Signal = -1
		}
	}
	if code, err := strconv.ParseInt(m[3], 10, 32); err == nil {
		c.Code = int32(code)
	}
	return c, true
}

// joinComplaints gives the errors to the workers that they name. A worker that
// ended while the loader was still starting its workers has no begin row: it is
// of the loader whose pass began last.
func joinComplaints(p *Process) {
	for i := range p.Raised {
		c, ok := complaintOf(&p.Raised[i])
		if !ok {
			continue
		}
		for _, pid := range c.Pids {
			if wp := p.workerOf(pid, c.TsNS); wp != nil {
				if !slices.ContainsFunc(wp.Named, func(old WorkerDeathError) bool { return old.Exception == c.Exception }) {
					wp.Named = append(wp.Named, c)
				}
				continue
			}
			var last *Pass
			for _, l := range p.Loaders {
				for _, pass := range l.Passes {
					if pass.Begin <= c.TsNS && l.object(pass.Object).NumWorkers > 0 && (last == nil || pass.Begin >= last.Begin) {
						last = pass
					}
				}
			}
			if last != nil && len(last.Workers) == 0 {
				l := last.Loader
				w := &WorkerPass{Pass: last, Number: -1}
				l.WorkerProcesses = append(
					l.WorkerProcesses,
					&WorkerProcess{Loader: l, Number: -1, Pid: pid, Object: last.Object, Workers: []*WorkerPass{w}, Named: []WorkerDeathError{c}},
				)
			}
		}
	}
}

// workerOf is the worker process that had a pid last, at a time.
func (p *Process) workerOf(pid int32, ns int64) *WorkerProcess {
	var best *WorkerProcess
	for _, l := range p.Loaders {
		for _, wp := range l.WorkerProcesses {
			if wp.Pid == pid && (wp.Begin == nil || wp.Begin.TsNS <= ns) &&
				(best == nil || best.Begin == nil || wp.Begin != nil && wp.Begin.TsNS > best.Begin.TsNS) {
				best = wp
			}
		}
	}
	return best
}
