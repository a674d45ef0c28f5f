package recorder

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/probes/procfs"
)

// Invoker is the user who started us with sudo.
type Invoker struct {
	Name     string
	uid, gid int
	groups   []int
	caller   int      // pid of who has called sudo; 0: it has ended
	environ  []string // theirs, without what sudo made of it
	note     string   // what could not be found out about them; "" nothing
}

// kept are the capabilities that stay with the recorder: to load eBPF programs
// and to let these read the kernel, and (before Linux 5.11) to raise the limit
// that their maps count against. The processes of the run belong to the same
// user and have no capabilities, so that no other is needed to read their /proc.
var kept = []uint{unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_SYS_RESOURCE}

// BecomeInvoker makes this process one of the user who has called sudo: every
// file that is made and every process that is started from here on is theirs.
// nil without error: we are not root by sudo, and nothing has changed.
//
// A training that ran as root would leave root's files in the user's folders,
// and would not find what the user has installed.
func BecomeInvoker() (*Invoker, error) {
	u, err := findInvoker()
	if u == nil || err != nil {
		return nil, err
	}
	u.takeTerminals()
	if err := u.become(); err != nil {
		return nil, fmt.Errorf("become %s, who called sudo: %w", u.Name, err)
	}
	if err := unix.Faccessat(unix.AT_FDCWD, "/proc/self/exe", unix.X_OK, unix.AT_EACCESS); err != nil {
		exe, _ := os.Readlink("/proc/self/exe")
		return nil, fmt.Errorf("%s, who called sudo, may not execute %s: %w (chmod 755)", u.Name, exe, err)
	}
	os.Clearenv()
	for _, v := range u.environ {
		if name, value, ok := strings.Cut(v, "="); ok {
			_ = os.Setenv(name, value) // it was in an environment
		}
	}
	return u, nil
}

// findInvoker reads who has called sudo; nil: nobody has.
func findInvoker() (*Invoker, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	uid, err1 := strconv.Atoi(os.Getenv("SUDO_UID"))
	gid, err2 := strconv.Atoi(os.Getenv("SUDO_GID"))
	if err1 != nil || err2 != nil || uid <= 0 || gid < 0 {
		return nil, nil
	}
	// sudo waits for its command, or has become it, and then our parent is the
	// user's. Root's own shell, that sudo has started some time ago, is neither.
	sudo := os.Getppid()
	if real, _, err := credentials(sudo); !isSudo(sudo) && (err != nil || real != uid) {
		return nil, nil
	}
	u := &Invoker{Name: os.Getenv("SUDO_USER"), uid: uid, gid: gid}
	account, err := user.LookupId(strconv.Itoa(uid))
	if err == nil {
		u.Name = account.Username
	} else { // of a directory service that a static program does not ask
		account = &user.User{Uid: strconv.Itoa(uid), Username: u.Name}
	}
	u.caller = caller(sudo, uid)
	u.groups = groupsOf(u.caller, account)
	before, _ := procfs.Environ(int32(sudo)) // an error is no variables
	if len(before) == 0 {
		u.note = "the environment from before sudo cannot be read: variables that sudo removes are missing"
	}
	u.environ = restored(environment(), before, assigned(procfs.Cmdline(int32(sudo)), os.Args), identity(account))
	return u, nil
}

// isSudo reports whether pid runs sudo, or a process of it that watches over the
// terminal of its command.
func isSudo(pid int) bool {
	name := filepath.Base(procfs.Link(int32(pid), "exe"))
	return name == "sudo" || name == "sudo-rs"
}

// caller finds the process that has called sudo; 0: it has ended.
func caller(sudo, uid int) int {
	for pid, depth := sudo, 0; pid > 1 && depth < 8; depth++ {
		if real, _, err := credentials(pid); err == nil && real == uid {
			return pid
		}
		st, err := procfs.ReadStat(int32(pid))
		if err != nil {
			return 0
		}
		pid = int(st.Ppid)
	}
	return 0
}

// groupsOf gives the user's supplementary groups: those of the process that has
// called sudo, which also has those of a directory service; or, if it has
// ended, those of the user database.
func groupsOf(caller int, account *user.User) (groups []int) {
	if _, groups, err := credentials(caller); caller != 0 && err == nil {
		return groups
	}
	ids, err := account.GroupIds()
	if err != nil {
		return nil
	}
	for _, id := range ids {
		if n, err := strconv.Atoi(id); err == nil {
			groups = append(groups, n)
		}
	}
	return groups
}

// credentials are a process's user, -1 if it has several (as sudo itself may,
// whose groups are root's then), and its supplementary groups.
func credentials(pid int) (uid int, groups []int, err error) {
	b, err := procfs.Read(int32(pid), "status")
	if err != nil {
		return 0, nil, err
	}
	uid = -1
	for key, value := range procfs.Fields(b) {
		fields := strings.Fields(value)
		switch {
		case key == "Uid" && len(fields) == 4:
			if slices.Equal(fields[:3], []string{fields[0], fields[0], fields[0]}) {
				uid, err = strconv.Atoi(fields[0])
			}
		case key == "Groups":
			for _, f := range fields {
				n, e := strconv.Atoi(f)
				err = errors.Join(err, e)
				groups = append(groups, n)
			}
		}
	}
	return uid, groups, err
}

