package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/capi"
	"github.com/changeover-dev/changeover/lab/crds"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// management is a management cluster of Cluster API, at the old release with the new one at hand.
type management struct {
	*plane
	before, after []crds.Provider
	objects       capi.Objects
	replicas      map[string]int32 // by Deployment
	files         []string         // the new release
}

// TestChangeover carries out the upgrade of kubernetes-sigs/cluster-api#10032, with the providers' CRDs as they were released.
func TestChangeover(t *testing.T) {
	m := newManagement(t)
	front := m.startProxy(t)
	converging := holdConverge(t, front) // all is written, and nothing may run yet
	history := m.record(t, capi.ProviderLabel)
	args := []string{"--kubeconfig", m.kubeconfigThrough(t, front), "--controller-selector", capi.ProviderLabel,
		"--apiserver", "server-0=" + front.URL(), "--apiserver", "server-1=" + m.Server(1).URL()}
	for _, f := range m.files {
		args = append(args, "-f", f)
	}

	command := m.start(t, args...)
	held(t, converging)
	m.wantNoPods(t, capi.ProviderLabel)
	converging.Release()
	done := command.wait(t)
	done.wantExit(t, 0)
	if r := done.report; r.Outcome != "done" || r.went("done") != phases {
		t.Fatalf("outcome %q, phases done: %q; stderr:\n%s", r.Outcome, r.went("done"), done.stderr)
	}

	m.wantEverything(t)
	m.wantReported(t, done.report)
	pods := 0
	for _, n := range m.replicas {
		pods += int(n)
	}
	m.awaitReady(t, metav1.NamespaceAll, capi.ProviderLabel, m.replicas)
	history.wantDownWhileWritten(t, pods, pods, len(crds.All(m.after)))

	t.Run("the same command again has nothing to do", func(t *testing.T) {
		before := m.state(t)
		again := m.run(t, args...)
		again.wantExit(t, 0)
		if r := again.report; r.Outcome != "nothing to do" || r.went("skipped") != "quiesce apply resume" {
			t.Errorf("outcome %q, phases skipped: %q", r.Outcome, r.went("skipped"))
		}
		if after := m.state(t); after != before {
			t.Errorf("it changed the cluster, from\n%s\nto\n%s", before, after)
		}
	})
}

