package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/changeover-dev/changeover/upgrade"
)

func newWait(streams genericiooptions.IOStreams) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "wait -f FILE|DIR|- [flags]",
		Short: "Wait until every API server serves what the given CRDs say, and change nothing",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, streams, upgrade.Wait, renderWait)
		},
	}
	f.addCommon(cmd)
	return cmd
}
