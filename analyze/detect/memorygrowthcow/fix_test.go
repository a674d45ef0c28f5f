package memorygrowthcow_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dptrace/dptrace/analyze"
	. "github.com/dptrace/dptrace/analyze/detect/detecttest"
)

// fixes: a container, the code that makes it, and what must hold after the
// printed code has run: before and after "# instead of", with i or key set.
var fixes = []struct {
	held  Held
	makes string // of self, with NumPy as np
	holds string
}{
	{Held{Path: "dataset.paths", Class: "list", Items: 300_000, Sampled: 4100, Blocks: 40}, "self.paths = ['/é/%d.jpg' % n for n in range(50)]; i = 7", "item == '/é/7.jpg' and not hasattr(self, 'paths')"},
	{Held{Path: "dataset.dataset.samples", Class: "tuple", Items: 300_000, Sampled: 12500, Blocks: 40}, "self.samples = tuple(('a%d' % n, n) for n in range(50)); i = 0", "item == ('a0', 0)"},
	{Held{Path: "dataset.table", Class: "collections.OrderedDict", Items: 300_000, Sampled: 9000, Blocks: 40}, "self.table = {'k%d' % n: {'v': n} for n in range(50)}; key = 'k31'", "value == {'v': 31}"},
	{Held{Path: "dataset.seen", Class: "set", Items: 300_000, Sampled: 4100, Blocks: 40}, "self.seen = {3, 1, 2}; key = 2", "found"},
	{Held{Path: "dataset.labels", Class: "numpy.ndarray", Items: 300_000, Sampled: 4100, Blocks: 40}, "self.labels = np.array(['a', 'bcd'], dtype=object)", "self.labels.dtype.kind == 'U' and self.labels[1] == 'bcd'"},
	{Held{Path: "dataset.datasets[*].rows", Class: "list", Items: 300_000, Sampled: 12500, Blocks: 40}, "self.rows = [[1, 'x'], [2, 'y']]; i = 1", "item == [2, 'y']"},
	{Held{Path: "data.TABLE", Class: "dict", Items: 300_000, Sampled: 9000, Blocks: 40}, "TABLE = {4: 'a', 2: 'b'}; key = 4", "value == 'a'"},
}

// TestFixes runs the printed code, where there is a Python with NumPy; without
// NumPy it is only compiled.
func TestFixes(t *testing.T) {
	for _, c := range fixes {
		t.Run(c.held.Path, func(t *testing.T) {
			run := NewRun(t)
			in(2*gib, Crew{Workers: 2, Passes: 1, Held: []Held{c.held}, Kernel: true, Copied: upTo(6000, 20000)})(run)
			r, err := analyze.Run(run.Open(t), analyze.Rules)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) == 0 {
				t.Fatal("nothing found")
			}
			fix := r.Findings[0].Fix
			for _, wrong := range []string{"gc.freeze", "set_sharing_strategy", "dtype=object)"} {
				if strings.Contains(fix, wrong) {
					t.Errorf("advises %s", wrong)
				}
			}
			program := "class self: pass\nimport sys\ncompile(sys.argv[1], 'fix', 'exec')\ntry:\n    import numpy as np\nexcept ImportError:\n    print('no NumPy'); sys.exit()\n" +
				strings.ReplaceAll(c.makes, "; ", "\n") + "\nexec(sys.argv[1])\nassert " + c.holds + "\n"
			file := filepath.Join(t.TempDir(), "fix.py")
			if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("python3", file, fix).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s\n%s", err, out, fix)
			}
			if len(out) > 0 {
				t.Log(string(out))
			}
		})
	}
}