func newManagement(t *testing.T) *management {
	t.Helper()
	m := &management{plane: newPlane(t, lab.Options{}), replicas: map[string]int32{}}
	m.startNode(t)
	ctx, cfg := t.Context(), m.Config()
	probe, err := lab.Build(ctx, "peer-changeover", t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if m.before, err = crds.ClusterAPI(ctx, "v1.5.2"); err != nil {
		t.Fatal(err)
	}
	if m.after, err = crds.ClusterAPI(ctx, "v1.6.0"); err != nil {
		t.Fatal(err)
	}
	if m.files, err = crds.Write(t.TempDir(), m.after); err != nil {
		t.Fatal(err)
	}
	if err := capi.InstallCRDs(ctx, cfg, m.before); err != nil {
		t.Fatal(err)
	}
	if m.objects, err = capi.CreateObjects(ctx, cfg, m.before, 5); err != nil {
		t.Fatal(err)
	}
	if err := capi.Namespaces(ctx, cfg, m.before); err != nil {
		t.Fatal(err)
	}
	controllers, err := capi.NewControllers(cfg, m.before, map[string]string{"changeover": probe}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := controllers.Create(ctx); err != nil {
		t.Fatal(err)
	}
	m.scale(t)
	return m
}

// scale gives each provider another number of replicas; one of them is at zero on purpose.
func (m *management) scale(t *testing.T) {
	t.Helper()
	for i, d := range m.deployments(t, metav1.NamespaceAll, capi.ProviderLabel) {
		n := int32(i)
		_, err := m.kube.AppsV1().Deployments(d.Namespace).UpdateScale(t.Context(), d.Name, &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name}, Spec: autoscalingv1.ScaleSpec{Replicas: n},
		}, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		m.replicas[d.Name] = n
	}
	if len(m.replicas) != 4 {
		t.Fatalf("providers' Deployments: %v; want 4", m.replicas)
	}
	m.awaitReady(t, metav1.NamespaceAll, capi.ProviderLabel, m.replicas)
}

func (p *plane) wantNoPods(t testing.TB, selector string) {
	t.Helper()
	list, err := p.kube.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range list.Items {
		t.Errorf("pod %s/%s is there: %s", pod.Namespace, pod.Name, pod.Status.Phase)
	}
}

// wantEverything judges the cluster by itself.
func (m *management) wantEverything(t *testing.T) {
	t.Helper()
	m.wantReplicas(t, metav1.NamespaceAll, capi.ProviderLabel, m.replicas)
	m.wantServed(t, crds.All(m.after))
	for i, s := range m.Servers() {
		lost, err := m.objects.Lost(t.Context(), s.Config(), m.after)
		if err != nil || len(lost) > 0 {
			t.Errorf("API server %d, of %d objects: %s, %v", i, len(m.objects), strings.Join(lost, "; "), err)
		}
	}
	for _, want := range crds.All(m.after) {
		live, err := m.crds.Get(t.Context(), want.Name, metav1.GetOptions{})
		if err != nil {
			t.Error(err)
			continue
		}
		for name, value := range want.Labels {
			if live.Labels[name] != value {
				t.Errorf("crd %s: label %s is %q; want %q", want.Name, name, live.Labels[name], value)
			}
		}
		if got, want := storage(live), storage(want); got != want {
			t.Errorf("crd %s: stores %s; want %s", live.Name, got, want)
		}
	}
}

// wantReported demands that the command has told what this release is about: a new CRD, v1alpha4 gone, and a storage version that moved.
func (m *management) wantReported(t *testing.T, r report) {
	t.Helper()
	old := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, c := range crds.All(m.before) {
		old[c.Name] = c
	}
	var created, untrimmed []string
	for _, c := range crds.All(m.after) {
		switch was := old[c.Name]; {
		case was == nil:
			created = append(created, c.Name)
		case storage(was) != storage(c):
			untrimmed = append(untrimmed, c.Name+" "+storage(was))
		}
	}
	if len(created) == 0 || len(untrimmed) == 0 {
		t.Fatalf("between the releases %v are new and %v store anew; the test wants some of each", created, untrimmed)
	}
	var saysCreated, saysUntrimmed []string
	for _, c := range r.CRDs {
		if c.Action == "create" {
			saysCreated = append(saysCreated, c.Name)
		}
		if c.Name == "dockermachines.infrastructure.cluster.x-k8s.io" && !slices.Contains(c.Stops, "v1alpha4") {
			t.Errorf("crd %s: stops %v; want v1alpha4 in it", c.Name, c.Stops)
		}
	}
	if r.Verify == nil || r.Verify.Objects != len(m.objects) {
		t.Fatalf("verify in JSON %+v; want %d objects", r.Verify, len(m.objects))
	}
	for _, u := range r.Verify.Untrimmed {
		saysUntrimmed = append(saysUntrimmed, u.CRD+" "+strings.Join(u.Versions, " "))
	}
	if fmt.Sprint(saysCreated) != fmt.Sprint(created) {
		t.Errorf("created, in JSON: %v; want %v", saysCreated, created)
	}
	for _, u := range untrimmed {
		if !slices.Contains(saysUntrimmed, u) {
			t.Errorf("untrimmed, in JSON: %v; want %s among them", saysUntrimmed, u)
		}
	}
	for i, c := range r.Controllers {
		if c.Held || c.Replicas != m.replicas[c.Name] {
			t.Errorf("controller %d in JSON: %+v; want %d replicas, not held", i, c, m.replicas[c.Name])
		}
	}
	if len(r.Controllers) != len(m.replicas) || fmt.Sprint(r.APIServers) != "[server-0 server-1]" {
		t.Errorf("in JSON %d controllers and the API servers %v", len(r.Controllers), r.APIServers)
	}
}

// storage is the storage version of a CRD.
func storage(c *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range c.Spec.Versions {
		if v.Storage {
			return v.Name
		}
	}
	return ""
}
