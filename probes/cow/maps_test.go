package cow

import (
	"slices"
	"testing"

	"github.com/dptrace/dptrace/probes/procfs"
)

func TestDominant(t *testing.T) {
	maps := regions([]procfs.Mapping{
		{Start: 0x400000, End: 0x452000, Name: "/usr/bin/dbus daemon", File: true},
		{Start: 0x651000, End: 0x652000, Name: "/usr/bin/dbus daemon", File: true},
		{Start: 0xe03000, End: 0xe24000, Name: "[heap]"},
		{Start: 0x7f0000000000, End: 0x7f0000400000},
		{Start: 0x7f0000400000, End: 0x7f0000401000, Name: "/dev/shm/torch_1 (deleted)", File: true, Shared: true},
		{Start: 0x7ffd00000000, End: 0x7ffd00021000, Name: "[stack]"},
	})
	for name, tc := range map[string]struct {
		start, end uint64
		want       string
	}{
		"within one":           {0x7f0000000000, 0x7f0000200000, "anon"},
		"most of it":           {0x7f0000200000, 0x7f0000600000, "anon"},
		"shared alone":         {0x7f0000400000, 0x7f0000600000, "shm"},
		"shared beside a bit":  {0x7f00003ff000, 0x7f0000600000, "anon"},
		"two, the larger wins": {0x600000, 0x1000000, "heap"},
		"nothing there":        {0x10000000, 0x10200000, ""},
		"below all":            {0, 0x200000, ""},
		"above all":            {0x7fff00000000, 0x7fff00200000, ""},
	} {
		if got := dominant(maps, tc.start, tc.end); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	side := regions([]procfs.Mapping{{Start: 1, End: 2, File: true}, {Start: 2, End: 3, File: true}, {Start: 3, End: 4}, {Start: 5, End: 6}})
	if want := []region{{1, 3, "file"}, {3, 4, "anon"}, {5, 6, "anon"}}; !slices.Equal(side, want) {
		t.Errorf("regions %v, want %v", side, want)
	}
	if got := dominant(nil, 0, 1); got != "" {
		t.Errorf("of no mappings: %q", got)
	}
}
