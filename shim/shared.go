package shim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sharedPrefix begins the names of the folders that Shared makes.
const sharedPrefix = "dptrace-shared-"

const (
	packageName = "dptrace_hook"
	// A copy that no recording has used for so long goes with the next one that
	// makes its own: programs may outlive their recorder, but hardly that long.
	sharedAge = 7 * 24 * time.Hour
)

// Shared is the folder in base with a copy of the hook that the user's recordings
// share: to write it anew is most of what a recorder does at its start, and what
// Python has compiled of it, 60 ms, stays there too. It is made where it is
// missing or not whole. Nobody else can write to it.
func Shared(base string) (dir string, err error) {
	name, err := sharedName()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(base, name)
	if err = checkShared(dir); err == nil {
		now := time.Now()
		_ = os.Chtimes(dir, now, now) // it is in use
		return dir, nil
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotWhole) {
		return "", err // somebody else's: leave it alone
	}
	removeUnused(base, name)
	fresh, err := os.MkdirTemp(base, sharedPrefix+"new-") // mode 0700
	if err != nil {
		return "", fmt.Errorf("share the hook: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }() // where it did not become dir
	if err := copyFiles(fresh, packageName); err != nil {
		return "", fmt.Errorf("share the hook: %w", err)
	}
	_ = os.RemoveAll(dir) // one that is not whole
	if err := os.Rename(fresh, dir); err != nil {
		if checkShared(dir) == nil { // another recorder was faster
			return dir, nil
		}
		return "", fmt.Errorf("share the hook: %w", err)
	}
	return dir, nil
}

// sharedName is of this user and of this hook.
func sharedName() (string, error) {
	all := sha256.New()
	err := eachFile(packageName, func(name string, text []byte) error {
		_, _ = fmt.Fprintf(all, "%s %d ", name, len(text)) // a hash takes everything
		_, _ = all.Write(text)
		return nil
	})
	return sharedPrefix + strconv.Itoa(os.Geteuid()) + "-" + hex.EncodeToString(all.Sum(nil)[:8]), err
}

var (
	errNotWhole = errors.New("a file of the shared hook is missing or another one")
	errNotOurs  = errors.New("the folder of the shared hook is another user's, or others can write to it")
)

// checkShared reports why a folder is not our hook; fs.ErrNotExist: it is not there.
func checkShared(dir string) error {
	seen, err := os.Lstat(dir) // a link is none of ours
	if err != nil {
		return err
	}
	owner, ok := seen.Sys().(*syscall.Stat_t)
	if !ok || !seen.IsDir() || seen.Mode().Perm()&0o077 != 0 || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s", errNotOurs, dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if opened, err := root.Stat("."); err != nil || !os.SameFile(seen, opened) {
		return fmt.Errorf("%w: %s", errNotOurs, dir)
	}
	return eachFile(packageName, func(name string, text []byte) error {
		if there, err := root.ReadFile(name); err != nil || !bytes.Equal(there, text) {
			return fmt.Errorf("%w: %s", errNotWhole, name)
		}
		return nil
	})
}

// removeUnused removes copies of ours that were not used for long: of other versions, and
// what was left by one that was interrupted.
func removeUnused(base, keep string) {
	all, _ := filepath.Glob(filepath.Join(base, sharedPrefix+"*")) // the pattern is right
	for _, dir := range all {
		st, err := os.Lstat(dir)
		if err != nil || !st.IsDir() || filepath.Base(dir) == keep || time.Since(st.ModTime()) < sharedAge {
			continue
		}
		if owner, ok := st.Sys().(*syscall.Stat_t); ok && int(owner.Uid) == os.Geteuid() {
			_ = os.RemoveAll(dir)
		}
	}
}

// eachFile calls fn with the files below a folder of the hook, by their names in it.
func eachFile(below string, fn func(name string, text []byte) error) error {
	const root = "python"
	return fs.WalkDir(files, filepath.Join(root, below), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		return fn(strings.TrimPrefix(path, root+"/"), text)
	})
}

// copyFiles writes the files below a folder of the hook to dir, which is there.
func copyFiles(dir, below string) error {
	return eachFile(below, func(name string, text []byte) error {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o600)
	})
}
