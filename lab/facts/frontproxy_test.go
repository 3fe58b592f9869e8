package facts

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// frontProxy is the client certificate with which an API server speaks to aggregated API servers on behalf of its users. It signs itself, so the
// same file is the CA that those trust.
type frontProxy struct{ cert, key string }

func newFrontProxy(t testing.TB) frontProxy {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "front-proxy"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		IsCA:         true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := frontProxy{filepath.Join(dir, "front-proxy.crt"), filepath.Join(dir, "front-proxy.key")}
	for path, block := range map[string]*pem.Block{f.cert: {Type: "CERTIFICATE", Bytes: cert}, f.key: {Type: "PRIVATE KEY", Bytes: keyBytes}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// flags tell an API server to use the certificate.
func (f frontProxy) flags() []string {
	return []string{
		"--requestheader-client-ca-file=" + f.cert,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + f.cert,
		"--proxy-client-key-file=" + f.key,
	}
}
