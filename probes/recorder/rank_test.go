package recorder

import "testing"

func TestFirstRank(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  map[string]string
		want bool
	}{
		{"no launcher", nil, true},
		{"rank 0", map[string]string{"RANK": "0"}, true},
		{"another rank", map[string]string{"RANK": "3"}, false},
		{"srun", map[string]string{"SLURM_PROCID": "2"}, false},
		{"torchrun inside of srun", map[string]string{"RANK": "0", "SLURM_PROCID": "1"}, true},
		{"not a number", map[string]string{"RANK": "first"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := firstRank(func(name string) string { return tc.env[name] }); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
