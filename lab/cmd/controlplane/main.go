// Command controlplane is the lab's control plane in one binary: run with the name of a part, it is that part.
//
//	controlplane etcd|kube-apiserver|kube-controller-manager|sample-apiserver FLAGS…
//
// sample-apiserver is the Kubernetes project's example of an aggregated API server. Each part is the upstream program, with the
// upstream flags. A part ends itself as soon as its standard input is closed when LAB_LIFELINE=stdin is set, so that no part outlives
// the process that started it, however that one died.
package main

import (
	"fmt"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	sample "k8s.io/sample-apiserver/pkg/cmd/server"
)

const parts = "etcd|kube-apiserver|kube-controller-manager|sample-apiserver"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: controlplane "+parts+" FLAGS…")
		os.Exit(2)
	}
	if os.Getenv("LAB_LIFELINE") == "stdin" {
		go endWithParent()
	}
	part := os.Args[1]
	os.Args = append([]string{part}, os.Args[2:]...)
	switch part {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "sample-apiserver":
		options := sample.NewWardleServerOptions(os.Stdout, os.Stderr)
		os.Exit(cli.Run(sample.NewCommandStartWardleServer(genericapiserver.SetupSignalContext(), options, false)))
	default:
		fmt.Fprintf(os.Stderr, "controlplane: no part %q; there are %s\n", part, parts)
		os.Exit(2)
	}
}

// endWithParent reads standard input until its other end, held by the starting process, is closed.
func endWithParent() {
	var b [1]byte
	for {
		if _, err := os.Stdin.Read(b[:]); err != nil {
			os.Exit(0)
		}
	}
}
