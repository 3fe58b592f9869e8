// Command changeover is the probe with this project's mapper.
package main

import (
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"

	"github.com/changeover-dev/changeover/lab/peers/probe"
	"github.com/changeover-dev/changeover/restmapper"
)

func main() {
	probe.Main("changeover", func(cfg *rest.Config, hc *http.Client) (meta.RESTMapper, *http.Client, error) {
		mapper, err := restmapper.New(cfg, hc, restmapper.Options{})
		if err != nil {
			return nil, nil, err
		}
		// Lists go through the mapper's transport: the 404 of one is what tells the mapper to look again.
		return mapper, &http.Client{Transport: mapper.WrapTransport(hc.Transport)}, nil
	})
}
