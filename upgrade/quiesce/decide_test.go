package quiesce

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deployment with n replicas (-1: unset) and the annotation ("": none).
func deployment(n int32, annotation string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d", ResourceVersion: "7"}}
	if n >= 0 {
		d.Spec.Replicas = &n
	}
	if annotation != "" {
		d.Annotations = map[string]string{Annotation: annotation}
	}
	return d
}

func patchOf(w *write) string {
	if w == nil {
		return ""
	}
	return string(w.patch())
}

func TestDecideStop(t *testing.T) {
	for name, c := range map[string]struct {
		replicas   int32
		annotation string
		want       string
	}{
		"running":                        {3, "", `{"metadata":{"annotations":{"changeover.dev/replicas":"3"},"resourceVersion":"7"},"spec":{"replicas":0}}`},
		"unset means one":                {-1, "", `{"metadata":{"annotations":{"changeover.dev/replicas":"1"},"resourceVersion":"7"},"spec":{"replicas":0}}`},
		"at zero on purpose":             {0, "", ""},
		"stopped by an earlier run":      {0, "2", ""},
		"scaled up since an earlier run": {5, "2", `{"metadata":{"annotations":{"changeover.dev/replicas":"5"},"resourceVersion":"7"},"spec":{"replicas":0}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := patchOf(decideStop(deployment(c.replicas, c.annotation))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestDecideResume(t *testing.T) {
	for name, c := range map[string]struct {
		replicas   int32
		annotation string
		known      int32
		want       string
		err        bool
	}{
		"recorded":             {0, "2", 2, `{"metadata":{"annotations":{"changeover.dev/replicas":null},"resourceVersion":"7"},"spec":{"replicas":2}}`, false},
		"annotation taken off": {0, "", 2, `{"metadata":{"annotations":{"changeover.dev/replicas":null},"resourceVersion":"7"},"spec":{"replicas":2}}`, false},
		"scaled up meanwhile":  {5, "2", 2, `{"metadata":{"annotations":{"changeover.dev/replicas":null},"resourceVersion":"7"}}`, false},
		"running, no trace":    {5, "", 2, "", false},
		"no number":            {0, "two", 2, "", true},
		"negative":             {0, "-1", 2, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := decideResume(deployment(c.replicas, c.annotation), c.known)
			if got := patchOf(w); got != c.want || (err != nil) != c.err {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

func TestLastScaler(t *testing.T) {
	entry := func(manager, fields string, at int64) metav1.ManagedFieldsEntry {
		stamp := metav1.NewTime(time.Unix(at, 0))
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &stamp, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	d := deployment(1, "")
	d.ManagedFields = []metav1.ManagedFieldsEntry{
		entry("kubectl-changeover", `{"f:spec":{"f:replicas":{}}}`, 10),
		entry("argocd-controller", `{"f:spec":{"f:replicas":{}}}`, 20),
		entry("kube-controller-manager", `{"f:status":{"f:replicas":{}}}`, 30),
	}
	if got := lastScaler(d); got != "argocd-controller" {
		t.Errorf("got %q", got)
	}
}

func TestParseRef(t *testing.T) {
	if r, err := ParseRef("ns/name"); err != nil || r != (Ref{"ns", "name"}) {
		t.Errorf("got %v, %v", r, err)
	}
	for _, s := range []string{"", "name", "/name", "ns/", "ns/kind/name"} {
		if _, err := ParseRef(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

func TestPausedDeploymentIsReadyWithTheTemplateThatItHas(t *testing.T) {
	n := int32(2)
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &n}, Status: appsv1.DeploymentStatus{Replicas: n, AvailableReplicas: n}}
	if ready(d) {
		t.Error("ready, though no replica has the newest template")
	}
	if d.Spec.Paused = true; !ready(d) {
		t.Error("paused, with all replicas available: not ready")
	}
}

func TestOwnPods(t *testing.T) {
	owned := func(kind, owner string) metav1.ObjectMeta {
		yes := true
		return metav1.ObjectMeta{Name: owner, OwnerReferences: []metav1.OwnerReference{{Kind: kind, UID: types.UID(owner), Controller: &yes}}}
	}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{UID: "d"}}
	mine, theirs := appsv1.ReplicaSet{ObjectMeta: owned("Deployment", "d")}, appsv1.ReplicaSet{ObjectMeta: owned("Deployment", "e")}
	mine.UID, theirs.UID = "mine", "theirs"
	pods := []corev1.Pod{
		{ObjectMeta: owned("ReplicaSet", "mine")},
		{ObjectMeta: owned("ReplicaSet", "deleted already")},
		{ObjectMeta: owned("ReplicaSet", "theirs")},
		{ObjectMeta: owned("Job", "job")},
		{ObjectMeta: metav1.ObjectMeta{Name: "loose"}},
	}
	got := ownPods(pods, []appsv1.ReplicaSet{mine, theirs}, d)
	if len(got) != 2 || got[0].Name != "mine" || got[1].Name != "deleted already" {
		t.Errorf("got %v; want those of the Deployment's own ReplicaSets", got)
	}
}
