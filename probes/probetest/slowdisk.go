package probetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// SlowDisk is a control group whose processes get no more than so many bytes a
// second from the disk that folder is on; a process joins it by writing 0 into its
// cgroup.procs. The test is skipped where such a group cannot be made. It is removed
// after the test, whose processes must have ended by then.
func SlowDisk(t testing.TB, folder string, perSecond int) string {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(folder, &st); err != nil {
		t.Fatal(err)
	}
	device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	var why []string
	for _, limit := range []struct{ root, file, text string }{
		{"/sys/fs/cgroup/blkio", "blkio.throttle.read_bps_device", fmt.Sprintf("%s %d", device, perSecond)},
		{"/sys/fs/cgroup", "io.max", fmt.Sprintf("%s rbps=%d", device, perSecond)},
	} {
		group := filepath.Join(limit.root, fmt.Sprintf("dptrace-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-")))
		err := os.Mkdir(group, 0o755)
		if err != nil {
			why = append(why, err.Error())
			continue
		}
		if err = os.WriteFile(filepath.Join(group, limit.file), []byte(limit.text), 0o600); err == nil {
			t.Cleanup(func() {
				if err := os.Remove(group); err != nil {
					t.Logf("control group left behind: %v", err)
				}
			})
			return group
		}
		why = append(why, err.Error())
		_ = os.Remove(group)
	}
	t.Skipf("SKIPPED %s: needs a control group that limits reading from a disk, which cannot be made here: %s", t.Name(),
		strings.Join(why, "; "))
	return ""
}
