package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/changeover-dev/changeover/upgrade"
	"github.com/changeover-dev/changeover/upgrade/converge"
	"github.com/changeover-dev/changeover/upgrade/quiesce"
)

// flags are what the verbs share. Zero values are the defaults but where add says otherwise.
type flags struct {
	kube        *genericclioptions.ConfigFlags
	files       []string
	apiServers  []string
	controllers []string
	selector    string
	force       bool
	timeout     time.Duration
	output      string
}

// addCommon adds what every verb that talks to a cluster takes.
func (f *flags) addCommon(cmd *cobra.Command) {
	f.kube = genericclioptions.NewConfigFlags(true)
	f.kube.AddFlags(cmd.Flags())
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "file, folder or - (standard input) with the new CRDs; repeatable, all of it is one changeover")
	cmd.Flags().StringArrayVar(&f.apiServers, "apiserver", nil, "API server that has to agree, as NAME=URL or URL; repeatable (default: found through the EndpointSlice default/kubernetes)")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 5*time.Minute, "longest time for each phase")
	cmd.Flags().StringVarP(&f.output, "output", "o", "", `"json" for a machine; text when empty`)
}

// addControllers adds what verbs take that stop controllers.
func (f *flags) addControllers(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.controllers, "controllers", nil, "Deployment to stop during the changeover, as NAMESPACE/NAME; repeatable, beside those in the manifests")
	cmd.Flags().StringVar(&f.selector, "controller-selector", "", "label selector of further Deployments to stop, in all namespaces")
	cmd.Flags().BoolVar(&f.force, "force-conflicts", false, "write fields of CRDs that another manager keeps by server-side apply")
}

// options turns flags into what the engine takes. Errors are wrong usage.
func (f *flags) options(streams genericiooptions.IOStreams) (upgrade.Options, error) {
	o := upgrade.Options{Sources: f.files, Stdin: streams.In, ControllerSelector: f.selector, ForceConflicts: f.force, Timeout: f.timeout,
		Progress: func(line string) { fmt.Fprintln(streams.ErrOut, line) }}
	if len(f.files) == 0 {
		return o, errors.New("-f is missing: a file, folder or - with the new CRDs")
	}
	if i := slices.Index(f.files, "-"); i >= 0 && slices.Contains(f.files[i+1:], "-") {
		return o, errors.New("-f - is given twice: standard input can be read once")
	}
	if f.output != "" && f.output != "json" {
		return o, fmt.Errorf("-o %q: only json is known", f.output)
	}
	if f.timeout <= 0 {
		return o, fmt.Errorf("--timeout %s: must be more than nothing", f.timeout)
	}
	if _, err := labels.Parse(f.selector); err != nil {
		return o, fmt.Errorf("--controller-selector %q: %w", f.selector, err)
	}
	for _, s := range f.controllers {
		ref, err := quiesce.ParseRef(s)
		if err != nil {
			return o, err
		}
		o.Controllers = append(o.Controllers, ref)
	}
	var err error
	o.APIServers, err = converge.ParseAddresses(f.apiServers)
	return o, err
}

// cluster reads the kubeconfig: the API server to talk to, and the namespace of manifests that name none.
func (f *flags) cluster() (*rest.Config, string, error) {
	config, err := f.kube.ToRESTConfig()
	if err != nil {
		return nil, "", &kubeconfigError{err}
	}
	if err := f.named(config); err != nil {
		return nil, "", err
	}
	namespace, _, err := f.kube.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", &kubeconfigError{err}
	}
	// client-go's default of 5 requests a second would take longer than all the work; the API server's own fairness protects it.
	config.QPS, config.Burst = 50, 300
	config.UserAgent = upgrade.FieldManager + "/" + version()
	return config, namespace, nil
}

// clientcmdDefault is where client-go goes when nothing names a cluster. Whoever listens there is not the one that was meant.
const clientcmdDefault = "localhost:8080"

// named refuses a config that no kubeconfig, flag or Pod's environment names.
func (f *flags) named(config *rest.Config) error {
	raw, err := f.kube.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return &kubeconfigError{err}
	}
	if strings.TrimPrefix(config.Host, "http://") == clientcmdDefault && len(raw.Clusters) == 0 && *f.kube.APIServer == "" {
		return &kubeconfigError{clientcmd.ErrEmptyConfig}
	}
	return nil
}

// kubeconfigError is a kubeconfig that names no cluster to talk to.
type kubeconfigError struct{ err error }

func (e *kubeconfigError) Error() string {
	if clientcmd.IsEmptyConfig(e.err) {
		return "kubeconfig: there is none, or it names no cluster"
	}
	var path *os.PathError
	if errors.As(e.err, &path) {
		return fmt.Sprintf("kubeconfig %s: %v", path.Path, path.Err)
	}
	return "kubeconfig: " + e.err.Error()
}

func (e *kubeconfigError) Unwrap() error { return e.err }

func (e *kubeconfigError) Hints() []string {
	return []string{"give --kubeconfig FILE and --context NAME, or set KUBECONFIG; nothing was changed"}
}
