package converge

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestParseAddressesRefusesTwins(t *testing.T) {
	for _, list := range [][]string{
		{"https://a:1", "https://a:1"},
		{"x=https://a:1", "x=https://b:1"},
		{"x=https://a:1", "y=https://a:1"},
	} {
		if got, err := ParseAddresses(list); err == nil || !strings.Contains(err.Error(), "named already") {
			t.Errorf("%q: %v, %v; want an error", list, got, err)
		}
	}
	if got, err := ParseAddresses([]string{"x=https://a:1", "https://b:1"}); err != nil || len(got) != 2 {
		t.Errorf("two servers: %v, %v", got, err)
	}
}

// TestCheckNamesEveryServerThatFails: nobody listens on port 1.
func TestCheckNamesEveryServerThatFails(t *testing.T) {
	named := []Address{{Name: "left", URL: "https://127.0.0.1:1"}, {Name: "right", URL: "http://127.0.0.1:1"}}
	s, err := FindServers(t.Context(), &rest.Config{Host: "https://127.0.0.1:2"}, named)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "api server left: ") || !strings.Contains(err.Error(), "\napi server right: ") {
		t.Errorf("got %v; want both servers named", err)
	}
}
