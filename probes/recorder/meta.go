package recorder

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/traces"
)

const (
	clockEvery = 10 * time.Second
	costEvery  = 10 * time.Second
	// A recorder that is killed loses what it has not written: up to a second, be it
	// half of one in a ring and half here, or all of it here. Every second look of
	// the hook's; a little less, so that it comes with the look and not after it.
	flushEvery = 980 * time.Millisecond
)

func now() traces.Head { return traces.Head{TsNS: probe.Now()} }

func (r *recording) meta(key, value string) {
	r.out.Append(traces.Meta{Head: now(), Key: key, Value: value})
}

// writeBegin says what is recorded. It is on the disk before the target runs:
// whatever happens later, the trace tells what it is a trace of.
func (r *recording) writeBegin() {
	command, err := json.Marshal(r.Secrets.Args(r.Command))
	if err != nil {
		command = []byte("[]") // strings always marshal
	}
	cwd, _ := os.Getwd() // "" where it was removed
	r.meta("schema", "dptrace.trace/"+strconv.Itoa(traces.SchemaVersion))
	r.meta("version", r.Version)
	r.meta("run_id", r.out.runID)
	r.meta("command", string(command))
	r.meta("cwd", cwd)
	if values := r.Secrets.Values(); len(values) > 0 {
		text, _ := json.Marshal(values) // strings always marshal
		r.meta("redact", string(text))
	}
	r.meta("started_ns", strconv.FormatInt(probe.RealNow(), 10))
	r.meta("tier", string(r.tier))
	r.tellRefused()
	r.meta("digest", r.Digest)
	if r.Copies {
		r.meta("copies", "hook")
	}
	r.meta("spool", r.session.spool)
	r.out.Append(host())
	r.out.Append(clockRow())
	_ = r.out.Flush() // counted by the writer
}

// tellRefused says why the tier is not a higher one, if anything was refused.
func (r *recording) tellRefused() {
	if text := tellRefusals(r.tier, r.refused); text != "" {
		r.meta("tier_refused", text)
	}
}

func (r *recording) writeEnd(how Ending) {
	r.meta("exit_code", strconv.Itoa(how.Code()))
	r.costs.ended(how)
	r.meta("target_cpu_ns", strconv.FormatInt(max(how.cpuNS-int64(r.costs.helper), 0), 10))
	if r.left > 0 {
		r.meta("left_running", strconv.Itoa(r.left))
	}
	r.out.Append(clockRow())
	r.out.Append(r.costs.row(r.loop.Wakes))
}

// keeper writes what is due by the clock: rows that have waited, clock rows, our
// own cost.
func (r *recording) keeper() func(now time.Time) (next time.Time) {
	clocked, flushed, costed := time.Now(), time.Now(), time.Time{}
	return func(now time.Time) (next time.Time) {
		if now.Sub(clocked) >= clockEvery {
			r.out.Append(clockRow())
			clocked = now
		}
		if now.Sub(costed) >= costEvery {
			r.out.Append(r.costs.row(r.loop.Wakes))
			costed = now
		}
		if now.Sub(flushed) >= flushEvery {
			_ = r.out.Flush() // what it cannot write it keeps, or counts
			flushed = now
		}
		r.out.Tick()
		if r.out.Waiting() {
			return flushed.Add(flushEvery)
		}
		return clocked.Add(clockEvery)
	}
}

func host() traces.Host {
	h := traces.Host{Head: now(), Arch: runtime.GOARCH, CPUs: int32(runtime.NumCPU()), PageSize: int64(os.Getpagesize()),
		Accelerators: accelerators()}
	h.Hostname, _ = os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	h.BootID = strings.TrimSpace(string(boot))
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) == nil {
		h.MemTotal = int64(i.Totalram) * int64(i.Unit)
	}
	return h
}

// accelerators is which kinds of devices there are that compute beside the
// processors, by the files through which programs reach them; none: there are none.
func accelerators() string {
	var found []string
	for _, d := range []struct{ pattern, name string }{
		{"/dev/nvidia[0-9]*", "nvidia"}, {"/dev/dxg", "nvidia"}, {"/dev/nvhost-*", "nvidia"}, {"/dev/kfd", "kfd"}, {"/dev/accel*", "accel"},
		{"/dev/dri/renderD*", "render"}, {"/dev/davinci[0-9]*", "davinci"}, {"/dev/neuron[0-9]*", "neuron"}, {"/dev/vfio/[0-9]*", "vfio"},
	} {
		if files, _ := filepath.Glob(d.pattern); len(files) > 0 && !slices.Contains(found, d.name) {
			found = append(found, d.name)
		}
	}
	if len(found) == 0 {
		return "none"
	}
	return strings.Join(found, ",")
}

// clockRow reads the other clocks between two readings of the monotonic one,
// and keeps the closest of 20.
func clockRow() traces.Clock {
	var c traces.Clock
	for i := range 20 {
		before := probe.Now()
		realNS, bootNS := probe.RealNow(), probe.BootNow()
		after := probe.Now()
		if half := (after - before + 1) / 2; i == 0 || half < c.UncertaintyNS {
			c = traces.Clock{Head: traces.Head{TsNS: before + half}, RealNS: realNS, BootNS: bootNS, UncertaintyNS: half}
		}
	}
	return c
}
