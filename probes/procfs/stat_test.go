package procfs

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	const tail = " S 7 8 8 1083436 -1 4194560 1 2 3 4 150 50 0 0 20 0 12 0 123456 1000 77 18446744073709551615 1 1"
	const ticks, cpu = 123456, 2 * time.Second
	terminal := unix.Mkdev(136, 300)
	for name, tc := range map[string]struct {
		text string
		want Stat
		ok   bool
	}{
		"usual":                   {"42 (python3)" + tail, Stat{42, 7, "python3", 'S', terminal, ticks, cpu, 12, 77, 4}, true},
		"a name to trick parsers": {"42 (a) R 1 (b c)" + tail, Stat{42, 7, "a) R 1 (b c", 'S', terminal, ticks, cpu, 12, 77, 4}, true},
		"cut":                     {"42 (python3) S 7", Stat{}, false},
		"no name":                 {"42 python3 S 7", Stat{}, false},
		"empty":                   {"", Stat{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat([]byte(tc.text))
			if (err == nil) != tc.ok {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, got); tc.ok && diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The tick is assumed to be 10 ms; a machine where it is not would compare
// start times wrongly.
func TestStartTicks(t *testing.T) {
	before := bootNow(t)
	cmd := exec.Command("sleep", "10")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	after := bootNow(t)
	st, err := ReadStat(int32(cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if started := int64(st.StartTicks) * int64(Tick); started < before-int64(Tick) || started > after {
		t.Errorf("started at %d ns, was between %d and %d", started, before, after)
	}
	if st.Ppid != int32(os.Getpid()) {
		t.Errorf("ppid %d, want %d", st.Ppid, os.Getpid())
	}
}

func bootNow(t *testing.T) int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano()
}
