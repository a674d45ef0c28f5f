package recorder

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The test binary is also the program that record starts itself as, and
// `record` for the tests that kill it.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "sudo" {
		standIn(os.Args[1:])
	}
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case HelperCommand:
			fmt.Fprintln(os.Stderr, Helper(os.Args[2:]))
			os.Exit(ExitNotExecutable)
		case WitnessCommand:
			_ = Witness(os.Args[2:])
			os.Exit(0)
		case "record": // TRACE TIER COMMAND...
			how, err := Run(Options{Output: os.Args[2], Tier: os.Args[3], Command: os.Args[4:],
				Stderr: os.Stderr, Quiet: true, Hand: true})
			code := how.Code()
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				code, _ = AsFailure(err)
			}
			os.Exit(code)
		case "closing": // for ever
			listen().whileClosing()
			time.Sleep(2 * sameEvent)
			fmt.Println("closing")
			time.Sleep(time.Hour)
		default:
			roles(os.Args[1:])
		}
	}
	os.Exit(m.Run())
}
