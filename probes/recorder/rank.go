package recorder

import "strconv"

// rankVariables are where launchers that start one recorder per rank say which
// rank it is: torchrun, srun, Open MPI, MPICH.
var rankVariables = []string{"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}

// firstRank reports whether this recorder is the one that speaks for its run: all
// but rank 0 are silent, or a job of a thousand ranks prints a thousand reports.
func firstRank(getenv func(string) string) bool {
	for _, name := range rankVariables {
		if n, err := strconv.Atoi(getenv(name)); err == nil {
			return n == 0
		}
	}
	return true
}
