package workerkilled

import (
	"fmt"
	"strings"

	"github.com/dptrace/dptrace/analyze/words"
)

// fix is what to do about one cause.
func (o *outcome) fix(d *death, c cause) string {
	l := d.Worker.Loader.First()
	switch c.kind {
	case cgroupOom, hostOom, oomNear:
		text := fmt.Sprintf("Let the run use less memory than %s, or raise that limit", words.Bytes(c.limit))
		if c.limit == 0 {
			text = "Let the run use less memory"
		}
		if c.kind == hostOom {
			text = "Let the run use less memory, or use a machine with more than " + words.Bytes(c.limit)
		}
		return text + fmt.Sprintf(". Each of the %d workers adds its own.\n", l.NumWorkers) +
			"What the workers copied is in this report, if it counts: memory-growth-cow, dataset-copied-per-worker."
	case sigbusShm:
		prefetch := max(int(l.Prefetch), 2)
		n := int(l.NumWorkers)
		return fmt.Sprintf("# /dev/shm must hold (num_workers x prefetch_factor + 1) batches: here (%d x %d + 1) = %d.\n",
			n, prefetch, n*prefetch+1) +
			"docker run --shm-size=8g ...      # compose: shm_size: 8gb; Kubernetes: an emptyDir with medium: Memory at /dev/shm\n" +
			"# Where it cannot be raised: fewer batches at once, smaller ones, or uint8 in place of float32 until they are on the GPU.\n" +
			fmt.Sprintf("DataLoader(..., num_workers=%d, prefetch_factor=%d)", max(n/2, 1), max(prefetch/2, 1))
	case sigbusFile:
		return fmt.Sprintf("Do not truncate or replace %s in place while it is mapped: write a new file and os.replace() it. "+
			"On a network file system, copy it to a local disk first.", c.where)
	case sigbus:
		return "df -h /dev/shm      # full while it trains? then: docker run --shm-size=8g ...\n" +
			"dptrace record --tier kernel -- ...      # names the mapping: /dev/shm, or a file that became shorter"
	case fault, abort, bySelf:
		return fetchAgain(d)
	case sender:
		f := d.Worker.Process.Fatal()
		who := f.SenderComm
		if line := o.cmdline(d, f); line != "" {
			who = line
		}
		if who == "" {
			return fetchAgain(d)
		}
		return fmt.Sprintf("Keep `%s` from signalling pid %d. "+
			"To stop the training from there, signal the main process (pid %d): it shuts its workers down.",
			who, d.Worker.Pid, d.Worker.Loader.Process.Pid)
	case exited:
		if c.where != "" {
			return "At " + c.where + ": raise an Exception that says what is wrong. torch hands it to the training loop, with its traceback."
		}
		return fetchAgain(d)
	case unsaid:
		return fetchAgain(d)
	}
	return "dptrace record --tier kernel -- ...      # as root, or with CAP_BPF and CAP_PERFMON: " +
		"names who sent the signal (dptrace doctor says what is missing)"
}

// fetchAgain fetches the batch in the main process, where the error is seen.
func fetchAgain(d *death) string {
	given, _ := d.pass().InFlight()
	if len(given) == 0 || len(given[0].Indices) == 0 {
		return "python -X faulthandler ...      # with num_workers=0: the error then shows where it comes from"
	}
	g := given[0]
	var indices []string
	for _, i := range g.Indices {
		indices = append(indices, fmt.Sprint(i))
	}
	more := ""
	if g.Count > len(g.Indices) {
		more = fmt.Sprintf("  # the first %d of %d", len(g.Indices), g.Count)
	}
	return fmt.Sprintf("# Fetch batch %d in the main process, under python -X faulthandler, and repair what it shows:\n", g.Batch) +
		fmt.Sprintf("for i in [%s]:%s\n    print(i, flush=True)\n    dataset[i]", strings.Join(indices, ", "), more)
}
