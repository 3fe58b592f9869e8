package main

import (
	"os"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/demo"
	"github.com/spf13/cobra"
)

func demoCommand() *cobra.Command {
	o := demo.Options{Out: os.Stdout}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Tell the story of Changeover on a lab of its own; exit code 0 only if it held",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer lab.EndWithParent()()
			return demo.Run(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Kubernetes, "kubernetes", "1.37", "Kubernetes release")
	return cmd
}
