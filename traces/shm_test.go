package traces

import "testing"

func TestInFlight(t *testing.T) {
	for name, tc := range map[string]struct {
		loader            Loader
		most              int64
		room              int64 // batches
		workers, prefetch int64
	}{
		"no workers":          {Loader{Length: 100, BatchSize: 4}, 0, 9, 0, 0},
		"the usual":           {Loader{NumWorkers: 4, Prefetch: 2, Length: -1, BatchSize: 4}, 9, 6, 4, 1},
		"torch's own":         {Loader{NumWorkers: 2, Prefetch: -1, Length: -1, BatchSize: 4}, 5, 5, 2, 1},
		"few workers":         {Loader{NumWorkers: 8, Prefetch: 4, Length: -1}, 33, 5, 3, 1},
		"no more than it has": {Loader{NumWorkers: 2, Prefetch: 2, Length: -1}, 5, 100, 2, 2},
		"one":                 {Loader{NumWorkers: 2, Prefetch: 2, Length: -1}, 5, 3, 1, 1},
		"none fits":           {Loader{NumWorkers: 2, Prefetch: 2, Length: -1}, 5, 2, 0, 0},
		"a short pass":        {Loader{NumWorkers: 4, Prefetch: 2, Length: 10, BatchSize: 4}, 3, 10, 4, 2},
		"an iterable":         {Loader{NumWorkers: 4, Prefetch: 2, Length: 10, BatchSize: 4, Iterable: true}, 9, 10, 4, 2},
	} {
		workers, prefetch, ok := tc.loader.FewerInFlight(tc.room)
		if tc.loader.MostInFlight() != tc.most || workers != tc.workers || ok && prefetch != tc.prefetch || ok != (tc.workers > 0) {
			t.Errorf("%s: %d in flight; of %d: %d workers, %d ahead, %v", name, tc.loader.MostInFlight(), tc.room, workers, prefetch, ok)
		}
	}
}
