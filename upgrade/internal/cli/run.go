package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/changeover-dev/changeover/upgrade"
)

type engine func(context.Context, *rest.Config, upgrade.Options) (*upgrade.Result, error)

// output is what -o json prints: the result, and the error as stderr has it.
type output struct {
	*upgrade.Result
	Error *failure `json:"error,omitempty"`
}

type failure struct {
	Phase   string   `json:"phase,omitempty"`
	Message string   `json:"message"`
	Hints   []string `json:"hints,omitempty"`
	Exit    int      `json:"exitCode"`
}

// run is what every verb does: flags, one call, one rendering. JSON is printed for failed runs too, since phases may have
// passed; text only for runs that came to their end.
func (f *flags) run(cmd *cobra.Command, streams genericiooptions.IOStreams, do engine, render func(io.Writer, *upgrade.Result)) error {
	o, err := f.options(streams)
	if err != nil {
		return usage(cmd, err)
	}
	config, namespace, err := f.cluster()
	if err != nil {
		return err
	}
	o.Namespace = namespace
	result, err := do(cmd.Context(), config, o)
	if f.output == "json" && result != nil {
		return errors.Join(err, printJSON(streams.Out, result, err))
	}
	if err == nil {
		render(streams.Out, result)
	}
	return err
}

func printJSON(w io.Writer, result *upgrade.Result, err error) error {
	out := output{Result: result}
	if err != nil {
		out.Error = &failure{Message: err.Error(), Hints: hints(err), Exit: exitCode(err)}
		var e *upgrade.Error
		if errors.As(err, &e) {
			out.Error.Phase = e.Phase
		}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(out); err != nil {
		return fmt.Errorf("printing the result: %w", err)
	}
	return nil
}

// noArgs is cobra.NoArgs as a usage error: a stray argument is most often a file without its -f.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usage(cmd, fmt.Errorf("%q: arguments are not taken; files go with -f", args[0]))
}
