package poll

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dptrace/dptrace/traces"
)

// This process opens files; how many it has is counted, and what the newest are.
func TestDescriptors(t *testing.T) {
	here := int32(os.Getpid())
	before, ok := openCount(here)
	if !ok || before <= 0 {
		t.Fatalf("%d descriptors, %v", before, ok)
	}
	path := filepath.Join(t.TempDir(), "7.jpg")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const files = 100
	for range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	after, _ := openCount(here)
	if after-before < files-5 || after-before > files+5 { // others of this process come and go
		t.Errorf("%d descriptors, then %d: %d were opened", before, after, files)
	}
	row := traces.Descriptor{Open: after}
	if ask(here, &row); row.Looked != mostAsked || row.File < mostAsked-5 || row.Sample != path {
		t.Errorf("asked what they are: %+v", row)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if soft, hard := limitsOf(here); soft != int64(limit.Cur) || hard != int64(limit.Max) {
		t.Errorf("limits %d and %d, want %d and %d", soft, hard, limit.Cur, limit.Max)
	}
	if _, ok := openCount(1 << 30); ok {
		t.Error("a process that is not there has descriptors")
	}
}
