package recorder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestRestored(t *testing.T) {
	before := []string{"HOME=/home/tess", "USER=tess", "PATH=/venv/bin:/bin", "VIRTUAL_ENV=/venv", "LANG=C", "EMPTY=",
		"SUDO_EDITOR=vi", "F=a=b\nc"}
	identity := map[string]string{"HOME": "/db/tess", "USER": "tess", "LOGNAME": "tess", "SHELL": "/bin/zsh"}
	for name, tc := range map[string]struct {
		now, before []string
		assigned    map[string]string
		want        []string
	}{
		"as sudo leaves it": {
			now: []string{"HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash", "MAIL=/var/mail/root",
				"PATH=/usr/bin", "LANG=C", "SUDO_UID=7", "SUDO_COMMAND=x", "SUDO_EDITOR=ed"},
			before: before,
			want: []string{"HOME=/home/tess", "USER=tess", "LOGNAME=tess", "SHELL=/bin/zsh", "PATH=/venv/bin:/bin", "LANG=C", "VIRTUAL_ENV=/venv",
				"EMPTY=", "SUDO_EDITOR=vi", "F=a=b\nc"},
		},
		"set on its command line": {
			now:      []string{"HOME=/elsewhere", "PATH=/usr/bin", "VIRTUAL_ENV=/other", "A=1"},
			before:   before,
			assigned: map[string]string{"HOME": "/elsewhere", "VIRTUAL_ENV": "/other", "A": "1", "PATH": "/other"}, // sudo did not take this PATH
			want: []string{"HOME=/elsewhere", "PATH=/venv/bin:/bin", "VIRTUAL_ENV=/other", "A=1", "USER=tess", "LANG=C", "EMPTY=",
				"SUDO_EDITOR=vi", "F=a=b\nc", "LOGNAME=tess", "SHELL=/bin/zsh"},
		},
		"kept by it": {
			now:    []string{"LANG=de", "USER=root"},
			before: []string{"LANG=C", "USER=tess"},
			want:   []string{"LANG=de", "USER=tess", "HOME=/db/tess", "LOGNAME=tess", "SHELL=/bin/zsh"},
		},
		"from before is not known": {
			now:  []string{"HOME=/root", "USER=root", "MAIL=/var/mail/root", "PATH=/usr/bin", "LANG=C", "SUDO_USER=tess"},
			want: []string{"HOME=/db/tess", "USER=tess", "PATH=/usr/bin", "LANG=C", "LOGNAME=tess", "SHELL=/bin/zsh"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, restored(tc.now, tc.before, tc.assigned, identity)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAssigned(t *testing.T) {
	own := []string{"/usr/local/bin/dptrace", "record", "--", "env", "HOME=/x", "python"}
	for line, want := range map[string]string{
		"sudo dptrace record -- env HOME=/x python":                      "",
		"sudo A=1 dptrace record -- env HOME=/x python":                  "A=1",
		"sudo -E -u root A=1 B=a=b dptrace record -- env HOME=/x python": "A=1 B=a=b",
		"sudo env A=1 dptrace record -- env HOME=/x python":              "A=1",
		"sudo --preserve-env=A dptrace record -- env HOME=/x python":     "",
		"sudo nice dptrace-alias A=1 more":                               "A=1", // not our command line: a script's
		"":                                                               "",
	} {
		var got []string
		for name, value := range assigned(strings.Fields(line), own) {
			got = append(got, name+"="+value)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

// standIn is a program named sudo that does to its command what sudo does to
// the environment and the process tree.
func standIn(args []string) {
	env := []string{"HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash", "MAIL=/var/mail/root", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		"SUDO_UID=54321", "SUDO_GID=54322", "SUDO_USER=tess", "SUDO_COMMAND=x", "TMPDIR=" + os.Getenv("TMPDIR")}
	for len(args) > 0 && strings.Contains(args[0], "=") {
		env, args = append(env, args[0]), args[1:]
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = env, os.Stdin, os.Stdout, os.Stderr
	var status *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &status) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// needsThreads skips where Go cannot change the user of all threads.
func needsThreads(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it becomes another user")
	}
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_GETPID, 0, 0, 0); errno == syscall.ENOTSUP {
		t.Skip("built with cgo; `make test` builds without")
	}
}

// A run under a stand-in, whose user has no account here.
func TestSudoStandIn(t *testing.T) {
	needsThreads(t)
	self := program(t)
	sudo := filepath.Join(filepath.Dir(self), "sudo")
	if err := os.Link(self, sudo); err != nil {
		t.Fatal(err)
	}
	const uid, gid = 54321, 54322
	dir := openFolder(t, uid)
	trace := filepath.Join(dir, "t.dptrace")
	cmd := exec.Command(sudo, "A=1", "VIRTUAL_ENV=/other", self, "record", trace, TierAuto, self, showRole)
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir, "HOME=/home/tess", "PATH=/opt/mine:/bin", "VIRTUAL_ENV=/venv", "LD_LIBRARY_PATH=/lib/mine"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkTarget(t, string(out), []string{
		"Uid: 54321 54321 54321 54321", "Gid: 54322 54322 54322 54322", "Groups:",
		"env HOME=/home/tess", "env USER=tess", "env LOGNAME=tess", "env PATH=/opt/mine:/bin", "env VIRTUAL_ENV=/other", "env A=1",
		"env LD_LIBRARY_PATH=/lib/mine",
	}, "env SUDO_", "env MAIL=", "env SHELL=")
	checkOwner(t, dir, uid, gid)

	// Not a run under sudo: root's shell, started by sudo, runs it.
	shell := exec.Command(sudo, "/bin/sh", "-c", `"$@"; exit $?`, "sh", self, "record",
		filepath.Join(dir, "root.dptrace"), TierHook, self, showRole)
	shell.Dir, shell.Env = dir, []string{"TMPDIR=" + dir}
	if out, err := shell.CombinedOutput(); err != nil || !strings.Contains(string(out), "Uid: 0 0 0 0\n") ||
		!strings.Contains(string(out), "env SUDO_UID=54321\n") {
		t.Errorf("in root's shell: %v\n%s", err, out)
	}

	// A folder that the user cannot write to.
	root := openFolder(t, 0)
	cmd = exec.Command(sudo, self, "record", filepath.Join(root, "t.dptrace"), TierAuto, "touch", filepath.Join(dir, "ran"))
	cmd.Dir, cmd.Env = root, []string{"TMPDIR=" + dir}
	const denied = "permission denied (the recording is tess's, who called sudo: name a folder of theirs with -o)"
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), denied) {
		t.Errorf("into root's folder: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("the command ran although nothing could be recorded")
	}

	// A program that the user may not execute.
	if err := os.Chmod(self, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(sudo, self, "record", filepath.Join(dir, "never.dptrace"), TierAuto, "true")
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "tess, who called sudo, may not execute "+self) {
		t.Errorf("a program of root alone: %v\n%s", err, out)
	}
}

func checkTarget(t *testing.T, out string, wants []string, nots ...string) {
	t.Helper()
	all, err := permitted()
	if err != nil {
		t.Fatal(err)
	}
	kept := fmt.Sprintf("%016x", all&(1<<unix.CAP_BPF|1<<unix.CAP_PERFMON|1<<unix.CAP_SYS_RESOURCE))
	wants = append(wants, "recorder Uid: 54321 54321 54321 54321", "recorder CapPrm: "+kept, "recorder CapEff: "+kept,
		"recorder CapInh: 0000000000000000", "recorder CapAmb: 0000000000000000")
	for _, none := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		wants = append(wants, none+": 0000000000000000")
	}
	lines := strings.Split(out, "\n")
	for _, want := range wants {
		if !slices.Contains(lines, want) {
			t.Errorf("the target has no %q", want)
		}
	}
	for _, not := range nots {
		if i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, not) }); i >= 0 {
			t.Errorf("the target has %q", lines[i])
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// checkOwner checks whose everything in a folder is.
func checkOwner(t *testing.T, dir string, uid, gid uint32) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		if st := info.Sys().(*syscall.Stat_t); st.Uid != uid || st.Gid != gid {
			t.Errorf("%s belongs to %d:%d", path, st.Uid, st.Gid)
		}
		return nil
	})
	if err != nil || files < 5 {
		t.Errorf("%d files, %v", files, err)
	}
}

const (
	sudoersRole = "sudoers" // sudoers FOLDER PROGRAM...: see TestSudo
	tess        = 54321
)

// asTess makes a user who may call sudo, in a mount namespace of its own: the
// machine stays as it is. Then it executes a program as this user.
func asTess(etc string, argv []string) error {
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, name := range []string{"passwd", "group", "shadow", "sudoers"} {
		if err := unix.Mount(filepath.Join(etc, name), "/etc/"+name, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("/etc/%s: %w", name, err)
		}
	}
	if err := unix.Mount("none", "/run", "tmpfs", 0, ""); err != nil { // where sudo remembers
		return err
	}
	// Of this thread alone: it is the one that calls exec.
	calls := [][4]uintptr{{unix.SYS_SETGROUPS, 0, 0}, {unix.SYS_SETRESGID, tess, tess, tess}, {unix.SYS_SETRESUID, tess, tess, tess}}
	for _, call := range calls {
		if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

// The real sudo, with a caller that waits for it and with one that became it.
func TestSudo(t *testing.T) {
	needsThreads(t)
	sudo := needsSudo(t)
	self := program(t)
	etc := etcWithTess(t)
	for name, tc := range map[string]struct {
		command []string
		groups  string
	}{
		"its caller waits":   {[]string{"/bin/sh", "-c", `"$@"; exit $?`, "sh", sudo}, "Groups:"},
		"its caller is gone": {[]string{sudo}, "Groups: 54321 54323 54324"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := openFolder(t, tess)
			trace := filepath.Join(dir, "t.dptrace")
			argv := append([]string{sudoersRole, etc}, tc.command...)
			argv = append(argv, "A=1", "TMPDIR="+dir, self, "record", trace, TierAuto, self, showRole)
			cmd := exec.Command(self, argv...)
			cmd.Dir = dir
			cmd.Env = []string{"HOME=" + dir, "USER=tess", "LOGNAME=tess", "SHELL=/bin/sh", "PATH=/opt/mine:/usr/bin:/bin",
				"VIRTUAL_ENV=/venv", "PYTHONPATH=/mine", "CUDA_VISIBLE_DEVICES=1"}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			checkTarget(t, string(out), []string{
				"Uid: 54321 54321 54321 54321", "Gid: 54321 54321 54321 54321", tc.groups,
				"env HOME=" + dir, "env USER=tess", "env LOGNAME=tess", "env SHELL=/bin/sh", "env PATH=/opt/mine:/usr/bin:/bin",
				"env VIRTUAL_ENV=/venv", "env CUDA_VISIBLE_DEVICES=1", "env A=1",
			}, "env SUDO_", "env MAIL=")
			checkOwner(t, dir, tess, tess)
			wantTier := TierKernel
			if need, _ := unmet(); need != "" {
				wantTier = TierHook
			}
			if meta := metaOf(t, trace); meta["tier"] != wantTier {
				t.Errorf("tier %s (%s), want %s", meta["tier"], meta["tier_refused"], wantTier)
			}
		})
	}
}

// sudo may make a terminal for its command, which is root's: it becomes the
// user's, so that programs can open /dev/stdout. The one behind it stays.
func TestSudoTerminal(t *testing.T) {
	needsThreads(t)
	sudo := needsSudo(t)
	self := program(t)
	etc := etcWithTess(t)
	rules, err := os.ReadFile(filepath.Join(etc, "sudoers"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(etc, "sudoers"), append([]byte("Defaults use_pty\n"), rules...), 0o440); err != nil {
		t.Fatal(err)
	}
	dir := openFolder(t, tess)
	master, slave := terminalPair(t)
	script := `"$@"; exit $?`
	target := `stat -L -c "inner %u" /dev/stdout; echo opened > /dev/stdout`
	cmd := exec.Command(self, sudoersRole, etc, "/bin/sh", "-c", script, "sh", sudo, "TMPDIR="+dir,
		self, "record", filepath.Join(dir, "t.dptrace"), TierAuto, "/bin/sh", "-c", target)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "USER=tess", "PATH=/usr/bin:/bin"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var before, after unix.Stat_t
	if err := unix.Fstat(int(slave.Fd()), &before); err != nil {
		t.Fatal(err)
	}
	output := make(chan string)
	go func() {
		b, _ := io.ReadAll(master) // EIO when nobody has the other end any more
		output <- string(b)
	}()
	err = cmd.Wait()
	if err := unix.Fstat(int(slave.Fd()), &after); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	out := <-output
	if err != nil || !strings.Contains(out, fmt.Sprintf("inner %d\r\n", tess)) || !strings.Contains(out, "opened\r\n") {
		t.Errorf("%v: %q", err, out)
	}
	if before.Uid != 0 || after.Uid != before.Uid {
		t.Errorf("the terminal that sudo was called from was %d's and is %d's", before.Uid, after.Uid)
	}
}

// terminalPair makes a terminal.
func terminalPair(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminal can be made here: ", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skip("no terminal can be made here: ", err)
	}
	return master, slave
}

// needsSudo finds sudo, and skips where it cannot work.
func needsSudo(t *testing.T) string {
	t.Helper()
	sudo, err := exec.LookPath("sudo")
	if err != nil {
		t.Skip("sudo is not installed: ", err)
	}
	if n, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || n == 1 {
		t.Skip("new privileges are not possible here: sudo cannot work")
	}
	if err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", "/run").Run(); err != nil {
		t.Skip("this user may not mount: ", err)
	}
	return sudo
}

// etcWithTess makes the four files in which sudo looks for users.
func etcWithTess(t *testing.T) string {
	t.Helper()
	dir := openFolder(t, 0)
	for name, more := range map[string]string{
		"passwd": "tess:x:54321:54321::/home/tess:/bin/zsh\n",
		"group":  "tess:x:54321:\nlab:x:54323:tess\ngpu:x:54324:root,tess\nothers:x:54325:root\n",
		"shadow": "tess:!:19000::::::\n",
	} {
		old, err := os.ReadFile("/etc/" + name)
		if err != nil {
			t.Fatal(err)
		}
		mode := map[bool]fs.FileMode{true: 0o600, false: 0o644}[name == "shadow"]
		if err := os.WriteFile(filepath.Join(dir, name), append(old, more...), mode); err != nil {
			t.Fatal(err)
		}
	}
	rules := "Defaults env_reset\nDefaults secure_path=\"/usr/sbin:/usr/bin:/sbin:/bin\"\ntess ALL=(ALL:ALL) NOPASSWD: SETENV: ALL\n"
	if err := os.WriteFile(filepath.Join(dir, "sudoers"), []byte(rules), 0o440); err != nil {
		t.Fatal(err)
	}
	return dir
}
