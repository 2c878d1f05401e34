package codex

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestASandboxOfFewPathsIsKept(t *testing.T) {
	t.Parallel()
	box := func(entries, roots int) json.RawMessage {
		list := []string{`{"path":{"type":"special","value":{"kind":"root"}},"access":"read"}`}
		for len(list) < entries {
			list = append(list, `{"path":{"type":"special","value":{"kind":"project_roots"}},"access":"write"}`)
		}
		return json.RawMessage(`{"permissions":{"type":"managed","file_system":{"type":"restricted","entries":[` + strings.Join(list, ",") +
			`]},"network":"restricted"},"workspaceRoots":["file:///w"` + strings.Repeat(`,"file:///w"`, roots-1) + `]}`)
	}
	for _, c := range []struct {
		entries, roots int
		refused        bool
	}{{2, 1, false}, {maxPlaces, 1, false}, {2, maxPlaces / 2, false}, {maxPlaces + 1, 1, true}, {3, maxPlaces / 2, true}} {
		if _, e := limitOf(box(c.entries, c.roots)); (e != nil) != c.refused || e != nil && !strings.Contains(e.Message, "nothing was done") {
			t.Errorf("%+v: got %+v", c, e)
		}
	}
}
