package facts

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// What an API server answers by itself, before any resource has been found.
const (
	plain404    = "404 page not found\n"
	plainText   = "text/plain; charset=utf-8"
	jsonType    = "application/json"
	legacyForm  = "application/json"
	aggregated  = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	aggregated1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
)

// wire speaks plain HTTP to one API server as one user: no library between the wire and the test interprets an answer.
type wire struct {
	url    string
	client *http.Client
}

func newWire(t testing.TB, cfg *rest.Config) wire {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return wire{cfg.Host, client}
}

// request is what a test sends; the zero values mean GET, and no header.
type request struct{ Method, Path, Accept, IfNoneMatch, ContentType, Body string }

// answer is what came back.
type answer struct {
	Status      int
	ContentType string
	ETag        string
	Body        string
}

func (a answer) String() string {
	body := a.Body
	if len(body) > 600 {
		body = body[:600] + "…"
	}
	return http.StatusText(a.Status) + ", " + a.ContentType + ": " + body
}

// try sends r and reads the whole answer, within 30 s: a watch that is unexpectedly served does not hang the suite.
func (w wire) try(ctx context.Context, r request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, w.url+r.Path, strings.NewReader(r.Body))
	if err != nil {
		return answer{}, err
	}
	for name, value := range map[string]string{"Accept": r.Accept, "If-None-Match": r.IfNoneMatch, "Content-Type": r.ContentType} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), resp.Header.Get("ETag"), string(body)}, err
}

// send is try for a request that must be answered, in whatever way.
func (w wire) send(t testing.TB, r request) answer {
	t.Helper()
	a, err := w.try(t.Context(), r)
	if err != nil {
		t.Fatalf("%s %s: %v", r.Method, r.Path, err)
	}
	return a
}

func (w wire) get(t testing.TB, path string) answer {
	t.Helper()
	return w.send(t, request{Path: path})
}

// must is send for a request that has to succeed; it returns the object in the answer.
func (w wire) must(t testing.TB, r request) object {
	t.Helper()
	a := w.send(t, r)
	if a.Status/100 != 2 {
		t.Fatalf("%s %s: %v", r.Method, r.Path, a)
	}
	return parse(t, a.Body)
}

func post(path, body string) request {
	return request{Method: http.MethodPost, Path: path, ContentType: jsonType, Body: body}
}

func put(path, body string) request {
	return request{Method: http.MethodPut, Path: path, ContentType: jsonType, Body: body}
}

func mergePatch(path, body string) request {
	return request{Method: http.MethodPatch, Path: path, ContentType: "application/merge-patch+json", Body: body}
}

// apply is a server-side apply by manager. Unlike a create, it does not have to wait out the 2 s for which an API server delays creations of a
// kind that is new.
func apply(manager, path, body string) request {
	return request{Method: http.MethodPatch, Path: path + "?fieldManager=" + manager, ContentType: "application/apply-patch+yaml", Body: body}
}

// object holds the parts of any API object, Status included, that the facts are about.
type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string         `json:"name"`
		ResourceVersion string         `json:"resourceVersion"`
		ManagedFields   []managedField `json:"managedFields"`
	} `json:"metadata"`
	Spec    map[string]string `json:"spec"`
	Reason  string            `json:"reason"`
	Message string            `json:"message"`
	Code    int               `json:"code"`
}

type managedField struct {
	Manager    string          `json:"manager"`
	Operation  string          `json:"operation"`
	APIVersion string          `json:"apiVersion"`
	FieldsType string          `json:"fieldsType"`
	FieldsV1   json.RawMessage `json:"fieldsV1"`
}

func parse(t testing.TB, body string) object {
	t.Helper()
	var o object
	// Only some objects have a spec of strings; the others' is not looked at.
	var typeError *json.UnmarshalTypeError
	if err := json.Unmarshal([]byte(body), &o); err != nil && !errors.As(err, &typeError) {
		t.Fatalf("%v: %s", err, body)
	}
	return o
}

// wantPlain404 demands the answer of an API server that knows no such path.
func wantPlain404(t testing.TB, a answer) {
	t.Helper()
	if a.Status != http.StatusNotFound || a.ContentType != plainText || a.Body != plain404 {
		t.Errorf("%v; want the plain 404", a)
	}
}

// wantNoSuchResource demands the answer of a server for built-in types that knows the group but no such path: a Status that names no object.
func wantNoSuchResource(t testing.TB, a answer) {
	t.Helper()
	wantStatus(t, a, 404, "NotFound", "the server could not find the requested resource")
	if !strings.Contains(a.Body, `"details":{}`) {
		t.Errorf("%v; want no details", a)
	}
}

// wantStatus demands a Status object with this code and reason, and a message that holds each of the parts.
func wantStatus(t testing.TB, a answer, code int, reason string, parts ...string) {
	t.Helper()
	if a.ContentType != jsonType {
		t.Errorf("%v; want a Status in JSON", a)
		return
	}
	s := parse(t, a.Body)
	if a.Status != code || s.Kind != "Status" || s.Code != code || s.Reason != reason {
		t.Errorf("%d %v; want a Status with %d %q", a.Status, a, code, reason)
	}
	for _, part := range parts {
		if !strings.Contains(s.Message, part) {
			t.Errorf("message %q; want %q in it", s.Message, part)
		}
	}
}

// wantError demands an error whose text holds each of the parts.
func wantError(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v; want %q", err, part)
		}
	}
}
