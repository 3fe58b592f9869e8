// Command controller-runtime-v0.25.3 is the probe with the mapper of controller-runtime v0.25.3.
package main

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/changeover-dev/changeover/lab/peers/probe"
)

func main() {
	probe.Main("controller-runtime v0.25.3", func(cfg *rest.Config, hc *http.Client) (meta.RESTMapper, *http.Client, error) {
		mapper, err := apiutil.NewDynamicRESTMapper(cfg, hc)
		return mapper, hc, err
	})
}
