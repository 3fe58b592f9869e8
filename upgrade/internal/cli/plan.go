package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/changeover-dev/changeover/upgrade"
)

func newPlan(streams genericiooptions.IOStreams) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "plan -f FILE|DIR|- [flags]",
		Short: "Say what upgrade would do, or why it would refuse, and change nothing",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, streams, upgrade.Plan, renderPlan)
		},
	}
	f.addCommon(cmd)
	f.addControllers(cmd)
	return cmd
}
