package main

import (
	"github.com/spf13/cobra"

	"github.com/dptrace/dptrace/probes/recorder"
)

// newHelpers are the commands that record starts itself with.
func newHelpers() []*cobra.Command {
	return []*cobra.Command{
		{
			Use:                recorder.HelperCommand,
			Hidden:             true,
			DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				err := recorder.Helper(args)
				return &exit{code: recorder.ExitNotExecutable, err: err}
			},
		},
		{
			Use:                recorder.WitnessCommand,
			Hidden:             true,
			DisableFlagParsing: true,
			RunE: func(cmd *cobra.Command, args []string) error {
				return recorder.Witness(args)
			},
		},
		newFollowOTLP(),
	}
}
