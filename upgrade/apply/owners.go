package apply

import (
	"encoding/json"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Conflict is a field that this changeover would change although a manager keeps it by server-side apply, and so will most
// likely put it back.
type Conflict struct {
	CRD     string
	Manager string
	Fields  []string // paths such as spec.versions
}

// Conflicts names the managers of Apply operations that own fields whose value differs between live and after. Managers
// of Update operations do not count: such a write was made once and claims nothing for the future. own is this
// command's field manager.
func Conflicts(live, after *unstructured.Unstructured, own string) []Conflict {
	var found []Conflict
	for _, entry := range live.GetManagedFields() {
		if entry.Operation != "Apply" || entry.Subresource != "" || entry.Manager == own || entry.FieldsV1 == nil {
			continue
		}
		var owned map[string]any
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		var fields []string
		changed(owned, live.Object, after.Object, nil, &fields)
		if len(fields) > 0 {
			sort.Strings(fields)
			found = append(found, Conflict{CRD: live.GetName(), Manager: entry.Manager, Fields: fields})
		}
	}
	return found
}

// changed walks a FieldsV1 tree beside both objects and collects the owned leaves that differ. Keys are "f:name" for a
// field, "." for the object itself and "k:", "v:" or "i:" for an item of a list; a list is compared as a whole.
func changed(owned map[string]any, live, after any, path []string, found *[]string) {
	children := 0
	for key, below := range owned {
		name, isField := strings.CutPrefix(key, "f:")
		liveFields, liveOK := live.(map[string]any)
		afterFields, _ := after.(map[string]any)
		if !isField || !liveOK {
			continue
		}
		children++
		deeper, _ := below.(map[string]any)
		changed(deeper, liveFields[name], afterFields[name], append(path[:len(path):len(path)], name), found)
	}
	if children == 0 && !reflect.DeepEqual(live, after) {
		*found = append(*found, strings.Join(path, "."))
	}
}
