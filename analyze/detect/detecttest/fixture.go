package detecttest

import (
	"testing"

	"github.com/dptrace/dptrace/traces"
)

// OpenFixture opens a recorded trace of testdata.
func OpenFixture(t testing.TB, file string) *traces.Run {
	t.Helper()
	run, err := traces.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return run
}
