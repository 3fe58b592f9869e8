package probe

import (
	"net/http"
	"strings"
	"sync/atomic"
)

// counter counts the requests of every mapper of a program. It sits below the mappers, so that all peers are counted
// alike, whatever they do above it.
type counter struct {
	next             http.RoundTripper
	discovery, other atomic.Int64
}

func (c *counter) RoundTrip(req *http.Request) (*http.Response, error) {
	if isDiscovery(req.URL.Path) {
		c.discovery.Add(1)
	} else {
		c.other.Add(1)
	}
	return c.next.RoundTrip(req)
}

func (c *counter) requests() Requests {
	return Requests{Discovery: c.discovery.Load(), Other: c.other.Load()}
}

// isDiscovery tells the documents that say what is served (/api, /api/v1, /apis, /apis/g, /apis/g/v) from resources.
func isDiscovery(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch parts[0] {
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	}
	return false
}