// identity are the variables that say who one is, by the user database.
func identity(account *user.User) map[string]string {
	who := map[string]string{}
	for name, value := range map[string]string{
		"USER": account.Username, "LOGNAME": account.Username, "HOME": account.HomeDir, "SHELL": shell(account.Uid),
	} {
		if value != "" {
			who[name] = value
		}
	}
	return who
}

// shell is the last field of the user's line in passwd(5), which os/user leaves
// out.
func shell(uid string) string {
	b, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 7 && f[2] == uid {
			return f[6]
		}
	}
	return ""
}

// assigned are the variables that sudo's own command line sets
// (sudo A=1 dptrace …), and env's (sudo env A=1 dptrace …).
func assigned(sudo, own []string) map[string]string {
	set := map[string]string{}
	before := sudo
	// What follows our own name are the command's arguments.
	if n := len(sudo) - len(own); n >= 0 && len(own) > 1 && slices.Equal(sudo[n+1:], own[1:]) {
		before = sudo[:n]
	}
	for _, a := range before[min(1, len(before)):] {
		if name, value, ok := strings.Cut(a, "="); ok && name != "" && name[0] != '-' {
			set[name] = value
		}
	}
	return set
}

// replaced are the variables that sudo sets to root's values.
var replaced = []string{"HOME", "USER", "LOGNAME", "USERNAME", "SHELL", "MAIL", "PATH"}

// restored is the environment as it would be without sudo: what sudo left or its
// caller has set on its command line; what it removed, from before; and who one
// is, from before or else by the user database.
func restored(now, before []string, assigned, identity map[string]string) []string {
	was := map[string]string{}
	for _, v := range before {
		if name, value, ok := strings.Cut(v, "="); ok {
			was[name] = value
		}
	}
	var out []string
	has := map[string]bool{}
	add := func(name, value string) {
		if !has[name] {
			has[name] = true
			out = append(out, name+"="+value)
		}
	}
	for _, v := range now {
		name, value, ok := strings.Cut(v, "=")
		if !ok {
			continue
		}
		given, explicit := assigned[name]
		switch old, before := was[name]; {
		case explicit && given == value:
			add(name, value)
		case strings.HasPrefix(name, "SUDO_"): // back to what it was, if it was
		case !slices.Contains(replaced, name):
			add(name, value)
		case before:
			add(name, old)
		case identity[name] != "":
			add(name, identity[name])
		case name == "PATH":
			add(name, value)
		}
	}
	for _, v := range before {
		if name, value, ok := strings.Cut(v, "="); ok {
			add(name, value)
		}
	}
	for _, name := range replaced {
		if value := identity[name]; value != "" {
			add(name, value)
		}
	}
	return out
}

// takeTerminals makes the terminal that sudo has made for its command the
// user's: /dev/stdout and the like are opened anew. The one that sudo was called
// from stays as it is.
func (u *Invoker) takeTerminals() {
	caller, err := procfs.ReadStat(int32(u.caller))
	if u.caller == 0 || err != nil {
		return
	}
	for fd := range 3 {
		var st unix.Stat_t
		_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil && unix.Fstat(fd, &st) == nil && st.Uid == 0 && st.Rdev != caller.Terminal {
			_ = unix.Fchown(fd, u.uid, -1) // without it only opening by name fails
		}
	}
}

// because adds to an error of writing to a folder whose folder it had to be.
func (u *Invoker) because(err error) error {
	if u == nil || !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) {
		return err
	}
	return fmt.Errorf("%w (the recording is %s's, who called sudo: name a folder of theirs with -o)", err, u.Name)
}

// become changes the user of all threads, and keeps what it may of the
// capabilities. What is started from here on has none of them.
func (u *Invoker) become() error {
	capabilities, err := permitted()
	if err != nil {
		return err
	}
	if err := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1, 0); err != nil {
		return fmt.Errorf("keep capabilities: %w", err)
	}
	if err := syscall.Setgroups(u.groups); err != nil {
		return fmt.Errorf("set groups: %w", err)
	}
	if err := syscall.Setresgid(u.gid, u.gid, u.gid); err != nil {
		return fmt.Errorf("set group %d: %w", u.gid, err)
	}
	if err := syscall.Setresuid(u.uid, u.uid, u.uid); err != nil {
		return fmt.Errorf("set user %d: %w", u.uid, err)
	}
	var keep uint64
	for _, c := range kept {
		keep |= capabilities & (1 << c)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{
		{Effective: uint32(keep), Permitted: uint32(keep)},
		{Effective: uint32(keep >> 32), Permitted: uint32(keep >> 32)},
	}
	if err := onAllThreads(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data)), 0); err != nil {
		return fmt.Errorf("limit capabilities: %w", err)
	}
	if err := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 0, 0); err != nil {
		return fmt.Errorf("keep capabilities: %w", err)
	}
	return nil
}

// permitted are this process's permitted capabilities, one bit each.
func permitted() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("read capabilities: %w", err)
	}
	return uint64(data[0].Permitted) | uint64(data[1].Permitted)<<32, nil
}

// The arguments may be pointers: they must not move meanwhile.
//
//go:uintptrescapes
func onAllThreads(trap, a1, a2, a3 uintptr) error {
	switch _, _, errno := syscall.AllThreadsSyscall(trap, a1, a2, a3); errno {
	case 0:
		return nil
	case syscall.ENOTSUP: // Go's own answer: it does not know the threads of C
		return errors.New("this dptrace was built with cgo; build it with CGO_ENABLED=0, as `make build` does")
	default:
		return errno
	}
}
