package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/changeover-dev/changeover/lab"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestInput gives the command what must be refused, and what must not. No controller has to run for that, but a Deployment is
// there, so that a run which stops controllers too early is seen.
func TestInput(t *testing.T) {
	p := newPlane(t, lab.Options{NoControllerManager: true})
	if _, err := p.kube.AppsV1().Deployments("default").Create(t.Context(), controller("manager", 2, obedient), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Run("refused", func(t *testing.T) { refused(t, p) })
	t.Run("fields that another manager keeps", func(t *testing.T) { conflicts(t, p) })
	t.Run("a conversion's CA is kept, and its conversion goes", func(t *testing.T) { conversion(t, p) })
	t.Run("a CRD larger than an annotation may be", func(t *testing.T) { large(t, p) })
}

// refusal is bad input, and what has to come of it.
type refusal struct {
	args []string
	exit int
	says []string // on stderr
	// phase in the JSON; "" when the run ends before there is any.
	phase string
}

// refused gives bad input of every kind. Whatever it is, nothing on the cluster is written, dry runs aside.
func refused(t *testing.T, p *plane) {
	p.install(t, newCRD(refusing, "widgets", "v1alpha1 v1*"), newCRD(refusing, "gadgets", "v1alpha1 v1*"))
	next := newCRD(refusing, "widgets", "v1alpha1- v1*")
	all := badManifests(t, next)
	maps.Copy(all, badSurroundings(t, p, write(t, next)))
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			before := p.state(t)
			e := p.run(t, p.args(r.args...)...)
			e.wantExit(t, r.exit, r.says...)
			if r.phase != "" {
				e.wantFailedIn(t, r.phase)
			} else if e.stdout != "" {
				t.Errorf("stdout: %s", e.stdout)
			}
			if after := p.state(t); after != before {
				t.Errorf("the cluster was changed, from\n%s\nto\n%s", before, after)
			}
		})
	}
}

// refusing is the group of what is refused.
const refusing = "refused.example.com"

// badManifests are variants of a CRD that would be fine.
func badManifests(t *testing.T, next *definition) map[string]refusal {
	return map[string]refusal{
		// kubernetes-csi/external-snapshotter#1307: the first CRDs were applied before one was found invalid.
		"one of several is invalid": {
			args: []string{"-f", write(t, next, newCRD(refusing, "brackets", "v1*"), withBadSchema("gadgets"))}, exit: 3, phase: "preflight",
			says: []string{"crd gadgets.refused.example.com: the API server refuses it", "no CRD was changed"},
		},
		"a stored version is dropped": {
			args: []string{"-f", write(t, newCRD(refusing, "widgets", "v2*"))}, exit: 3, phase: "plan",
			says: []string{"v1 is the version in which objects are stored now", "hint: go over a CRD that has v1 with served: false"},
		},
		"the scope changes": {
			args: []string{"-f", write(t, changed(next, func(c *definition) { c.Spec.Scope = apiextensionsv1.NamespaceScoped }))}, exit: 3, phase: "plan",
			says: []string{"the scope would change from Cluster to Namespaced", "hint: a CRD cannot change this in place"},
		},
		"no versions": {
			args: []string{"-f", write(t, newCRD(refusing, "widgets", ""))}, exit: 3, phase: "read",
			says: []string{"crd widgets.refused.example.com: it has no versions"},
		},
		"a name that does not match the group": {
			args: []string{"-f", write(t, changed(next, func(c *definition) { c.Name = "widgets.example.org" }))}, exit: 3, phase: "read",
			says: []string{"the name does not match", "which make widgets.refused.example.com"},
		},
		"no YAML": {
			args: []string{"-f", text(t, "apiVersion: [apiextensions.k8s.io/v1")}, exit: 2, phase: "read",
			says: []string{"bad.yaml, document 1: neither YAML nor JSON"},
		},
		"no file": {
			args: []string{"-f", filepath.Join(t.TempDir(), "absent.yaml")}, exit: 2, phase: "read",
			says: []string{"absent.yaml: cannot be read"},
		},
	}
}

// badSurroundings have nothing against the manifest, which is the file.
func badSurroundings(t *testing.T, p *plane, file string) map[string]refusal {
	return map[string]refusal{
		"no permission": {
			args: []string{"--kubeconfig", writeKubeconfig(t, p.ConfigAs("nobody")), "-f", file}, exit: 3, phase: "read",
			says: []string{
				"permissions missing",
				`apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["list"]`,
				`apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get"]`,
				`apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["update"]`,
				`apiGroups: ["apps"], resources: ["deployments"], verbs: ["patch"] in namespace default`,
				`apiGroups: ["apps"], resources: ["replicasets"], verbs: ["list"] in namespace default`,
				`apiGroups: [""], resources: ["pods"], verbs: ["list"] in namespace default`,
				`apiGroups: ["refused.example.com"], resources: ["widgets"], verbs: ["watch"]`,
				"hint: have somebody bind a role",
			},
		},
		"no kubeconfig": {
			args: []string{"--kubeconfig", filepath.Join(t.TempDir(), "absent"), "-f", file}, exit: 2,
			says: []string{"error: kubeconfig", "absent", "hint: give --kubeconfig FILE"},
		},
		"no such controller": {
			args: []string{"-f", file, "--controllers", "default/absent"}, exit: 3, phase: "plan",
			says: []string{"deployment default/absent: does not exist"},
		},
		"an API server that is down": {
			args: []string{"--kubeconfig", p.closedAddress(t), "-f", file}, exit: 1, phase: "read",
			says: []string{"connection refused", "hint: the API server does not answer"},
		},
	}
}

// args puts what every run here has in front: of a flag that comes twice, the last one counts.
func (p *plane) args(more ...string) []string {
	return append(append([]string{"--kubeconfig", p.Kubeconfig(), "--controllers", "default/manager"}, p.apiServers()...), more...)
}

