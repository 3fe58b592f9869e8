package discovery

import (
	"context"
	"testing"
)

// What an answer to a list request proves. The two that matter most are the plain 404, which only an API server without a handler
// writes, and errors from the handler itself; all else that may come from before or beside it proves nothing.
func TestListVerdict(t *testing.T) {
	status := func(code int) reply { return statusReply(code, "it is so") }
	tests := []struct {
		name  string
		reply reply
		want  listVerdict
		have  string
	}{
		{"list", jsonReply(map[string]any{"kind": "WidgetList"}), handled, "a list"},
		{"plain 404", reply{status: 404, contentType: textType, body: "404 page not found\n"}, noHandler, "404 page not found"},
		{"404 for an object", status(404), handled, "404 it is so"},
		{"404 with another text", reply{status: 404, contentType: textType, body: "no such backend"}, provesNothing, "404 no such backend"},
		{"404 page", reply{status: 404, contentType: "text/html", body: "404 page not found"}, provesNothing, "404 a body of type text/html"},
		{"conversion fails", status(500), handled, "500 it is so"},
		{"storage initializing", status(429), handled, "429 it is so"},
		{"request limit", reply{status: 429, contentType: textType, body: "Too many requests, please try again later."}, provesNothing, "429 Too many requests, please try again later."},
		{"panic", reply{status: 500, contentType: textType, body: "This request caused apiserver to panic."}, provesNothing, "500 This request caused apiserver to panic."},
		{"starting", status(503), provesNothing, "503 it is so"},
		{"time limit", status(504), provesNothing, "504 it is so"},
		{"aggregated API down", reply{status: 503, contentType: textType, body: "service unavailable\n"}, provesNothing, "503 service unavailable"},
		{"forbidden", status(403), refusedBefore, "403 it is so"},
		{"unknown user", status(401), refusedBefore, "401 it is so"},
		{"page", reply{status: 200, contentType: "text/html", body: "<html>"}, provesNothing, `200 with content type "text/html"`},
		{"other kind", jsonReply(map[string]any{"kind": "Widget"}), provesNothing, `200 with content type "application/json"`},
		{"redirect", reply{status: 302, contentType: "text/html"}, provesNothing, "302 a body of type text/html"},
		{"nothing", reply{status: 404}, provesNothing, "404"},
	}
	for _, test := range tests {
		s := newScript(t)
		s.set("/apis/example.com/v1/widgets", test.reply)
		a, err := s.client(Options{}).get(context.Background(), "/apis/example.com/v1/widgets", legacyAccept, "")
		if err != nil {
			t.Fatal(err)
		}
		if got, have := a.listVerdict(), a.describeList(); got != test.want || have != test.have {
			t.Errorf("%s: verdict %d, %q; want %d, %q", test.name, got, have, test.want, test.have)
		}
	}
}
