package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
)

// tokenLife is what the agent asks for; it renews at four fifths of what it gets.
const tokenLife = time.Hour

// account gives one Pod the credentials of its service account: a kubeconfig that names a token file, which clients read anew when it changes.
type account struct {
	node *Node
	pod  *pod
	dir  string

	mu      sync.Mutex
	path    string        // of the kubeconfig, once written
	renewal time.Time     // when to renew
	ready   chan struct{} // closed when there is something to renew
}

// kubeconfig returns the path of the Pod's kubeconfig, "" when the Pod wants no token. The first call of a Pod asks for the token.
func (a *account) kubeconfig(ctx context.Context, p *corev1.Pod) (string, error) {
	if !wantsToken(p) {
		return "", nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.path != "" {
		return a.path, nil
	}
	if err := a.fetch(ctx, p); err != nil {
		return "", err
	}
	cfg := a.node.podConfig
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["lab"] = &clientcmdapi.Cluster{
		Server: cfg.Host, CertificateAuthorityData: cfg.CAData, InsecureSkipTLSVerify: cfg.Insecure, TLSServerName: cfg.ServerName,
	}
	kubeconfig.AuthInfos["lab"] = &clientcmdapi.AuthInfo{TokenFile: a.tokenFile()}
	kubeconfig.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "lab", Namespace: p.Namespace}
	kubeconfig.CurrentContext = "lab"
	path := filepath.Join(a.dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return "", err
	}
	a.path = path
	close(a.ready)
	return path, nil
}

func (a *account) tokenFile() string { return filepath.Join(a.dir, "token") }

// fetch asks for a token and writes it, at one stroke, because clients may be reading.
func (a *account) fetch(ctx context.Context, p *corev1.Pod) error {
	name := p.Spec.ServiceAccountName
	if name == "" {
		name = "default"
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	answer, err := a.node.client.CoreV1().ServiceAccounts(p.Namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: ptr.To(int64(tokenLife.Seconds())),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("service account %s: %w", name, err)
	}
	fresh := a.tokenFile() + ".new"
	if err := os.WriteFile(fresh, []byte(answer.Status.Token), 0o600); err != nil {
		return err
	}
	a.renewal = time.Now().Add(time.Until(answer.Status.ExpirationTimestamp.Time) * 4 / 5)
	return os.Rename(fresh, a.tokenFile())
}

// renew keeps the token valid until ctx ends.
func (a *account) renew(ctx context.Context, p *corev1.Pod) {
	select {
	case <-ctx.Done():
		return
	case <-a.ready:
	}
	for {
		a.mu.Lock()
		wait := time.Until(a.renewal)
		a.mu.Unlock()
		timer := time.NewTimer(max(wait, retryDelay))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		a.mu.Lock()
		err := a.fetch(ctx, p)
		a.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			a.node.logf("pod %s: renewing its token: %v", a.pod.id, err)
		}
	}
}

// remove takes the credentials from the Pod's folder; the logs stay.
func (a *account) remove() {
	for _, name := range []string{"kubeconfig", "token", "token.new"} {
		_ = os.Remove(filepath.Join(a.dir, name)) // not there, or gone with the whole folder
	}
}

// wantsToken says whether a token is to be mounted. The API server's admission decides that from the Pod and its service account, and shows it as
// a projected volume; without that admission the Pod's own word counts.
func wantsToken(p *corev1.Pod) bool {
	for _, v := range p.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ServiceAccountToken != nil {
				return true
			}
		}
	}
	return p.Spec.AutomountServiceAccountToken != nil && *p.Spec.AutomountServiceAccountToken
}
