package verify

import (
	"reflect"
	"testing"
)

func TestRestarting(t *testing.T) {
	before := map[string]int32{"ns/a/c": 1, "ns/b/c": 0, "ns/gone/c": 4}
	after := map[string]int32{"ns/a/c": 1, "ns/b/c": 2, "ns/new/c": 1}
	want := []string{"ns/b/c (2 times)", "ns/new/c (1 times)"}
	if got := Restarting(before, after); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
