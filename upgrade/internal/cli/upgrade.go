package cli

import (
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/changeover-dev/changeover/upgrade"
)

func newUpgrade(streams genericiooptions.IOStreams) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "upgrade -f FILE|DIR|- [flags]",
		Short: "Bring CRDs to new versions while their controllers are down, and the controllers back after",
		Long: `Stops the controllers, updates all CRDs, waits until every API server serves exactly the new versions, starts the
controllers again, and proves that every object is still there and readable.

Nothing changes before every CRD has passed a dry run. Killed or interrupted at any moment, the same command goes on.`,
		Example: `  # core and three providers, as one changeover
  kubectl changeover upgrade -f core/ -f bootstrap/ -f control-plane/ -f docker/ \
    --controllers capi-system/capi-controller-manager --controller-selector cluster.x-k8s.io/provider`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, streams, upgrade.Run, renderUpgrade)
		},
	}
	f.addCommon(cmd)
	f.addControllers(cmd)
	return cmd
}
