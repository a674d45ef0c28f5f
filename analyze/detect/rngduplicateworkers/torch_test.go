package rngduplicateworkers

import "testing"

func TestOldTorch(t *testing.T) {
	for version, want := range map[string]bool{"1.8.1": true, "1.9.0": false, "1.13.0a0": false, "2.15.0+cpu": false, "0.4.1": true, "": false} {
		if oldTorch(version) != want {
			t.Errorf("oldTorch(%q) is %v", version, !want)
		}
	}
}
