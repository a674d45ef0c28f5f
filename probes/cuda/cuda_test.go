package cuda_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/probes/probetest"
	"github.com/dptrace/dptrace/traces"
)

func TestMain(m *testing.M) { probetest.Main(m) }

// fakes compiles the stand-ins for NVIDIA's libraries into a new folder.
func fakes(t testing.TB) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skipf("SKIPPED %s: no C compiler", t.Name())
	}
	dir := t.TempDir()
	for library, source := range map[string]string{"libcuda.so.1": "libcuda.c", "libcudart.so.13": "libcudart.c"} {
		if out, err := exec.Command(cc, "-shared", "-fPIC", "-O2", "-Wall", "-o", filepath.Join(dir, library),
			filepath.Join("testdata/fake", source), "-ldl", "-lpthread").CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", source, err, out)
		}
	}
	return dir
}

// recorded is what the trace of a scenario says.
type recorded struct {
	copies    []string // all that are the same, once, with their number
	memory    []string // what happened to it, in order
	calls     map[string]uint64
	small     map[string]uint64
	libraries []traces.CudaLibrary
}

const steps = 30

func record(t *testing.T, scenario string) recorded {
	t.Helper()
	dir := fakes(t)
	t.Setenv("LD_LIBRARY_PATH", dir) // where the recorder finds the driver before any process maps it
	run, code := probetest.Kernel(t, probetest.Python(t), "testdata/driver.py", dir, scenario, fmt.Sprint(steps))
	if code != 0 {
		t.Fatalf("%s exits %d", scenario, code)
	}
	r := recorded{calls: map[string]uint64{}, small: map[string]uint64{}, libraries: probetest.Rows[traces.CudaLibrary](t, run)}
	same := map[string]int{}
	for _, c := range probetest.Rows[traces.Copy](t, run) {
		where := "other thread"
		if c.Main {
			where = "main"
		}
		text := fmt.Sprintf("%s %s %d bytes, async %v, %s, then %s", c.Direction, c.Function, c.Bytes, c.Async, where, c.Next)
		for mark, is := range map[string]bool{", capturing": c.Capturing, ", " + fmt.Sprint(c.Rows) + " rows": c.Rows != 1} {
			if is {
				text += mark
			}
		}
		same[text+", compute "+c.Compute]++
		if c.CallNS <= 0 || (c.Next == "") != (c.GapNS < 0) || c.Result != 0 {
			t.Errorf("%+v", c)
		}
	}
	for text := range same {
		r.copies = append(r.copies, fmt.Sprintf("%d × %s", same[text], text))
	}
	slices.Sort(r.copies)
	for _, m := range probetest.Rows[traces.HostMemory](t, run) {
		r.memory = append(r.memory, m.What)
		if m.Address == 0 {
			t.Errorf("%+v", m)
		}
	}
	for _, c := range probetest.Rows[traces.CudaCalls](t, run) {
		if c.Final {
			r.calls[c.Function] += c.Calls
			r.small[c.Function] += c.Small
		}
	}
	for _, l := range probetest.Rows[traces.Lost](t, run) {
		t.Errorf("lost: %+v", l)
	}
	return r
}

// What the driver is asked is recorded call by call, whichever way it is asked.
func TestScenarios(t *testing.T) {
	const nonblocking, blocking = "async true, main, then ", "async false, main, then "
	for scenario, want := range map[string]struct {
		copies []string
		memory string
		small  uint64 // of the driver's copies
	}{
		"good": {[]string{"30 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "event, compute other"}, "pinned pinned", 0},
		"pinned_sync": {[]string{
			"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "stream-sync, compute ",
			"29 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "stream-sync, compute same",
		}, "pinned", 0},
		"pageable_blocking": {[]string{
			"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "stream-sync, compute ",
			"29 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "stream-sync, compute same",
		}, "", 0},
		"pageable_nonblocking": {[]string{
			"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "launch, compute ",
			"29 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "launch, compute same",
		}, "", 0},
		"small": {nil, "", steps},
		"item": {[]string{
			"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "launch, compute ",
			"29 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "launch, compute same",
		}, "pinned", steps},
		"registered": {[]string{
			"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "launch, compute ",
			"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "stream-sync, compute same",
			"29 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "launch, compute same",
		}, "registered unregistered", 0},
		"freed":           {[]string{"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "memory, compute "}, "pinned freed", 0},
		"failed_register": {nil, "", 0},
		"managed": {[]string{
			"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "launch, compute ",
			"29 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "launch, compute same",
		}, "managed", 0},
		"synchronous": {[]string{
			"1 × to-device cuMemcpyHtoD_v2 1048576 bytes, " + blocking + "launch, compute ",
			"29 × to-device cuMemcpyHtoD_v2 1048576 bytes, " + blocking + "launch, compute same",
		}, "pinned", 0},
		"captured": {[]string{
			"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + ", compute same",
			"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "launch, capturing, compute ",
		}, "pinned", 0},
		"context_sync": {[]string{"30 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, " + nonblocking + "context-sync, compute "}, "pinned", 0},
		"any_direction": {[]string{
			"1 ×  cuMemcpy 1048576 bytes, " + blocking + ", compute ",
			"30 × to-device cuMemcpyAsync 1048576 bytes, " + nonblocking + "copy, compute ",
			"30 × to-host cuMemcpyAsync 1048576 bytes, " + nonblocking + "copy, compute ",
		}, "pinned", 0},
		"two_dimensions": {[]string{"30 × to-device cuMemcpy2DAsync_v2 262144 bytes, " + nonblocking + "stream-sync, 512 rows, compute "}, "pinned", 0},
		"batch": {[]string{
			"1 ×  cuMemcpyBatchAsync_v2 1048576 bytes, " + nonblocking + ", 4 rows, compute ",
			"29 ×  cuMemcpyBatchAsync_v2 1048576 bytes, " + nonblocking + "copy, 4 rows, compute ",
		}, "pinned", 0},
		"threads": {[]string{"90 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, async true, other thread, then stream-sync, compute "},
			"pinned pinned pinned", 0},
	} {
		t.Run(scenario, func(t *testing.T) {
			r := record(t, scenario)
			slices.Sort(want.copies)
			if !slices.Equal(r.copies, want.copies) {
				t.Errorf("copies\n%s\nwant\n%s", strings.Join(r.copies, "\n"), strings.Join(want.copies, "\n"))
			}
			if got := strings.Join(r.memory, " "); got != want.memory {
				t.Errorf("memory: %s, want %s", got, want.memory)
			}
			var small uint64
			for _, n := range r.small {
				small += n
			}
			if r.calls["cudaMemcpyAsync"] > 0 {
				small -= r.small["cudaMemcpyAsync"]
			}
			if small != want.small {
				t.Errorf("%d small copies, want %d: %v", small, want.small, r.small)
			}
		})
	}
}
