package timeline

import (
	"cmp"
	"slices"

	"github.com/dptrace/dptrace/traces"
)

// joinWorkers joins the worker processes of one part with the passes that they
// served, and fills the index that finds the worker of a row.
//
// The loader's process knows its workers by pid; the worker's process knows its
// number but not its loader. Pids come back when many workers live one after
// another, so the nearest in time that nobody else has is taken. Their parent
// need not be the loader's process: under forkserver it is the fork server.
func (t *Timeline) joinWorkers(rows *partRows, here []*Process) {
	byPid := map[int32][]*Process{}
	for _, p := range here {
		if rows.procs[p.Proc].ready != nil || p.Kind == "worker" {
			byPid[p.Pid] = append(byPid[p.Pid], p)
		}
	}
	taken := map[*Process]bool{}
	defer joinUnready(here)
	for _, p := range here {
		pr := rows.procs[p.Proc]
		starts := map[passKey][]traces.Worker{}
		slices.SortStableFunc(pr.starts, func(a, b traces.Worker) int { return cmp.Compare(a.TsNS, b.TsNS) })
		for _, w := range pr.starts {
			starts[passKey{w.Loader, w.Pass}] = append(starts[passKey{w.Loader, w.Pass}], w)
		}
		for _, l := range p.Loaders {
			var alive map[int32]*started // of persistent workers, by number
			var object uint32
			for _, pass := range l.Passes {
				fresh := starts[passKey{pass.Object, pass.Recorded}]
				if pass.Object != object || !l.object(pass.Object).Persistent {
					object, alive = pass.Object, map[int32]*started{}
				}
				for _, w := range fresh {
					s := &started{
						number: w.Worker,
						first:  pass.Recorded,
						wp:     &WorkerProcess{Loader: l, Number: int(w.Worker), Pid: w.Pid, Object: w.Loader, Begin: &w},
					}
					l.WorkerProcesses = append(l.WorkerProcesses, s.wp)
					if s.process = nearest(byPid[w.Pid], taken, &w, rows); s.process != nil {
						taken[s.process] = true
						s.wp.Process = s.process
						s.process.Rank, s.process.WorldSize = p.Rank, p.WorldSize
					}
					alive[w.Worker] = s
				}
				t.serve(pass, alive, pr, rows)
			}
		}
		joinExits(p, pr)
		joinComplaints(p)
	}
}

// started is a worker that a pass started; persistent ones serve later passes
// too.
type started struct {
	number  int32
	first   uint32
	process *Process
	wp      *WorkerProcess
}

func (t *Timeline) serve(pass *Pass, alive map[int32]*started, pr *procRows, rows *partRows) {
	main := pass.Loader.Process
	numbers := make([]int32, 0, len(alive))
	for n := range alive {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		s := alive[n]
		w := &WorkerPass{
			Pass:    pass,
			Number:  int(n),
			Process: s.process,
			handed:  -1,
			given:   pr.byPass[passKey{pass.Object, pass.Recorded}].given[n],
		}
		s.wp.Workers = append(s.wp.Workers, w)
		if s.process != nil {
			local := pass.Recorded - s.first
			c := rows.procs[s.process.Proc].windows[windowKey{passKey{0, local}, n}]
			w.Windows = c.windows()
			if c != nil {
				w.handed = c.handed
			}
			t.workers[workerKey{main.Part, s.process.Proc, 0, local, n}] = w
		}
		pass.Workers = append(pass.Workers, w)
	}
	if len(alive) == 0 && pass.Loader.object(pass.Object).NumWorkers <= 0 {
		w := &WorkerPass{Pass: pass, Number: -1, Process: main}
		w.Windows = pr.windows[windowKey{passKey{pass.Object, pass.Recorded}, -1}].windows()
		t.workers[workerKey{main.Part, main.Proc, pass.Object, pass.Recorded, -1}] = w
		pass.Workers = []*WorkerPass{w}
	}
}

func (c *windowCount) windows() int {
	switch {
	case c == nil:
		return 0
	case c.filled > 0:
		return c.filled
	}
	return c.all
}

func (l *Loader) object(number uint32) *traces.Loader {
	for i := range l.Objects {
		if l.Objects[i].Loader == number {
			return &l.Objects[i]
		}
	}
	return &l.Objects[0]
}

func nearest(candidates []*Process, taken map[*Process]bool, w *traces.Worker, rows *partRows) *Process {
	var best *Process
	var bestGap int64
	for _, p := range candidates {
		ready := rows.procs[p.Proc].ready
		if taken[p] || ready != nil && ready.Worker != w.Worker {
			continue
		}
		gap := p.Begin - w.TsNS
		if gap < 0 {
			gap = -gap
		}
		if best == nil || gap < bestGap {
			best, bestGap = p, gap
		}
	}
	return best
}
