package lab

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// defaultServiceAccount checks for the object that shows that kube-controller-manager's controllers run; Pods need it, too.
func defaultServiceAccount(cfg *rest.Config) (func(context.Context) (string, bool), error) {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (string, bool) {
		if _, err := client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{}); err != nil {
			return err.Error(), false
		}
		return "service account default/default", true
	}, nil
}
