package lab

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Users that every lab knows. RBAC is on: only admin and the controller manager may do anything to begin with.
const (
	admin             = "admin"
	controllerManager = "system:kube-controller-manager"
)

// secrets are the keys, the certificate and the tokens that all API servers of one lab share.
type secrets struct {
	certFile, keyFile, saKeyFile, tokenFile string
	ca                                      []byte            // PEM; trusts the serving certificate
	tokens                                  map[string]string // by user
}

func newSecrets(dir string) (*secrets, error) {
	s := &secrets{
		certFile:  filepath.Join(dir, "apiserver.crt"),
		keyFile:   filepath.Join(dir, "apiserver.key"),
		saKeyFile: filepath.Join(dir, "service-accounts.key"),
		tokenFile: filepath.Join(dir, "tokens.csv"),
		tokens:    map[string]string{},
	}
	crt, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"localhost", "kubernetes.default.svc"})
	if err != nil {
		return nil, err
	}
	s.ca = crt
	saKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, err
	}
	var csv strings.Builder
	for _, u := range []struct{ name, groups string }{
		{admin, "system:masters"}, {controllerManager, ""}, {"nobody", ""}, {"someone", ""},
	} {
		var b [16]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, err
		}
		s.tokens[u.name] = hex.EncodeToString(b[:])
		fmt.Fprintf(&csv, "%s,%s,uid-%s,%q\n", s.tokens[u.name], u.name, u.name, u.groups)
	}
	for path, content := range map[string][]byte{s.certFile: crt, s.keyFile: key, s.saKeyFile: saKey, s.tokenFile: []byte(csv.String())} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// config is a client configuration for the API server at url, as user. It does not throttle itself.
func (s *secrets) config(url, user string) *rest.Config {
	return &rest.Config{
		Host:            url,
		BearerToken:     s.tokens[user],
		TLSClientConfig: rest.TLSClientConfig{CAData: s.ca},
		QPS:             -1,
	}
}

// WriteKubeconfig writes a kubeconfig to path that reaches the API server of cfg with cfg's bearer token.
func WriteKubeconfig(path string, cfg *rest.Config) error {
	k := clientcmdapi.NewConfig()
	k.Clusters["lab"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	k.AuthInfos["lab"] = &clientcmdapi.AuthInfo{Token: cfg.BearerToken}
	k.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "lab"}
	k.CurrentContext = "lab"
	return clientcmd.WriteToFile(*k, path)
}
