package files

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A file of the same name somewhere else is not the one that was opened.
func TestIsFile(t *testing.T) {
	folder, err := os.MkdirTemp("/dev/shm", "dptrace-test-") // a tmpfs: not an overlay, as a container's /tmp may be
	if err != nil {
		t.Skipf("SKIPPED %s: no /dev/shm: %v", t.Name(), err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(folder+"/"+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var st unix.Stat_t
	if err := unix.Stat(folder+"/a", &st); err != nil {
		t.Fatal(err)
	}
	e := &filesOpenEvent{Device: unix.Major(st.Dev)<<20 | unix.Minor(st.Dev), Number: st.Ino}
	other := &filesOpenEvent{Device: e.Device + 1, Number: st.Ino} // of another file system
	for _, tc := range []struct {
		name string
		e    *filesOpenEvent
		want bool
	}{{"a", e, true}, {"b", e, false}, {"missing", e, false}, {"a", other, false}} {
		if got := isFile(folder+"/"+tc.name, tc.e); got != tc.want {
			t.Errorf("%s, %+v: %v, want %v", tc.name, tc.e.Device, got, tc.want)
		}
	}
}
