package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/crds"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// ProviderLabel is on every Deployment of a provider, as in Cluster API's release manifests; a changeover finds the controllers by it.
const ProviderLabel = "cluster.x-k8s.io/provider"

// Controllers are the Deployments of all providers. Each Pod has one container per mapper, so that all mappers live through the same.
type Controllers struct {
	client      kubernetes.Interface
	deployments []*appsv1.Deployment
}

// NewControllers describes a Deployment with replicas Pods for each provider. Probes are paths of programs by the name of the mapper; each maps
// the provider's kinds with three mappers of its own.
func NewControllers(cfg *rest.Config, providers []crds.Provider, probes map[string]string, replicas int32) (*Controllers, error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	c := &Controllers{client: client}
	for _, p := range providers {
		c.deployments = append(c.deployments, deployment(p, probes, replicas))
	}
	return c, nil
}

func deployment(p crds.Provider, probes map[string]string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{ProviderLabel: p.Name, "control-plane": "controller-manager"}
	args := []string{"--mappers=3"}
	for _, crd := range p.CRDs {
		args = append(args, "--kind="+crd.Spec.Group+"/"+crd.Spec.Names.Kind)
	}
	var containers []corev1.Container
	for name, path := range probes {
		containers = append(containers, corev1.Container{
			Name:    ContainerName(name),
			Image:   "none, the node runs the command as a process",
			Command: []string{path},
			Args:    args,
			ReadinessProbe: &corev1.Probe{
				PeriodSeconds: 1,
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromString("lab")}},
			},
		})
	}
	slices.SortFunc(containers, func(a, b corev1.Container) int { return strings.Compare(a.Name, b.Name) })
	grace := int64(5)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: strings.TrimSuffix(p.Namespace, "-system") + "-controller-manager", Namespace: p.Namespace, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: containers, TerminationGracePeriodSeconds: &grace},
			},
		},
	}
}

// ContainerName makes the name of a mapper, "controller-runtime v0.16.3", one that a container may have.
func ContainerName(mapper string) string {
	return strings.NewReplacer(" ", "-", ".", "-").Replace(mapper)
}

// Create creates the Deployments and waits until all their Pods are ready.
func (c *Controllers) Create(ctx context.Context) error {
	for _, d := range c.deployments {
		if _, err := c.client.AppsV1().Deployments(d.Namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("deployment %s/%s: %w", d.Namespace, d.Name, err)
		}
	}
	return c.AwaitReady(ctx)
}

// AwaitReady waits until every Deployment has all the replicas that it was created with, ready.
func (c *Controllers) AwaitReady(ctx context.Context) error {
	return lab.Await(ctx, fmt.Sprintf("%d Deployments ready", len(c.deployments)), func(ctx context.Context) (string, bool) {
		for _, d := range c.deployments {
			live, err := c.client.AppsV1().Deployments(d.Namespace).Get(ctx, d.Name, metav1.GetOptions{})
			if err != nil {
				return err.Error(), false
			}
			want := *d.Spec.Replicas
			if *live.Spec.Replicas != want || live.Status.ReadyReplicas != want || live.Status.ObservedGeneration < live.Generation {
				return fmt.Sprintf("%s/%s: %d wanted of %d, %d ready", d.Namespace, d.Name, *live.Spec.Replicas, want, live.Status.ReadyReplicas), false
			}
		}
		return "all", true
	})
}

// Pods lists the Pods of all providers.
func (c *Controllers) Pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: ProviderLabel})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
