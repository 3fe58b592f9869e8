package facts

import "testing"

// forbidden pins that authorization comes before routing. So a 403 says nothing about what is served, and whoever wants to see a plain 404 needs the
// right to list.
func forbidden(t *testing.T, p *plane) {
	const group = "forbidden.facts.example.com"
	p.widgetsAt(t, group, "v1* v1beta1-")
	nobody := newWire(t, p.ConfigAs("nobody"))
	stranger := p.Config()
	stranger.BearerToken = "unknown"

	t.Run("without rights, served and un-served look alike: a 403 Status", func(t *testing.T) {
		for _, path := range []string{
			widgets(group, "v1"), widgets(group, "v1beta1"), widgets(group, "v7"),
			widgets("unknown.facts.example.com", "v1"), "/apis/" + group + "/v1/gadgets", widgets(group, "v1") + "/absent",
		} {
			wantStatus(t, nobody.get(t, path), 403, "Forbidden", `User "nobody" cannot`)
		}
	})
	t.Run("without a valid token everything is a 401 Status", func(t *testing.T) {
		w := newWire(t, stranger)
		wantStatus(t, w.get(t, widgets(group, "v1beta1")), 401, "Unauthorized")
		wantStatus(t, w.get(t, "/apis"), 401, "Unauthorized")
	})
	t.Run("discovery is open to every user", func(t *testing.T) {
		if a := nobody.send(t, request{Path: "/apis", Accept: aggregated}); a.Status != 200 || a.ContentType != aggregated {
			t.Errorf("aggregated: %v", a)
		}
		if a := nobody.get(t, "/apis/"+group+"/v1"); a.Status != 200 {
			t.Errorf("legacy: %v", a)
		}
		wantPlain404(t, nobody.get(t, "/apis/"+group+"/v1beta1"))
	})
}
