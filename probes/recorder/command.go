package recorder

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// lookup finds the program as execvp does: names with a slash are paths, the
// others are sought on PATH, where an empty entry is the working directory.
func lookup(name string) (path string, err error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	search, ok := os.LookupEnv("PATH")
	if !ok {
		search = "/usr/local/bin:/usr/bin:/bin"
	}
	var denied error
	for _, dir := range strings.Split(search, ":") {
		if dir == "" {
			dir = "."
		}
		path := dir + "/" + name
		err := executable(path)
		if err == nil {
			return path, nil
		}
		var f *Failure
		if errors.As(err, &f) && f.Code == ExitNotExecutable && denied == nil {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &Failure{ExitNotFound, fmt.Errorf("%s: command not found", name)}
}

func executable(path string) error {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return execFailure(path, err)
	case st.IsDir():
		return &Failure{ExitNotExecutable, fmt.Errorf("%s: is a directory", path)}
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS); err != nil {
		return execFailure(path, err)
	}
	return nil
}

// execFailure gives an error of finding or executing the command the exit code
// that shells give it.
func execFailure(path string, err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return fail(err)
	}
	if errno == syscall.ENOENT || errno == syscall.ENOTDIR {
		return &Failure{ExitNotFound, fmt.Errorf("%s: %w", path, errno)}
	}
	return &Failure{ExitNotExecutable, fmt.Errorf("%s: %w", path, errno)}
}
