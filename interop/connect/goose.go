package connect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/toold/toold/internal/edit"
)

func gooseAgent() Agent {
	return Agent{
		Name: "goose", Title: "Goose", programs: []string{"goose"}, dir: config("goose"),
		partly: "the server as Goose will start it was proved, not Goose itself", files: gooseFiles,
		prove: func(ctx context.Context, p *site) error { return p.proveServer(ctx, gooseExtension("toold")) },
		trial: gooseTrial,
	}
}

func gooseTrial() trial {
	return trial{
		shell: "toold__bash",
		own: func(string) []call {
			touch := fields{"command": "touch " + downFile}
			return []call{
				{"shell", touch},
				{"extensionmanager__manage_extensions", fields{"action": "enable", "extension_name": "developer"}},
				{"shell", touch},
				{"developer__shell", touch},
			}
		},
		keeps: map[string]func(any) any{"extensions": only(gooseOwn()...)},
		args:  []string{"run", "--no-session", "-t", prompt},
		env: func(url string) []string {
			return []string{
				"GOOSE_PROVIDER=anthropic", "GOOSE_MODEL=claude-sonnet-4-5", "ANTHROPIC_HOST=" + url, "ANTHROPIC_API_KEY=none",
				"GOOSE_MODE=auto", "GOOSE_DISABLE_KEYRING=1", "GOOSE_TELEMETRY_ENABLED=false",
			}
		},
	}
}

type gooseServer struct {
	Enabled bool     `json:"enabled"`
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Command string   `json:"cmd"`
	Args    []string `json:"args"`
	Timeout int      `json:"timeout"` // in seconds
}

// gooseOwn lists extensions of Goose that run a shell, read files, or enable other extensions.
func gooseOwn() []string { return []string{"developer", "extensionmanager", "summon", "analyze"} }

func gooseExtension(name string) edit.Path { return edit.Path{"extensions", name} }

func gooseFiles(s Setup) ([]File, error) {
	f := File{Path: filepath.Join(config("goose")(s), "config.yaml"), Format: edit.YAML, Mode: 0o600}
	command := append(s.command("goose"), "mcp")
	f.Changes = []edit.Change{{Path: gooseExtension("toold"), Value: gooseServer{true, "stdio", "toold", command[0], command[1:], 300}}}
	text, err := os.ReadFile(f.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read %s: %w", f.Path, err)
	}
	for _, name := range gooseOwn() {
		at := gooseExtension(name)
		var there any
		ok, err := edit.Value(edit.YAML, string(text), at, &there)
		if err != nil {
			return nil, fmt.Errorf("cannot change %s: %w; set this by hand: see docs/connect.md", f.Path, err)
		}
		set := func(key string, value any) {
			f.Changes = append(f.Changes, edit.Change{Path: append(gooseExtension(name), key), Value: value})
		}
		set("enabled", false)
		if !ok {
			set("type", "platform")
			set("name", name)
		}
	}
	return []File{f}, nil
}
