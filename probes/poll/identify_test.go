package poll

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/traces"
)

// A process that was in the middle of exec has its command line a moment later.
func TestCommandLineLater(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	var rows collected
	w := newWatcher(&probe.Recording{Rows: &rows, Procs: probe.NewProcs()})
	p := w.adopt(int32(child.Process.Pid))
	if p == nil {
		t.Fatal("the child is not there")
	}
	p.exe, p.judged, p.nameless = procfs.Link(p.pid, "exe"), true, true
	for range 2 { // one row, however often it is looked at
		for deadline := time.Now().Add(10 * time.Second); p.nameless && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			w.identify(p, procfs.Stat{}, time.Now())
		}
		w.identify(p, procfs.Stat{}, time.Now())
	}
	if len(rows) != 1 || rows[0].(traces.Process).Cmdline != "sleep 60" || rows[0].(traces.Process).Hook != "" {
		t.Errorf("rows %+v", rows)
	}
}

// torchProcess is a Python that has mapped a file with torch's name.
func torchProcess(t *testing.T) *exec.Cmd {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("SKIPPED %s: no python3", t.Name())
	}
	library := filepath.Join(t.TempDir(), "libtorch_fake.so")
	if err := os.WriteFile(library, make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	const program = "import mmap, sys, time; f = open(sys.argv[1], 'rb'); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); " +
		"print(1, flush=True); time.sleep(60)"
	child := exec.Command(python, "-c", program, library)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return child
}

// A Python that had torch and no hook is told, also if it ended before that was
// beyond doubt, and the likely cause with it.
func TestUnhooked(t *testing.T) {
	for name, tc := range map[string]struct {
		looks  int // a second apart
		ends   bool
		hooked bool
		child  bool // of a Python that has the hook
		full   bool // the spool, at its start
		starve int  // looks until which it gets a processor for a tenth of the time only
		want   string
	}{
		"it may still load":        {looks: 4},
		"long enough":              {looks: 5, want: "another sitecustomize.py"},
		"hooked":                   {looks: 5, hooked: true},
		"child, not looked at yet": {looks: 3, ends: true, child: true},
		"child, long enough":       {looks: 6, child: true, want: "another sitecustomize.py"},
		"ended early":              {looks: 3, ends: true, want: "torch was still being imported, or another sitecustomize.py"},
		"ended while importing":    {looks: 2, ends: true},
		"ended early, hooked":      {looks: 3, ends: true, hooked: true},
		"no room":                  {looks: 5, full: true, want: "there was no room for the hook's records in /spools (TMPDIR"},
		"no room, and ended soon":  {looks: 1, ends: true, full: true, want: "there was no room"},
		"told once":                {looks: 9, ends: true, want: "another sitecustomize.py"},
		"had room, although ended": {looks: 1, ends: true},
		"waits for a processor":    {looks: 30, starve: 30, ends: true},
		"waited for one, long ago": {looks: 40, starve: 30, want: "another sitecustomize.py"},
	} {
		t.Run(name, func(t *testing.T) {
			child := torchProcess(t)
			var rows collected
			w := newWatcher(&probe.Recording{Rows: &rows, Procs: probe.NewProcs(), Spool: "/spools/dptrace-session-1/spool"})
			now := time.Now()
			p := w.adopt(int32(child.Process.Pid))
			if p == nil {
				t.Fatal("the child is not there")
			}
			if tc.full {
				w.spool.full = now
			}
			if tc.hooked {
				w.Procs.MarkHooked(p.pid, p.start, true)
			}
			if tc.child {
				parent := w.adopt(int32(os.Getpid()))
				parent.exe = procfs.Link(p.pid, "exe")
				w.Procs.MarkHooked(parent.pid, parent.start, true)
			}
			var waited time.Duration
			w.schedstat = func(int32) (ran, wait int64, err error) { return 0, int64(waited), nil }
			for look := range tc.looks {
				if look < tc.starve {
					waited += 900 * time.Millisecond
				}
				w.tend(p, now)
				now = now.Add(time.Second)
			}
			if tc.ends {
				_ = child.Process.Kill()
				_ = child.Wait()
				w.tend(p, now)
			}
			var notes []string
			for _, r := range rows {
				if r, ok := r.(traces.Process); ok && r.Hook == "off" {
					notes = append(notes, r.Note)
				}
			}
			if tc.want == "" && len(notes) > 0 || tc.want != "" && (len(notes) != 1 || !strings.Contains(notes[0], tc.want)) {
				t.Errorf("notes %q, want %q", notes, tc.want)
			}
			for _, n := range notes {
				if !strings.Contains(n, "torch is loaded") {
					t.Errorf("the report does not find torch in %q", n)
				}
			}
		})
	}
}

func TestSpoolFull(t *testing.T) {
	r := &probe.Recording{Spool: t.TempDir(), RingBytes: 1 << 62} // more than any disk has
	var s spool
	now := time.Now()
	s.look(r, now)
	r.RingBytes = 1
	if !s.fullSince(now) || !s.fullSince(now.Add(roomEvery)) || s.fullSince(now.Add(time.Minute)) {
		t.Errorf("full at %v", s.full)
	}
	var roomy, gone spool
	roomy.look(r, now)
	gone.look(&probe.Recording{Spool: "/no/such", RingBytes: 1 << 62}, now)
	if roomy.fullSince(now) || gone.fullSince(now) {
		t.Error("full although it has room, or is not known")
	}
}
