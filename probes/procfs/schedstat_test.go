package procfs

import (
	"os"
	"testing"
)

func TestSchedstat(t *testing.T) {
	for text, want := range map[string][2]int64{"1200 34 5\n": {1200, 34}, "": {}, "1": {}, "a 2 3": {}, "1 b 3": {}} {
		ran, waited, err := parseSchedstat([]byte(text))
		if (err == nil) != (want != [2]int64{}) || err == nil && [2]int64{ran, waited} != want {
			t.Errorf("%q: %d %d %v", text, ran, waited, err)
		}
	}
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skip("this kernel has no schedstat: ", err)
	}
	if ran, _, err := Schedstat(int32(os.Getpid())); err != nil || ran <= 0 {
		t.Errorf("ran %d: %v", ran, err)
	}
}
