package node

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "1", "EMPTY": ""}
	for in, want := range map[string]string{
		"":               "",
		"plain":          "plain",
		"$(A)":           "1",
		"x$(A)y$(A)z":    "x1y1z",
		"$(EMPTY)|":      "|",
		"$(NOT_THERE)":   "$(NOT_THERE)",
		"$$(A)":          "$(A)",
		"$$$(A)":         "$1",
		"$":              "$",
		"a$b":            "a$b",
		"$(A":            "$(A",
		"$(NOT) $(A)":    "$(NOT) 1",
		"$((A))":         "$((A))",
		"curl :$(A)/$$x": "curl :1/$x",
	} {
		if got := expand(in, values); got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("KUBECONFIG", "/somebody/else")
	t.Setenv("SECRET_OF_THE_HOST", "x")
	fieldRef := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}, Spec: corev1.PodSpec{NodeName: "n", ServiceAccountName: "sa"}}
	c := &corev1.Container{Env: []corev1.EnvVar{
		{Name: "NAME", ValueFrom: fieldRef("metadata.name")},
		{Name: "ALL", Value: "$(NAME):$(LAB_PORT)"},
		{Name: "UID", ValueFrom: fieldRef("metadata.uid")},
		{Name: "IP", ValueFrom: fieldRef("status.podIP")},
	}}
	env, err := environment(p, c, 1234, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"HOSTNAME=p", "LAB_PORT=1234", "NAME=p", "ALL=p:1234", "UID=u", "IP=127.0.0.1"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %q", want, env)
		}
	}
	for _, e := range env {
		if strings.HasPrefix(e, "KUBECONFIG=") || strings.HasPrefix(e, "SECRET_") {
			t.Errorf("%s of the host reached the Pod", e)
		}
	}

	c.Env = []corev1.EnvVar{{Name: "X", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{}}}}
	if _, err := environment(p, c, 1, ""); err == nil || !strings.Contains(err.Error(), "env X") {
		t.Errorf("an env from a Secret: %v, want a refusal that names it", err)
	}
}
