package restmapper_test

import (
	"log"

	"github.com/changeover-dev/changeover/restmapper"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// A client that observes for the mapper: the first 404 of a list or watch makes the mapper look again.
func ExampleNew() {
	config := &rest.Config{Host: "https://127.0.0.1:6443"}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		log.Fatal(err)
	}
	mapper, err := restmapper.New(config, httpClient, restmapper.Options{})
	if err != nil {
		log.Fatal(err)
	}
	// Every client that is made from config from here on observes.
	config.Wrap(mapper.WrapTransport)

	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Machine"})
	if err != nil {
		log.Fatal(err)
	}
	log.Println(mapping.Resource)
}
