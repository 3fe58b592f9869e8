package race

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/changeover-dev/changeover/discovery"
	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/crds"
)

// What the race is about.
const (
	group    = "infrastructure.cluster.x-k8s.io"
	kind     = "DockerMachine"
	resource = "dockermachines"
	gone     = "v1alpha4" // served by the CRD's old form only
)

// subject is the CRD that changes, in both forms.
type subject struct {
	cluster  *lab.Cluster
	crds     apiextensions.CustomResourceDefinitionInterface
	old, new *apiextensionsv1.CustomResourceDefinition
}

func newSubject(ctx context.Context, c *lab.Cluster) (*subject, error) {
	client, err := apiextensions.NewForConfig(c.Config())
	if err != nil {
		return nil, err
	}
	s := &subject{cluster: c, crds: client.CustomResourceDefinitions()}
	if s.old, err = dockerMachines(ctx, "v1.5.2"); err != nil {
		return nil, err
	}
	if s.new, err = dockerMachines(ctx, "v1.6.0"); err != nil {
		return nil, err
	}
	return s, nil
}

// dockerMachines takes the CRD out of a release of Cluster API.
func dockerMachines(ctx context.Context, release string) (*apiextensionsv1.CustomResourceDefinition, error) {
	const module, dir = "sigs.k8s.io/cluster-api/test", "infrastructure/docker/config/crd/bases"
	all, err := crds.Load(ctx, crds.Source{Module: module, Version: release, Dir: dir})
	if err != nil {
		return nil, err
	}
	for _, crd := range all {
		if crd.Name == resource+"."+group {
			return crd, nil
		}
	}
	return nil, fmt.Errorf("module %s@%s: %s: no CRD %s.%s", module, release, dir, resource, group)
}

// reset brings the CRD to its old form and waits until every API server serves that.
func (s *subject) reset(ctx context.Context) error { return s.change(ctx, s.old) }

// upgrade brings the CRD to its new form and waits until every API server serves that, and nothing else.
func (s *subject) upgrade(ctx context.Context) error { return s.change(ctx, s.new, gone) }

// served names the versions that the new form serves.
func (s *subject) served() []string { return servedVersions(s.new) }

func servedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var served []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			served = append(served, v.Name)
		}
	}
	return served
}

func (s *subject) change(ctx context.Context, to *apiextensionsv1.CustomResourceDefinition, removed ...string) error {
	if err := s.apply(ctx, to); err != nil {
		return fmt.Errorf("crd %s: %w", to.Name, err)
	}
	return s.converged(ctx, to, removed)
}

// apply creates the CRD or gives it to's spec. The retry is for the API server's own controllers, which write its status.
func (s *subject) apply(ctx context.Context, to *apiextensionsv1.CustomResourceDefinition) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		live, err := s.crds.Get(ctx, to.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err := s.crds.Create(ctx, to, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		to.Spec.DeepCopyInto(&live.Spec)
		_, err = s.crds.Update(ctx, live, metav1.UpdateOptions{})
		return err
	})
}

// converged waits until every API server serves exactly what crd says, and answers that the removed versions do not exist.
func (s *subject) converged(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, removed []string) error {
	var endpoints []discovery.Endpoint
	for i, server := range s.cluster.Servers() {
		endpoints = append(endpoints, discovery.Endpoint{Name: fmt.Sprintf("api server %d", i), Config: server.Config()})
	}
	want := discovery.Want{Group: group, Served: map[string][]string{}, Gone: map[string][]string{}}
	for _, version := range servedVersions(crd) {
		want.Served[version] = []string{resource}
	}
	for _, version := range removed {
		want.Gone[version] = []string{resource}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := discovery.Await(ctx, endpoints, []discovery.Want{want}, discovery.AwaitOptions{Interval: 50 * time.Millisecond})
	return err
}
