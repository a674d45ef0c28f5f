package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/dptrace/dptrace/traces"
)

func TestMain(m *testing.M) {
	testscript.Main(interruptible{m}, map[string]func(){
		"dptrace": main,
		"rows":    printRows,
		"slowly":  writeSlowly,
	})
}

// interruptible runs tests whose programs see Ctrl-C also where it is ignored, as
// in a shell's background.
type interruptible struct{ *testing.M }

func (m interruptible) Run() int {
	if signal.Ignored(os.Interrupt) {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	}
	return m.M.Run()
}

// The stories in testdata/script need a Python, not torch. $PYTHON is an
// interpreter itself and not a wrapper script of a version manager.
func TestScripts(t *testing.T) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skipf("no python3 can be run: %v", err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PYTHON", strings.TrimSpace(string(out)))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits,
		},
		Condition: func(cond string) (bool, error) {
			if cond == "mounts" { // as root, or where users may make namespaces
				return exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt").Run() == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
	})
}

// exits CODE COMMAND... runs a command and wants this exit code; SIGNAL:N that this signal ends it.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND [ARGUMENT...]")
	}
	code := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			ts.Fatalf("exits: %v", err)
		}
		code = strconv.Itoa(e.ExitCode())
		if status := e.Sys().(syscall.WaitStatus); status.Signaled() {
			code = fmt.Sprintf("SIGNAL:%d", status.Signal())
		}
	}
	if want := args[0]; want != code {
		ts.Fatalf("exit code %s, want %s", code, want)
	}
}

// printRows is `rows TRACE TABLE`: each row as a line of JSON.
func printRows() {
	run, err := traces.Open(os.Args[1])
	if err == nil {
		err = run.Each(os.Args[2:], func(b traces.Batch) error {
			rows := reflect.ValueOf(b.Rows)
			for i := range rows.Len() {
				text, err := json.Marshal(rows.Index(i).Interface())
				if err != nil {
					return err
				}
				fmt.Println(string(text))
			}
			return nil
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "rows:", err)
		os.Exit(1)
	}
	for _, p := range run.Problems {
		fmt.Fprintln(os.Stderr, "rows:", p)
	}
}
