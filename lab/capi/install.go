package capi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/changeover-dev/changeover/lab"
	"github.com/changeover-dev/changeover/lab/crds"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// InstallCRDs creates the CRDs of all providers on a cluster that has none of them, and waits until they are established.
func InstallCRDs(ctx context.Context, cfg *rest.Config, providers []crds.Provider) error {
	client, err := apiextensions.NewForConfig(cfg)
	if err != nil {
		return err
	}
	api := client.ApiextensionsV1().CustomResourceDefinitions()
	all := crds.All(providers)
	for _, crd := range all {
		if _, err := api.Create(ctx, crd, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("crd %s: %w", crd.Name, err)
		}
	}
	return lab.Await(ctx, fmt.Sprintf("%d CRDs established", len(all)), func(ctx context.Context) (string, bool) {
		for _, crd := range all {
			live, err := api.Get(ctx, crd.Name, metav1.GetOptions{})
			if err != nil {
				return err.Error(), false
			}
			if !isEstablished(live) {
				return fmt.Sprintf("crd %s: %+v", crd.Name, live.Status.Conditions), false
			}
		}
		return "all", true
	})
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// Namespaces creates the namespace of each provider, and in each lets the default service account read everything: the probes list
// what they map.
func Namespaces(ctx context.Context, cfg *rest.Config, providers []crds.Provider) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "probes"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
		}},
	}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "probes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
	}
	for _, p := range providers {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}}
		if _, err := client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return err
		}
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: p.Namespace, Name: "default"})
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
	return err
}

// Objects are what CreateObjects has created: the UID of each, by resource, namespace and name.
type Objects map[string]string

// CreateObjects creates dockerMachines DockerMachines at v1alpha4, the version that v1.6.0 stops serving, and one object of
// each kind at each version that it serves. All are in the namespace default, or in none.
func CreateObjects(ctx context.Context, cfg *rest.Config, providers []crds.Provider, dockerMachines int) (Objects, error) {
	client, err := quietClient(cfg)
	if err != nil {
		return nil, err
	}
	created := Objects{}
	for _, crd := range crds.All(providers) {
		for _, v := range crd.Spec.Versions {
			if !v.Served {
				continue
			}
			n := 1
			if crd.Spec.Names.Kind == "DockerMachine" && v.Name == "v1alpha4" {
				n = dockerMachines
			}
			for i := range n {
				object, err := crds.Sample(crd, v.Name, fmt.Sprintf("made-at-%s-%d", v.Name, i))
				if err != nil {
					return nil, err
				}
				made, err := resource(client, crd, v.Name).Create(ctx, object, metav1.CreateOptions{})
				if err != nil {
					return nil, fmt.Errorf("%s at %s: %w", crd.Name, v.Name, err)
				}
				created[key(crd, made)] = string(made.GetUID())
			}
		}
	}
	return created, nil
}

// Lost compares what the API server of cfg holds, read in every version that providers' CRDs serve, with what was created. It
// returns a line for each object that is gone or has another UID in any of them.
func (o Objects) Lost(ctx context.Context, cfg *rest.Config, providers []crds.Provider) ([]string, error) {
	client, err := quietClient(cfg)
	if err != nil {
		return nil, err
	}
	var lost []string
	read := map[string]bool{} // what a CRD of providers is about
	for _, crd := range crds.All(providers) {
		for _, v := range crd.Spec.Versions {
			if !v.Served {
				continue
			}
			list, err := resource(client, crd, v.Name).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("%s at %s: %w", crd.Name, v.Name, err)
			}
			read[crd.Name] = true
			live := Objects{}
			for i := range list.Items {
				live[key(crd, &list.Items[i])] = string(list.Items[i].GetUID())
			}
			lost = append(lost, o.lostOf(crd, v.Name, live)...)
		}
	}
	for k := range o {
		if crd, _, _ := strings.Cut(k, " "); !read[crd] {
			lost = append(lost, k+" is of a kind that is not served at all")
		}
	}
	slices.Sort(lost)
	return lost, nil
}

// lostOf compares the objects of one CRD, live ones read at a version.
func (o Objects) lostOf(crd *apiextensionsv1.CustomResourceDefinition, version string, live Objects) []string {
	var lost []string
	for k, uid := range o {
		if !strings.HasPrefix(k, crd.Name+" ") {
			continue
		}
		switch live[k] {
		case uid:
		case "":
			lost = append(lost, fmt.Sprintf("%s is gone at %s", k, version))
		default:
			lost = append(lost, fmt.Sprintf("%s has the UID %s at %s; it was created with %s", k, live[k], version, uid))
		}
	}
	return lost
}

// quietClient does not log that v1alpha4 is deprecated: that is why we are here.
func quietClient(cfg *rest.Config) (dynamic.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandler = rest.NoWarnings{}
	return dynamic.NewForConfig(cfg)
}

func key(crd *apiextensionsv1.CustomResourceDefinition, u *unstructured.Unstructured) string {
	return crd.Name + " " + u.GetNamespace() + "/" + u.GetName()
}

func resource(client dynamic.Interface, crd *apiextensionsv1.CustomResourceDefinition, version string) dynamic.ResourceInterface {
	r := client.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: version, Resource: crd.Spec.Names.Plural})
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		return r.Namespace(metav1.NamespaceDefault)
	}
	return r
}

// RemoveCRD deletes a CRD and waits until it is gone. One that does not exist is fine.
func RemoveCRD(ctx context.Context, cfg *rest.Config, name string) error {
	client, err := apiextensions.NewForConfig(cfg)
	if err != nil {
		return err
	}
	api := client.ApiextensionsV1().CustomResourceDefinitions()
	if err := api.Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return lab.Await(ctx, "CRD "+name+" gone", func(ctx context.Context) (string, bool) {
		_, err := api.Get(ctx, name, metav1.GetOptions{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}
