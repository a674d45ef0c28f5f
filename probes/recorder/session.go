package recorder

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/hook"
	"github.com/dptrace/dptrace/probes/probe"
	"github.com/dptrace/dptrace/probes/procfs"
	"github.com/dptrace/dptrace/shim"
)

const (
	sessionPrefix = "dptrace-session-"
	newPrefix     = "dptrace-new-" // until it is locked: others remove sessions that nobody has locked
	lockName      = "lock"
	traceName     = "trace" // a file with the path of our part of the trace, for those who find the session without us
)

// session is the temporary folder of one recording: hook/, spool/ and a lock
// that is held while the recorder lives.
type session struct {
	dir, hook, spool string
	lock             int
}

// newSession makes the folder on a local file system, where nobody else can put
// another one in its place: from there on paths are sure.
func newSession(trace, part string, o *Options) (*session, error) {
	base, err := hook.SpoolBase(trace)
	if err != nil {
		return nil, err
	}
	removeStale(base)
	in, err := os.OpenRoot(base)
	if err != nil {
		return nil, fmt.Errorf("make the session folder: %w", err)
	}
	defer func() { _ = in.Close() }()
	name := rand.Text()
	if err := makeOwn(in, newPrefix+name); err != nil {
		return nil, fmt.Errorf("make the session folder: %w", err)
	}
	fresh, dir := filepath.Join(base, newPrefix+name), filepath.Join(base, sessionPrefix+name)
	s := &session{dir: fresh, hook: filepath.Join(dir, "hook"), spool: filepath.Join(dir, "spool"), lock: -1}
	lock := filepath.Join(dir, lockName)
	if s.lock, err = takeLock(filepath.Join(fresh, lockName), unix.O_CREAT); err == nil {
		err = in.Rename(newPrefix+name, sessionPrefix+name)
	}
	if err == nil {
		s.dir = dir
		err = os.Mkdir(s.spool, 0o700)
	}
	if err == nil {
		err = writeTrace(s.dir, part)
	}
	if err == nil {
		err = shim.Unpack(s.hook, shim.Session{Spool: s.spool, Ring: hook.RingBytes, Rings: hook.Rings, Lock: lock, Digest: o.Digest,
			Copies: o.Copies}, sharedHook())
	}
	if err != nil {
		s.remove()
		return nil, fmt.Errorf("make the session folder: %w", err)
	}
	return s, nil
}

// sharedHook is the folder of the hook that the user's recordings share; "" where
// there can be none: then each writes its own.
func sharedHook() string {
	base, err := hook.CacheBase()
	if err != nil {
		return ""
	}
	dir, err := shim.Shared(base)
	if err != nil {
		return ""
	}
	return dir
}

// makeOwn makes a folder, and makes sure that it is the one that is found by its name.
func makeOwn(in *os.Root, name string) error {
	if err := in.Mkdir(name, 0o700); err != nil {
		return err
	}
	info, err := in.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() || owner(info) != os.Geteuid() {
		return fmt.Errorf("%s was replaced as it was made", filepath.Join(in.Name(), name))
	}
	return nil
}

// takeLock locks a file. The lock goes with the process, however it ends.
func takeLock(path string, flags int) (fd int, err error) {
	fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|flags, 0o600)
	if err != nil {
		return -1, err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		shut(fd)
		return -1, err
	}
	return fd, nil
}

func (s *session) unlock() {
	if s.lock >= 0 {
		shut(s.lock)
	}
}

func (s *session) remove() {
	_ = os.RemoveAll(s.dir) // what stays is removed by a later recording
	s.unlock()
}

// sessionAlive reports whether the recorder of a session is still there.
func sessionAlive(lock string) bool {
	fd, err := takeLock(lock, 0)
	if err == nil {
		shut(fd)
	}
	return errors.Is(err, unix.EWOULDBLOCK)
}

// removeStale removes the sessions in base of recorders that died, once no
// process has their hook in its environment any more.
func removeStale(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, sessionPrefix+"*")) // the pattern is right
	for _, dir := range dirs {
		var st unix.Stat_t
		if unix.Lstat(dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() {
			continue
		}
		fd, err := takeLock(filepath.Join(dir, lockName), 0)
		if err != nil { // alive, or being made right now
			continue
		}
		if !inUse(dir) && (salvageStale(dir) || old(dir)) {
			_ = os.RemoveAll(dir)
		}
		shut(fd)
	}
}

func inUse(dir string) bool {
	for _, pid := range procfs.Pids() {
		if pid == int32(os.Getpid()) {
			continue
		}
		if env, err := procfs.Environ(pid); err == nil && probe.Carries(env, dir) {
			return true
		}
	}
	return false
}

// written reports whether a process has written to a spool: one has imported torch.
func written(spool string) bool {
	rings, _ := filepath.Glob(filepath.Join(spool, "*.ring")) // the pattern is right
	return len(rings) > 0
}
