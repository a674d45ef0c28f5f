package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/traces"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this build",
		Example: "  dptrace version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "dptrace %s\n%s %s/%s\ntrace schema %d\nrevision %s\n",
				version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, traces.SchemaVersion, revision())
			return err
		},
	}
}

// version is the module's, as the Go tool stamped it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// revision is the commit that was built, with a mark if files differed from it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	setting := map[string]string{}
	for _, s := range info.Settings {
		setting[s.Key] = s.Value
	}
	switch {
	case setting["vcs.revision"] == "":
		return "unknown"
	case setting["vcs.modified"] == "true":
		return setting["vcs.revision"] + " (modified)"
	}
	return setting["vcs.revision"]
}
