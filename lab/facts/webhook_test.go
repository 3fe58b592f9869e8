package facts

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// hook is a webhook server of the test's own.
type hook struct{ *httptest.Server }

func newHook(t testing.TB, handler http.HandlerFunc) hook {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return hook{s}
}

// ca is the certificate, in PEM form, that the API server has to trust.
func (h hook) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
}

// kill ends the server and the connections that API servers keep to it.
func (h hook) kill() {
	h.CloseClientConnections()
	h.Close()
}

// newConverter is a conversion webhook that changes the apiVersion and nothing else.
func newConverter(t testing.TB) hook {
	return newHook(t, func(w http.ResponseWriter, r *http.Request) {
		var review apiextensionsv1.ConversionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
		for _, raw := range review.Request.Objects {
			var o unstructured.Unstructured
			if err := o.UnmarshalJSON(raw.Raw); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			o.SetAPIVersion(review.Request.DesiredAPIVersion)
			response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: &o})
		}
		review.Request, review.Response = nil, response
		w.Header().Set("Content-Type", jsonType)
		_ = json.NewEncoder(w).Encode(review) // a client that has gone learns nothing
	})
}

func webhookConversion(url string, ca []byte) *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca},
			ConversionReviewVersions: []string{"v1"},
		},
	}
}
