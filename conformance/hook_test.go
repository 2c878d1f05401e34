//go:build linux

package conformance

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/interop/claude"
)

// playHooked has the hook alone decide what an agent does: it fails closed.
func playHooked(t *testing.T, a stock) {
	t.Helper()
	r := a.base()
	r.person(t)
	touch, _ := a.call(deed{run: "touch made"})
	var list []move
	for _, script := range []string{"echo by itself", "touch made; git push origin main", "mkdir yes && echo it is there", "cat .env"} {
		do, _ := a.call(deed{run: script})
		list = append(list, do)
	}
	r.write(t, ".env", "SECRET\n")
	r.model.script(list, nil)
	a.play(t, nil)
	r.model.expect(t, []string{"by itself"}, []string{"no-push", "use a branch"}, []string{"it is there"}, []string{"secrets"})
	id, _ := r.model.saw(false, 2)
	r.recorded(t, id)
	if err := r.daemon.stop(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.model.script([]move{touch}, nil)
	a.play(t, nil)
	r.model.expect(t, []string{"no daemon"})
	r.nothingMade()
}

// Without the plugin the hook alone decides.
func TestTheHookHoldsStockClaude(t *testing.T) {
	t.Parallel()
	c := newClaude(t)
	c.plugin = false
	c.hook()
	playHooked(t, c)
	c.toold = []string{filepath.Join(c.home, "missing")}
	c.hook()
	create, _ := c.call(deed{edit: &edit{"made", "", "x"}})
	c.model.script([]move{claudeBash("touch made"), create}, nil)
	c.play(t, nil)
	c.model.expect(t, []string{"onFailure"}, []string{"onFailure"})
	c.nothingMade()
}

// hook has Claude Code start the hook of toold, as docs/connect.md says.
func (c *claudeCode) hook() {
	c.hooks = map[string]any{"PreToolUse": []any{claude.Setting(c.toold...)}}
}

// What the plugin leaves to Claude Code is decided once, by plugin and hook together.
func TestStockClaudeShowsPicturesAndEditsNotebooks(t *testing.T) {
	t.Parallel()
	c := newClaude(t)
	c.hook()
	const picture = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
		"\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"
	const document = "%PDF-1.1\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
	c.write(t, "x.png", picture)
	c.write(t, "x.pdf", document)
	c.write(t, "n.ipynb", `{"cells":[{"cell_type":"code","id":"c1","source":["old"],"metadata":{},"outputs":[],"execution_count":null}],"metadata":{},"nbformat":4,"nbformat_minor":5}`)
	read := func(name string) move { return move{"Read", map[string]any{"file_path": c.file(name)}} }
	change := func(name string) move {
		return move{"NotebookEdit", map[string]any{"notebook_path": c.file(name), "cell_id": "c1", "new_source": "changed"}}
	}
	c.model.script([]move{
		read("x.png"), read("x.pdf"), read("n.ipynb"), {"ToolSearch", map[string]any{"query": "select:NotebookEdit"}}, change("n.ipynb"),
	}, nil)
	c.play(t, nil)
	c.model.expect(t, []string{"image"}, []string{"PDF"}, []string{"old"}, nil, []string{"c1"})
	if text, err := os.ReadFile(c.file("n.ipynb")); !strings.Contains(string(text), "changed") {
		t.Errorf("the notebook is %s, %v", text, err)
	}
}

// What the hook prints for yes is no yes of its own to Codex, and "ask" would be one.
func TestTheHookHoldsStockCodex(t *testing.T) {
	t.Parallel()
	c := newCodex(t)
	c.local = true
	line := strings.Join(append(c.command(), "hook", "codex"), " ")
	var err error
	c.hooks, err = json.Marshal(map[string]any{"hooks": map[string]any{"PreToolUse": []any{map[string]any{
		"matcher": ".*", "hooks": []any{map[string]any{"type": "command", "command": line, "timeout": 600}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	playHooked(t, c)
}
