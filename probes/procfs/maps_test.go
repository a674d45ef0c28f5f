package procfs

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someMaps = `00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/dbus daemon
00651000-00652000 rw-p 00051000 08:02 173521 /usr/bin/dbus daemon
00e03000-00e24000 rw-p 00000000 00:00 0 [heap]
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 
7f0000400000-7f0000401000 rw-s 00000000 00:17 99 /dev/shm/torch_1 (deleted)
not a line
7f00-7fzz rw-p 00000000 00:00 0 
7f00-7f10 rw-p
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]
`

func TestParseMaps(t *testing.T) {
	const dbus = "/usr/bin/dbus daemon"
	want := []Mapping{
		{0x400000, 0x452000, dbus, true, 173521, false}, {0x651000, 0x652000, dbus, true, 173521, false},
		{0xe03000, 0xe24000, "[heap]", false, 0, false},
		{0x7f0000000000, 0x7f0000400000, "", false, 0, false},
		{0x7f0000400000, 0x7f0000401000, "/dev/shm/torch_1 (deleted)", true, 99, true},
		{0x7ffd00000000, 0x7ffd00021000, "[stack]", false, 0, false},
	}
	if diff := cmp.Diff(want, parseMaps([]byte(someMaps), "")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[4:5], parseMaps([]byte(someMaps), "torch_")); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkParseMaps(b *testing.B) {
	text := []byte(strings.Repeat(someMaps, 300))
	for b.Loop() {
		parseMaps(text, "")
	}
}
