// Package shim carries the part of dptrace that runs in the user's Python, and
// gives it to the programs of one recording.
package shim

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A pattern that names a folder would leave out __init__.py: those with a
// leading _ are embedded only where a pattern matches the file itself.
//
//go:embed python/sitecustomize.py python/dptrace_hook/*.py python/dptrace_hook/*/*.py python/dptrace_hook/native/*.so
var files embed.FS

// Version of PROTOCOL.md.
const Version = 1

// Which samples the hook takes digests of.
const (
	DigestBudget = "budget" // as many as 1 % of the time allows
	DigestFull   = "full"   // all, of all that they contain
	DigestOff    = "off"
)

const sessionFile = "session.json"

// Session is what the hook is told by the recording it belongs to: session.json
// of PROTOCOL.md.
type Session struct {
	Spool   string `json:"spool"` // folder of the rings
	Ring    int    `json:"ring"`  // bytes per ring
	Rings   int    `json:"rings"` // so many of that size, smaller ones after them
	Version int    `json:"version"`
	Lock    string `json:"lock"`   // file that the recorder holds locked while it lives; for other recorders
	Digest  string `json:"digest"` // which samples: DigestBudget, DigestFull or DigestOff
}

// Unpack writes the hook and its session to dir, which is made (mode 0700).
func Unpack(dir string, s Session) error {
	s.Version = Version
	err := fs.WalkDir(files, "python", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, "python"))
		if d.IsDir() {
			return os.Mkdir(to, 0o700)
		}
		source, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, source, 0o600)
	})
	if err != nil {
		return fmt.Errorf("unpack the hook: %w", err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("unpack the hook: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, sessionFile), text, 0o600); err != nil {
		return fmt.Errorf("unpack the hook: %w", err)
	}
	return nil
}
