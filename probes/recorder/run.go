package recorder

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"

	"github.com/dptrace/dptrace/traces"
)

// runID is the same in all recorders of one run: what the launcher gave it, or
// else made here.
func runID() (id string, given bool) {
	if job := os.Getenv("SLURM_JOB_ID"); job != "" {
		id = "slurm-" + job
		// A job has steps, and keeps its number when it is started again.
		for _, part := range []string{"SLURM_STEP_ID", "SLURM_RESTART_COUNT"} {
			if n := os.Getenv(part); n != "" {
				id += "." + n
			}
		}
		return id, true
	}
	// torchrun's id is "none" unless its user chose one.
	if id := os.Getenv("TORCHELASTIC_RUN_ID"); id != "" && id != "none" {
		return "torchelastic-" + id, true
	}
	return rand.Text(), false
}

// sameRun reports whether all that is in a folder are parts of this run, as when
// srun starts one recorder per rank with the same -o. A part that has nothing
// in it yet is being begun.
func sameRun(dir string, entries []fs.DirEntry, runID string) bool {
	for _, e := range entries {
		if !e.IsDir() {
			return false
		}
	}
	run, err := traces.Open(dir)
	if err != nil {
		return errors.Is(err, traces.ErrEmpty)
	}
	for _, p := range run.Parts {
		if p.RunID != runID {
			return false
		}
	}
	return true
}
