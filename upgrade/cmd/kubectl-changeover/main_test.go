package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"kubectl-changeover": main})
}

// The scripts run the real main. What needs a real API server is tested on the lab; here one answers that only refuses, so
// that a write to it is a failure by itself.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("KUBECONFIG", env.WorkDir+"/no-kubeconfig")
			env.Setenv("HOME", env.WorkDir)
			server := &refusing{}
			env.Values[serverKey{}] = server
			env.Defer(server.stop)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"apiserver": apiserver,
			"untouched": untouched,
		},
	})
}

// exits CODE COMMAND…: runs a command that must end with that exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if err != nil {
		text := err.Error()
		n, convErr := strconv.Atoi(text[strings.LastIndex(text, " ")+1:])
		if convErr != nil {
			ts.Fatalf("%v", err)
		}
		code = n
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

type serverKey struct{}

// refusing is an API server without any object, which denies the rules that it was told to deny.
type refusing struct {
	server       *httptest.Server
	unauthorized bool
	deny         []string // verb resource

	mu     sync.Mutex
	writes []string
}

func (r *refusing) stop() {
	if r.server != nil {
		r.server.Close()
	}
}

// apiserver [unauthorized] [VERB RESOURCE]…: starts it and points KUBECONFIG to it. "down" stops it again at once.
func apiserver(ts *testscript.TestScript, neg bool, args []string) {
	r := ts.Value(serverKey{}).(*refusing)
	r.server = httptest.NewServer(r)
	address := r.server.URL
	switch {
	case slices.Equal(args, []string{"down"}):
		r.server.Close()
	case slices.Equal(args, []string{"unauthorized"}):
		r.unauthorized = true
	default:
		for i := 0; i+1 < len(args); i += 2 {
			r.deny = append(r.deny, args[i]+" "+args[i+1])
		}
	}
	path := ts.MkAbs("kubeconfig")
	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}`, address)
	ts.Check(os.WriteFile(path, []byte(content), 0o600))
	ts.Setenv("KUBECONFIG", path)
}

// untouched: nothing was written to the API server.
func untouched(ts *testscript.TestScript, neg bool, args []string) {
	r := ts.Value(serverKey{}).(*refusing)
	r.mu.Lock()
	defer r.mu.Unlock()
	if (len(r.writes) > 0) != neg {
		ts.Fatalf("writes: %v", r.writes)
	}
}

func (r *refusing) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.unauthorized:
		status(w, http.StatusUnauthorized, "Unauthorized")
	case strings.HasSuffix(request.URL.Path, "/selfsubjectaccessreviews"):
		r.review(w, request)
	case request.Method != http.MethodGet:
		r.mu.Lock()
		r.writes = append(r.writes, request.Method+" "+request.URL.Path)
		r.mu.Unlock()
		status(w, http.StatusInternalServerError, "InternalError")
	case strings.HasSuffix(request.URL.Path, "/customresourcedefinitions"):
		fmt.Fprint(w, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"1"},"items":[]}`)
	case strings.HasSuffix(request.URL.Path, "/deployments"):
		fmt.Fprint(w, `{"apiVersion":"apps/v1","kind":"DeploymentList","metadata":{"resourceVersion":"1"},"items":[]}`)
	default:
		status(w, http.StatusNotFound, "NotFound")
	}
}

func (r *refusing) review(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		status(w, http.StatusBadRequest, "BadRequest")
		return
	}
	decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil) // protobuf or JSON
	review, ok := decoded.(*authorizationv1.SelfSubjectAccessReview)
	if err != nil || !ok {
		status(w, http.StatusBadRequest, "BadRequest")
		return
	}
	rule := review.Spec.ResourceAttributes.Verb + " " + review.Spec.ResourceAttributes.Resource
	review.Status.Allowed = !slices.Contains(r.deny, rule)
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(review)
}

func status(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":%q,"message":%q,"code":%d}`, reason, reason, code)
}
