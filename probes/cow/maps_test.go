package cow

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someMaps = `00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/dbus daemon
00651000-00652000 rw-p 00051000 08:02 173521 /usr/bin/dbus daemon
00e03000-00e24000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 
7f0000400000-7f0000401000 rw-s 00000000 00:17 99 /dev/shm/torch_1 (deleted)
not a line
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]
`

func TestParseMaps(t *testing.T) {
	want := []region{
		{0x400000, 0x452000, "file"}, {0x651000, 0x652000, "file"}, {0xe03000, 0xe24000, "heap"},
		{0x7f0000000000, 0x7f0000400000, "anon"}, {0x7f0000400000, 0x7f0000401000, "shm"}, {0x7ffd00000000, 0x7ffd00021000, "stack"},
	}
	if diff := cmp.Diff(want, parseMaps([]byte(someMaps)), cmp.AllowUnexported(region{})); diff != "" {
		t.Error(diff)
	}
}

func TestDominant(t *testing.T) {
	maps := parseMaps([]byte(someMaps))
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
	if got := dominant(nil, 0, 1); got != "" {
		t.Errorf("of no mappings: %q", got)
	}
}
