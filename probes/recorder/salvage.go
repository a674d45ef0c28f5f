package recorder

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/hook"
	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/redact"
	"github.com/dptrace/dptrace/traces"
)

// keepStale is how long the rings of a dead recorder wait for somebody who can
// write them to their trace.
const keepStale = 7 * 24 * time.Hour

// Salvaged is what a part of a trace has got from the rings of its recorder, which
// has died.
type Salvaged struct {
	Part string
	hook.Salvaged
}

// Salvage adds to a trace what is left in the rings of recorders that died while they
// wrote it. Of a recording that is still being made, or of another user, nothing is
// touched.
func Salvage(trace string) (all []Salvaged, err error) {
	run, err := traces.Open(trace)
	if err != nil {
		return nil, nil // who reads it says so
	}
	for _, p := range run.Parts {
		spool := metaRows(run, p)["spool"]
		session := filepath.Dir(spool)
		if p.Sealed || spool == "" || !strings.HasPrefix(filepath.Base(session), sessionPrefix) {
			continue
		}
		if !own(session) || !own(filepath.Join(trace, p.Name)) {
			continue
		}
		lock, err := takeLock(filepath.Join(session, lockName), 0)
		if err != nil { // it lives
			continue
		}
		s, err := salvagePart(run, p, spool)
		if err == nil && s.Left == 0 && !inUse(session) {
			_ = os.RemoveAll(session)
		}
		shut(lock)
		if err != nil {
			return all, fmt.Errorf("salvage %s: %w", spool, err)
		}
		if s.Records > 0 {
			all = append(all, s)
		}
	}
	return all, nil
}

// own reports whether a folder is ours, and nobody else's.
func own(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir() && owner(info) == os.Geteuid() && info.Mode().Perm()&0o022 == 0
}

// salvagePart reads the rings of one part, whose session is locked.
func salvagePart(run *traces.Run, p *traces.Part, spool string) (s Salvaged, err error) {
	s.Part = p.Name
	known, told := knownOf(run, p)
	in, err := os.OpenRoot(p.Trace)
	if err != nil {
		return s, err
	}
	defer func() { _ = in.Close() }()
	w, err := traces.Continue(in, p, traces.Options{})
	if err != nil {
		return s, err
	}
	secrets := secretsOf(metaRows(run, p))
	r := &probe.Recording{Rows: &output{Writer: w, secrets: secrets}, Procs: probe.NewProcs(), Spool: spool,
		RingBytes: hook.RingBytes, Secrets: secrets}
	if len(known.Processes) > 0 {
		r.Target = known.Processes[0].Pid // number 1
	}
	s.Salvaged, err = hook.Salvage(r, known)
	if err == nil && !told {
		w.Append(traces.Lost{Head: now(), Source: lostByRecorder,
			Reason: "the recorder died; what it had taken and not yet written, of a second at most, is missing"})
	}
	return s, errors.Join(err, w.Close())
}

const lostByRecorder = "recorder"

// knownOf is what a part says of its processes; told: it was salvaged before.
func knownOf(run *traces.Run, p *traces.Part) (known hook.Known, told bool) {
	known.Lost = map[uint32]uint64{}
	for part, row := range traces.Rows[traces.Process](run) {
		if part == p {
			known.Processes = append(known.Processes, row)
		}
	}
	for part, row := range traces.Rows[traces.Lost](run) {
		switch {
		case part != p:
		case row.Source == lostByRecorder:
			told = true
		case strings.HasPrefix(row.Reason, hook.RingFull):
			known.Lost[row.Proc] += row.Count
		}
	}
	return known, told
}

func metaRows(run *traces.Run, p *traces.Part) map[string]string {
	meta := map[string]string{}
	for part, row := range traces.Rows[traces.Meta](run) {
		if part == p {
			meta[row.Key] = row.Value
		}
	}
	return meta
}

// secretsOf is what the dead recorder was told to take out.
func secretsOf(meta map[string]string) *redact.Rules {
	var values []string
	if json.Unmarshal([]byte(meta["redact"]), &values) != nil {
		return nil // what looks like a secret
	}
	r, err := redact.Parse(values)
	if err != nil {
		return nil
	}
	return r
}

// writeTrace says in a session whose part of a trace its rings belong to.
func writeTrace(session, part string) error {
	abs, err := filepath.Abs(part)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(session, traceName), []byte(abs), 0o600)
}

// salvageStale does the same for a session that is locked and found without its
// trace. false: its rings hold something that could not be written.
func salvageStale(session string) bool {
	spool := filepath.Join(session, "spool")
	path, err := os.ReadFile(filepath.Join(session, traceName))
	if !written(spool) || err != nil {
		return true
	}
	trace, name := filepath.Split(string(path))
	run, err := traces.Open(filepath.Clean(trace))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return true // its trace was removed
	}
	if err != nil || !own(string(path)) {
		return false
	}
	for _, p := range run.Parts {
		if p.Name == name && !p.Sealed {
			_, err := salvagePart(run, p, spool)
			return err == nil
		}
	}
	return true
}

func old(session string) bool {
	info, err := os.Stat(session)
	return err == nil && time.Since(info.ModTime()) > keepStale
}
