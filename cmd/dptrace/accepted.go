package main

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/dptrace/dptrace/analyze"
	"github.com/dptrace/dptrace/analyze/accept"
	"github.com/dptrace/dptrace/traces"
)

// readAccepted reads what the user accepts: from the file that was named, or
// else from dptrace.toml of this folder, or of one in which the run was recorded.
func readAccepted(config string, run *traces.Run) ([]accept.Entry, error) {
	var rules []string
	for _, r := range analyze.Rules {
		rules = append(rules, r.ID)
	}
	if config != "" {
		return accept.Read(config, rules)
	}
	for _, folder := range slices.Insert(workingFolders(run), 0, "") {
		file := filepath.Join(folder, accept.FileName)
		if _, err := os.Stat(file); err == nil {
			return accept.Read(file, rules)
		}
	}
	return nil, nil
}

// workingFolders are where a run was recorded, at least "".
func workingFolders(run *traces.Run) []string {
	var all []string
	for _, m := range traces.Rows[traces.Meta](run) {
		if m.Key == "cwd" && m.Value != "" && !slices.Contains(all, m.Value) {
			all = append(all, m.Value)
		}
	}
	if all == nil {
		all = []string{""}
	}
	return all
}
