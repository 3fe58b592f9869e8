package main

import (
	"context"
	"fmt"
	"time"

	"github.com/changeover-dev/changeover/lab"
	"github.com/spf13/cobra"
)

func downCommand() *cobra.Command {
	name := defaultName
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop a control plane that up has started, and remove what it stored",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := lab.Lookup(name)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			if err := n.Down(ctx); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "lab %q is stopped\n", name)
			return nil
		},
	}
	cmd.Flags().StringVar(&name, "name", name, "name of the lab")
	return cmd
}
