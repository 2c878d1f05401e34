package message

import (
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/toold/toold/internal/must"
)

func protocolDocument(t *testing.T) string {
	t.Helper()
	text := must.Get(os.ReadFile("../docs/protocol.md"))(t)
	return string(text)
}

func TestTheFramesOfTheDocumentFitTheSchema(t *testing.T) {
	t.Parallel()
	sides := []*jsonschema.Resolved{frameSchema(t, "client_frame"), frameSchema(t, "daemon_frame")}
	checked := 0
	for i, block := range strings.Split(protocolDocument(t), "```json\n") {
		if i == 0 {
			continue
		}
		frames, _, _ := strings.Cut(block, "```")
		for frame := range strings.Lines(frames) {
			checked++
			asClient, asDaemon := validate(t, sides[0], []byte(frame)), validate(t, sides[1], []byte(frame))
			if asClient != nil && asDaemon != nil {
				t.Errorf("%s%v\n%v", frame, asClient, asDaemon)
			}
		}
	}
	if checked < 25 {
		t.Errorf("only %d frames were checked", checked)
	}
}

func TestTheDocumentNamesEveryFrameAndError(t *testing.T) {
	t.Parallel()
	text := protocolDocument(t)
	for _, f := range append(clientFrames(), daemonFrames()...) {
		if !strings.Contains(text, `"`+f.key+`":"`+f.value+`"`) {
			t.Errorf("docs/protocol.md shows no %s", f.value)
		}
	}
	for _, e := range errorTypes() {
		if !strings.Contains(text, "| `"+string(e)+"` |") {
			t.Errorf("docs/protocol.md does not explain %s", e)
		}
	}
}
