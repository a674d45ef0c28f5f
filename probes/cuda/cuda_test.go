package cuda_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/probes/cuda"
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

// caller compiles testdata/caller.c into a folder.
func caller(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "caller")
	if out, err := exec.Command("cc", "-O2", "-o", path, "testdata/caller.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
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

// record runs a scenario. early: the recorder finds the libraries before any
// process maps them.
func record(t *testing.T, scenario string, early bool) recorded {
	t.Helper()
	dir := fakes(t)
	if early {
		t.Setenv("LD_LIBRARY_PATH", dir)
	}
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
			r := record(t, scenario, true)
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

// of is what is said of one library: late of each process in the order of rows, the
// row of its finding first.
func (r recorded) of(library string) (late []bool) {
	for _, l := range r.libraries {
		if l.Library == library && l.How != "" {
			late = append(late, l.Late)
		}
	}
	return late
}

// A library that a process has mapped before it is watched is found, and what it
// did until then is said to be unknown; also if another file has its path by now.
func TestLate(t *testing.T) {
	for _, scenario := range []string{"late", "replaced"} {
		t.Run(scenario, func(t *testing.T) {
			r := record(t, scenario, false)
			if want := []string{"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, async true, main, then memory, compute ",
				"1 × to-device cuMemcpyHtoDAsync_v2 1048576 bytes, async true, main, then stream-sync, compute "}; !slices.Equal(r.copies, want) {
				t.Errorf("%q", r.copies)
			}
			if got := r.of("driver"); !slices.Equal(got, []bool{false, true}) || !slices.Equal(r.memory, []string{"pinned"}) {
				t.Errorf("driver late: %v; memory %v", got, r.memory)
			}
		})
	}
}

// What a forked process can know of its parent's memory is not known to be seen.
func TestForked(t *testing.T) {
	r := record(t, "forked", true)
	if got := r.of("driver"); !slices.Equal(got, []bool{false, false, true, true}) {
		t.Errorf("late: %v", got)
	}
	if len(r.copies) != 1 || !strings.HasPrefix(r.copies[0], "3 × ") {
		t.Errorf("%q", r.copies)
	}
}

// A process that ends inside of a call ends as it does without us.
func TestEndsInACall(t *testing.T) {
	r := record(t, "killed", true)
	if n := r.calls["cudaMemcpyAsync"]; n == 0 || r.calls["cuMemcpyHtoDAsync_v2"] != n-1 {
		t.Errorf("%d calls of the runtime, %d of the driver ended", n, r.calls["cuMemcpyHtoDAsync_v2"])
	}
}

// The runtime's copies are as many as the driver's.
func TestRuntimeAndDriverCountAlike(t *testing.T) {
	r := record(t, "item", true)
	driver := r.calls["cuMemcpyHtoDAsync_v2"] + r.calls["cuMemcpyDtoHAsync_v2"]
	if runtime := r.calls["cudaMemcpyAsync"]; driver != 2*steps || runtime != driver || r.calls["cudaStreamSynchronize"] != r.calls["cuStreamSynchronize"] ||
		r.calls["cuLaunchKernel"] != 3*steps {
		t.Errorf("%v", r.calls)
	}
	for _, l := range r.libraries {
		if l.Library == "driver" && (l.Watched == 0 || l.Shifted != l.Watched) || l.How != "multi" && l.How != "single" {
			t.Errorf("%+v", l)
		}
	}
}

// Before Linux 6.6 each function has a probe of its own.
func TestOneByOne(t *testing.T) {
	cuda.OneByOne(t)
	r := record(t, "item", true)
	if len(r.copies) != 2 || r.calls["cuMemcpyDtoHAsync_v2"] != steps || r.libraries[0].How != "single" {
		t.Errorf("%q %v %+v", r.copies, r.calls, r.libraries)
	}
}

// Of copies that come too often some are told, and all are counted.
func TestTooManyCopies(t *testing.T) {
	cuda.Limit(t, 20)
	dir := fakes(t)
	const copies = 4000
	caller := caller(t, dir)
	t.Setenv("FAKE_CUDA_MODEL", "0") // nothing takes any time
	t.Setenv("LD_LIBRARY_PATH", dir)
	run, code := probetest.Kernel(t, caller, filepath.Join(dir, "libcuda.so.1"), "copy", fmt.Sprint(copies), "20000", filepath.Join(dir, "ns"))
	if code != 0 {
		t.Fatalf("exits %d", code)
	}
	var lost, counted uint64
	for _, l := range probetest.Rows[traces.Lost](t, run) {
		if l.Table != "copy" || !strings.Contains(l.Reason, "100,000 copies a second") {
			t.Errorf("%+v", l)
		}
		lost += l.Count
	}
	for _, c := range probetest.Rows[traces.CudaCalls](t, run) {
		if c.Final {
			counted += c.Calls
		}
	}
	if told := uint64(len(probetest.Rows[traces.Copy](t, run))); told < 20 || told > copies/4 || told+lost != copies || counted != copies {
		t.Errorf("%d of %d copies are told, %d said to be lost, %d counted", told, copies, lost, counted)
	}
}

// The kernel may refuse; then the report can say why nothing is known of copies.
func TestNoLibraryOfCuda(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "libcuda.so.1"), []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LD_LIBRARY_PATH", dir)
	run, code := probetest.Kernel(t, "true")
	if code != 0 {
		t.Fatalf("exits %d", code)
	}
	var notes []string
	for _, l := range probetest.Rows[traces.CudaLibrary](t, run) {
		notes = append(notes, l.Note)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "read "+dir) {
		t.Errorf("%q", notes)
	}
}

// The loader's cache is read as ldconfig writes it, and no byte of it is trusted.
func TestCached(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cache")
	var b []byte
	u32 := func(values ...uint32) {
		for _, v := range values {
			b = binary.NativeEndian.AppendUint32(b, v)
		}
	}
	names := "libc.so.6\x00/lib/libc.so.6\x00libcuda.so.1\x00/odd/libcuda.so.1\x00"
	b = append(b, "glibc-ld.so.cache1.1"...)
	u32(2, uint32(len(names)))
	b = append(b, make([]byte, 48-len(b))...)
	const entries = 48 + 2*24
	u32(1, entries, entries+10, 0, 0, 0, 1, entries+25, entries+38, 0, 0, 0)
	b = append(b, names...)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := cuda.Cached(path); !slices.Equal(got, []string{"/odd/libcuda.so.1"}) {
		t.Errorf("%q", got)
	}
	for i := range b { // whatever is there, it ends
		for _, damaged := range [][]byte{b[:i], append(append(slices.Clone(b[:i]), b[i]^0xff), b[i+1:]...)} {
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			cuda.Cached(path)
		}
	}
}

// NVIDIA's own libraries, where CUDA_LIBRARIES names files or folders of them:
// their stubs are recognised, no function is missing, and what the driver's is
// asked is decoded, as far as it gets without a device.
func TestRealLibraries(t *testing.T) {
	given := filepath.SplitList(os.Getenv("CUDA_LIBRARIES"))
	if len(given) == 0 {
		t.Skipf("SKIPPED %s: CUDA_LIBRARIES names none", t.Name())
	}
	var all []string
	for _, root := range given {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				all = append(all, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, path := range all {
		found, missing, err := cuda.Sites(path)
		if err == nil && found == nil {
			continue // another library
		}
		n++
		t.Run(filepath.Base(path), func(t *testing.T) {
			shifted := 0
			for _, is := range found {
				if is {
					shifted++
				}
			}
			t.Logf("%d functions, %d behind a stub, lacks %q", len(found), shifted, missing)
			driver := strings.HasPrefix(filepath.Base(path), "libcuda.so")
			if err != nil || len(missing) > 0 || driver && shifted != len(found) {
				t.Errorf("%v", err)
			}
			if driver {
				asked(t, path)
			}
		})
	}
	if n == 0 {
		t.Error("there is none")
	}
}

// asked records calls of a driver that has no context.
func asked(t *testing.T, path string) {
	dir := t.TempDir()
	library := filepath.Join(dir, "libcuda.so.1")
	if err := os.Symlink(path, library); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LD_LIBRARY_PATH", dir)
	run, code := probetest.Kernel(t, probetest.Python(t), "testdata/uninitialised.py", library)
	copies := probetest.Rows[traces.Copy](t, run)
	if code != 0 || len(copies) != 7 {
		t.Fatalf("exits %d; %d copies", code, len(copies))
	}
	for i, c := range copies {
		next := "copy"
		if i == len(copies)-1 {
			next = "stream-sync"
		}
		if c.Source != 0x1234 || c.Target != 0x7000 || c.Bytes != 1<<20 || c.Stream != 0x77 || c.Result != 3 || c.Next != next || c.CallNS <= 0 {
			t.Errorf("%+v", c)
		}
	}
	if memory := probetest.Rows[traces.HostMemory](t, run); len(memory) != 0 {
		t.Errorf("memory of calls that failed: %+v", memory)
	}
	for _, c := range probetest.Rows[traces.CudaCalls](t, run) {
		if c.Failed != c.Calls {
			t.Errorf("%+v", c)
		}
	}
}
