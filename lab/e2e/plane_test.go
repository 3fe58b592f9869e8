package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/node"
	"github.com/changeover-dev/changeover/lab/proxy"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// annotation is on a Deployment while a changeover holds it at zero.
const annotation = "changeover.dev/replicas"

// limit of every wait. Far more than any takes, so that a busy machine fails nothing.
const limit = 90 * time.Second

// plane is a control plane with the command to run on it, and clients of API server 0.
type plane struct {
	*lab.Cluster
	program string
	kube    kubernetes.Interface
	crds    apiextensionsclient.CustomResourceDefinitionInterface
	objects dynamic.Interface
}

func newPlane(t *testing.T, o lab.Options) *plane {
	t.Helper()
	program, err := lab.Build(t.Context(), "kubectl-changeover", t.Output())
	if err != nil {
		t.Fatal(err)
	}
	p := &plane{Cluster: lab.ForTest(t, o), program: program}
	cfg := p.Config()
	cfg.WarningHandler = rest.NoWarnings{} // old versions are deprecated: that is why we are here
	client, err := apiextensionsclient.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p.crds = client.CustomResourceDefinitions()
	if p.objects, err = dynamic.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if p.kube, err = kubernetes.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	return p
}

// startNode lets Pods run until the test ends.
func (p *plane) startNode(t *testing.T) {
	t.Helper()
	n, err := node.Start(context.WithoutCancel(t.Context()), p.Config(), node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(); err != nil {
			t.Errorf("stopping the node: %v", err)
		}
	})
}

// startProxy puts a proxy in front of API server 0.
func (p *plane) startProxy(t *testing.T) *proxy.HTTP {
	t.Helper()
	front, err := proxy.Start(p.Config(), proxy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := front.Close(); err != nil {
			t.Errorf("closing the proxy: %v", err)
		}
	})
	return front
}

// kubeconfigThrough writes a kubeconfig that leads through a proxy, and that trusts the API servers as well, so that the command can
// be told to ask these itself.
func (p *plane) kubeconfigThrough(t *testing.T, front *proxy.HTTP) string {
	t.Helper()
	cfg := front.Config()
	cfg.CAData = append(cfg.CAData, p.Config().CAData...)
	return writeKubeconfig(t, cfg)
}

func writeKubeconfig(t *testing.T, cfg *rest.Config) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := lab.WriteKubeconfig(path, cfg); err != nil {
		t.Fatal(err)
	}
	return path
}

// apiServers are the flags that name both API servers.
func (p *plane) apiServers() []string {
	var flags []string
	for i, s := range p.Servers() {
		flags = append(flags, "--apiserver", fmt.Sprintf("server-%d=%s", i, s.URL()))
	}
	return flags
}

// await waits within the limit.
func await(t testing.TB, what string, check func(context.Context) (seen string, ok bool)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := lab.Await(ctx, what, check); err != nil {
		t.Fatal(err)
	}
}

// held waits until a rule holds a request.
func held(t testing.TB, rule *proxy.Rule) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := rule.AwaitHeld(ctx, 1); err != nil {
		t.Fatal(err)
	}
}

// state gives the resourceVersion of every CRD and Deployment, as lines in order. Two equal states mean that nothing was written
// in between, not even something without an effect that was taken back.
func (p *plane) state(t testing.TB) string {
	t.Helper()
	list, err := p.crds.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range list.Items {
		lines = append(lines, fmt.Sprintf("crd %s at %s", c.Name, c.ResourceVersion))
	}
	for _, d := range p.deployments(t, metav1.NamespaceAll, "") {
		lines = append(lines, fmt.Sprintf("deployment %s/%s at %s", d.Namespace, d.Name, d.ResourceVersion))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func (p *plane) deployments(t testing.TB, namespace, selector string) []appsv1.Deployment {
	t.Helper()
	list, err := p.kube.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// awaitReady waits until Deployments have the replicas of want, ready, and no Pod beyond.
func (p *plane) awaitReady(t testing.TB, namespace, selector string, want map[string]int32) {
	t.Helper()
	await(t, fmt.Sprintf("replicas %v ready", want), func(ctx context.Context) (string, bool) {
		ready := map[string]int32{}
		list, err := p.kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			return err.Error(), false
		}
		settled := true
		for _, d := range list.Items {
			ready[d.Name] = d.Status.ReadyReplicas
			settled = settled && d.Status.ObservedGeneration == d.Generation && d.Status.ReadyReplicas == *d.Spec.Replicas && d.Status.Replicas == *d.Spec.Replicas
		}
		return fmt.Sprintf("%v ready, settled: %t", ready, settled), settled && fmt.Sprint(ready) == fmt.Sprint(want)
	})
}

// wantReplicas demands that Deployments ask for the replicas of want, and that nothing of a changeover is left on them.
func (p *plane) wantReplicas(t testing.TB, namespace, selector string, want map[string]int32) {
	t.Helper()
	got := map[string]int32{}
	for _, d := range p.deployments(t, namespace, selector) {
		got[d.Name] = *d.Spec.Replicas
		if n, found := d.Annotations[annotation]; found {
			t.Errorf("deployment %s/%s: the annotation %s is left, with %q", d.Namespace, d.Name, annotation, n)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("replicas %v; want %v", got, want)
	}
}

// wantHeld demands that Deployments are at zero, with the number to come back to on them.
func (p *plane) wantHeld(t testing.TB, namespace string, want map[string]int32) {
	t.Helper()
	got := map[string]string{}
	for _, d := range p.deployments(t, namespace, "") {
		got[d.Name] = fmt.Sprintf("%d, had %s", *d.Spec.Replicas, d.Annotations[annotation])
	}
	expected := map[string]string{}
	for name, n := range want {
		expected[name] = fmt.Sprintf("0, had %d", n)
	}
	if fmt.Sprint(got) != fmt.Sprint(expected) {
		t.Errorf("deployments %v; want %v", got, expected)
	}
}

// holdConverge holds the command in its phase converge: at the second time that it asks for discovery, the first being preflight's look
// whether the API server answers at all.
func holdConverge(t testing.TB, front *proxy.HTTP) *proxy.Rule {
	t.Helper()
	const agent = "kubectl-changeover"
	preflight := &proxy.Rule{Method: http.MethodGet, Path: "/apis", UserAgent: agent, Delay: 1, Times: 1}
	converge := &proxy.Rule{Method: http.MethodGet, Path: "/apis", UserAgent: agent, Hold: proxy.HoldRequest}
	for _, r := range []*proxy.Rule{preflight, converge} {
		if err := front.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return converge
}
