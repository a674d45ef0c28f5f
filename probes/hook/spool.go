package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Rings of a session: 32 of 1 MiB, then small ones (shim/PROTOCOL.md): 500
// processes at once stay below spoolRoom. A worker writes about 1 KB per batch.
const (
	RingBytes = 1 << 20
	Rings     = 32
	spoolRoom = 64 << 20
)

// remote are file systems where a mapping is not shared with pread at once, or
// where a lost server is a SIGBUS or a hang in the training.
var remote = map[int64]string{
	0x6969:     "nfs",
	0x0BD00BD0: "lustre",
	0x47504653: "gpfs",
	0x65735546: "fuse",
	0xFF534D42: "cifs",
	0xFE534D42: "smb",
	0x517B:     "smb",
	0x01021997: "9p",
	0x00C36400: "ceph",
	0x5346414F: "afs",
	0x6B414653: "afs",
	0x73757245: "coda",
	0x19830326: "beegfs",
	0xAAD7AAEA: "panfs",
	0x20030528: "orangefs",
	0x7461636F: "ocfs2",
	0x01161970: "gfs2",
}

// spoolCandidates are the folders that are tried for the spool, in this order.
func spoolCandidates(trace string) []string {
	var all []string
	if tmp := os.Getenv("TMPDIR"); filepath.IsAbs(tmp) {
		all = append(all, tmp)
	}
	all = append(all, "/tmp", "/var/tmp")
	if abs, err := filepath.Abs(trace); err == nil {
		all = append(all, abs)
	}
	return all
}

// SpoolBase is the folder to make the spool in, for a trace in the folder trace: a
// path without links, all of whose folders are root's or ours.
func SpoolBase(trace string) (string, error) {
	var why []string
	for _, dir := range spoolCandidates(trace) {
		real, err := checkSpool(dir)
		if err == nil {
			return real, nil
		}
		why = append(why, err.Error())
	}
	return "", fmt.Errorf("no folder for the hook's records (set TMPDIR to a folder on a local disk): %s", strings.Join(why, "; "))
}

// CacheBase is the folder of the user's caches, made where it is missing, if what
// lies in it is as safe from others as a spool.
func CacheBase() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "dptrace")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return checkSpool(dir)
}

// checkSpool tells where a folder is, and why it cannot hold the spool, nil if it can.
func checkSpool(dir string) (real string, err error) {
	real, err = filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	if real == "/dev/shm" || strings.HasPrefix(real, "/dev/shm/") {
		return "", fmt.Errorf("%s: its space is the training's", dir)
	}
	if strings.Contains(real, ":") {
		return "", fmt.Errorf("%s: a folder with a colon in its name cannot be on PYTHONPATH", dir)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(real, &st); err != nil {
		return "", fmt.Errorf("%s: %w", dir, err)
	}
	if name, ok := remote[int64(uint32(st.Type))]; ok {
		return "", fmt.Errorf("%s: not local but %s", dir, name)
	}
	if err := unix.Access(real, unix.W_OK|unix.X_OK); err != nil {
		return "", fmt.Errorf("%s: not writable: %w", dir, err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < spoolRoom {
		return "", fmt.Errorf("%s: %d MB free, %d are needed", dir, free>>20, spoolRoom>>20)
	}
	if err := trusted(real); err != nil {
		return "", err
	}
	return real, nil
}
