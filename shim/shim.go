// Package shim carries the part of dptrace that runs in the user's Python, and
// gives it to the programs of one recording.
package shim

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
	Copies  bool   `json:"copies"` // whether copies to devices are looked at
}

// Unpack writes the hook and its session to dir, which is made (mode 0700). Of the
// package it makes a link, if shared is a folder that has it; "": a copy.
func Unpack(dir string, s Session, shared string) error {
	if err := unpack(dir, s, shared); err != nil {
		return fmt.Errorf("unpack the hook: %w", err)
	}
	return nil
}

func unpack(dir string, s Session, shared string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case err != nil:
	case shared == "":
		err = copyFiles(dir, packageName)
	default:
		err = os.Symlink(filepath.Join(shared, packageName), filepath.Join(dir, packageName))
	}
	if err == nil {
		err = copyFiles(dir, "sitecustomize.py")
	}
	if err != nil {
		return err
	}
	s.Version = Version
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, sessionFile), text, 0o600)
}
