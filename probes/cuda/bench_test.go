package cuda_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dptrace/dptrace/probes/probetest"
	"github.com/dptrace/dptrace/traces"
)

// What a call costs more when it is watched: in the thread that makes it, and in
// the recorder, both of a core at the rate of calls that is named.
func BenchmarkWatched(b *testing.B) {
	dir := fakes(b)
	b.Setenv("FAKE_CUDA_MODEL", "0") // nothing takes any time
	caller := caller(b, dir)
	for _, c := range []struct {
		what string
		rate int
	}{{"copy", 50000}, {"launch", 20000}} {
		b.Run(c.what, func(b *testing.B) {
			const seconds = 5
			command := []string{caller, filepath.Join(dir, "libcuda.so.1"), c.what, fmt.Sprint(seconds * c.rate), fmt.Sprint(c.rate),
				filepath.Join(dir, "ns")}
			for range b.N {
				if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				plain := number(b, filepath.Join(dir, "ns"))
				b.Setenv("LD_LIBRARY_PATH", dir)
				before := cpu(b)
				run, _ := probetest.Kernel(b, command...)
				recorder := float64(cpu(b)-before) / 1e9 / seconds
				os.Unsetenv("LD_LIBRARY_PATH")
				more := (number(b, filepath.Join(dir, "ns")) - plain) * float64(c.rate) / 1e9
				lost := 0
				for _, l := range probetest.Rows[traces.Lost](b, run) {
					lost += int(l.Count)
				}
				b.ReportMetric(100*more, "%core-caller")
				b.ReportMetric(100*recorder, "%core-recorder")
				b.ReportMetric(float64(lost), "lost")
				b.ReportMetric(float64(len(probetest.Rows[traces.Copy](b, run))), "rows")
			}
		})
	}
}

// What a call costs more in a process that is not of the run, while one that has
// nothing to do with it is recorded: uprobes are in the file of the library.
func BenchmarkOthers(b *testing.B) {
	dir := fakes(b)
	b.Setenv("FAKE_CUDA_MODEL", "0")
	caller, library, ns := caller(b, dir), filepath.Join(dir, "libcuda.so.1"), filepath.Join(dir, "ns")
	for _, what := range []string{"copy", "launch"} {
		b.Run(what, func(b *testing.B) {
			call := func() float64 {
				if out, err := exec.Command(caller, library, what, "40000", "20000", ns).CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				return number(b, ns)
			}
			for range b.N {
				plain := call()
				b.Setenv("LD_LIBRARY_PATH", dir)
				begun := filepath.Join(b.TempDir(), "begun")
				during := make(chan float64, 1)
				go func() {
					for _, err := os.Stat(begun); err != nil; _, err = os.Stat(begun) {
						time.Sleep(time.Millisecond)
					}
					during <- call()
					_ = os.Remove(begun)
				}()
				run, _ := probetest.Kernel(b, "sh", "-c", "touch $0; while test -e $0; do sleep 0.1; done", begun)
				os.Unsetenv("LD_LIBRARY_PATH")
				if n := len(probetest.Rows[traces.CudaLibrary](b, run)); n == 0 {
					b.Fatal("nothing was watched")
				}
				b.ReportMetric(<-during-plain, "ns/call")
				b.ReportMetric(float64(len(probetest.Rows[traces.Copy](b, run))), "rows")
			}
		})
	}
}

func number(b *testing.B, path string) (n float64) {
	b.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := fmt.Sscan(strings.TrimSpace(string(text)), &n); err != nil {
		b.Fatal(err)
	}
	return n
}

// cpu is the CPU time of this process, which is the recorder, in ns.
func cpu(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