// closedAddress is the kubeconfig of an API server that was there: of a proxy's address, after its end.
func (p *plane) closedAddress(t *testing.T) string {
	t.Helper()
	front := p.startProxy(t)
	path := p.kubeconfigThrough(t, front)
	if err := front.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func withBadSchema(plural string) *definition {
	return changed(newCRD(refusing, plural, "v1alpha1- v1*"), func(c *definition) {
		c.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "nonsense"}
	})
}

func text(t testing.TB, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// runAlone runs the command without any controller, since here nothing runs that would stop one.
func (p *plane) runAlone(t testing.TB, more ...string) ended {
	t.Helper()
	return p.run(t, append(append([]string{"--kubeconfig", p.Kubeconfig()}, p.apiServers()...), more...)...)
}

// conflicts is prometheus-community/helm-charts#5287: another manager keeps fields by server-side apply. It is named, and overruled
// only on request; what it keeps beside them stays.
func conflicts(t *testing.T, p *plane) {
	before := newCRD("kept.example.com", "widgets", "v1alpha1 v1*")
	before.Labels, before.Annotations = map[string]string{"kept.example.com/by": "gitops"}, map[string]string{"kept.example.com/why": "because"}
	raw, err := json.Marshal(map[string]any{"apiVersion": before.APIVersion, "kind": before.Kind,
		"metadata": map[string]any{"name": before.Name, "labels": before.Labels, "annotations": before.Annotations}, "spec": before.Spec})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.crds.Patch(t.Context(), before.Name, types.ApplyPatchType, raw, metav1.PatchOptions{FieldManager: "gitops"}); err != nil {
		t.Fatal(err)
	}
	p.awaitServed(t, []*definition{before})
	uid := p.create(t, before, "v1alpha1", "a")
	after := newCRD("kept.example.com", "widgets", "v1alpha1- v1*")
	after.Labels = map[string]string{"ours": "too"}
	file := write(t, after)

	state := p.state(t)
	e := p.runAlone(t, "-f", file)
	e.wantExit(t, 3, `crd widgets.kept.example.com: spec.versions is kept by "gitops" through server-side apply`, "--force-conflicts")
	e.wantFailedIn(t, "preflight")
	if now := p.state(t); now != state {
		t.Errorf("the cluster was changed, from\n%s\nto\n%s", state, now)
	}

	p.runAlone(t, "-f", file, "--force-conflicts").wantExit(t, 0)
	p.wantServed(t, []*definition{after})
	p.wantObject(t, after, "v1", "a", uid)
	live := p.live(t, after.Name)
	if live.Labels["kept.example.com/by"] != "gitops" || live.Labels["ours"] != "too" || live.Annotations["kept.example.com/why"] != "because" {
		t.Errorf("labels %v, annotations %v", live.Labels, live.Annotations)
	}
}

// conversion: a release's manifest carries a placeholder for the CA that the cluster's own injector has filled in; and
// aws/karpenter-provider-aws#7619: a later release drops the conversion.
func conversion(t *testing.T, p *plane) {
	webhook := newConverter(t)
	before := newCRD("converted.example.com", "widgets", "v1alpha1 v1beta1 v1*")
	before.Spec.Conversion = webhook.conversion(webhook.ca())
	p.install(t, before)
	uid := p.create(t, before, "v1alpha1", "a")

	after := newCRD("converted.example.com", "widgets", "v1alpha1- v1beta1 v1*")
	after.Spec.Conversion = webhook.conversion([]byte("\n")) // "Cg==" in base64
	if raw, err := os.ReadFile(write(t, after)); err != nil || !strings.Contains(string(raw), "caBundle: Cg==") {
		t.Fatalf("the manifest holds no placeholder: %v\n%s", err, raw)
	}
	p.runAlone(t, "-f", write(t, after)).wantExit(t, 0)
	p.wantServed(t, []*definition{after})
	live := p.live(t, after.Name)
	if c := live.Spec.Conversion; c.Webhook == nil || string(c.Webhook.ClientConfig.CABundle) != string(webhook.ca()) {
		t.Errorf("conversion %+v; want the webhook with its CA", c)
	}
	p.wantObject(t, after, "v1beta1", "a", uid) // through the webhook

	last := newCRD("converted.example.com", "widgets", "v1alpha1- v1beta1- v1*")
	p.runAlone(t, "-f", write(t, last)).wantExit(t, 0)
	p.wantServed(t, []*definition{last})
	if c := p.live(t, last.Name).Spec.Conversion; c.Strategy != apiextensionsv1.NoneConverter || c.Webhook != nil {
		t.Errorf("conversion %+v; want none", c)
	}
	p.wantObject(t, last, "v1", "a", uid)
}

// large is prometheus-operator/prometheus-operator#4355: kubectl apply keeps a copy in an annotation, which may have 262,144 bytes.
func large(t *testing.T, p *plane) {
	grow := func(c *definition) {
		for i := range c.Spec.Versions {
			schema := c.Spec.Versions[i].Schema.OpenAPIV3Schema
			schema.Description = strings.Repeat("long ", 60_000)
		}
	}
	before := changed(newCRD("large.example.com", "widgets", "v1alpha1 v1*"), grow)
	p.runAlone(t, "-f", write(t, before)).wantExit(t, 0)
	p.awaitServed(t, []*definition{before})
	uid := p.create(t, before, "v1alpha1", "a")
	after := changed(newCRD("large.example.com", "widgets", "v1alpha1- v1*"), grow)
	p.runAlone(t, "-f", write(t, after)).wantExit(t, 0)
	p.wantServed(t, []*definition{after})
	p.wantObject(t, after, "v1", "a", uid)
}
