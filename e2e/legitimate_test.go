package e2e

import "testing"

// TestLegitimate records the patterns of training that are right although they
// look like a bug; legitimate/README.md lists them. Nothing may be found, whatever
// the rule. (That recording changes nothing is for TestPrograms and TestNeutral to see.)
func TestLegitimate(t *testing.T) {
	eachCase(t, "legitimate", func(c testCase, t *testing.T, p interpreter) {
		if len(c.expect) > 0 {
			t.Fatal("a legitimate pattern expects a finding")
		}
		if recorded := c.test(t, p); recorded.stdout == "" {
			t.Error("the program says nothing")
		}
	})
}
