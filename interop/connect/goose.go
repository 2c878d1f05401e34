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
	a := Agent{
		Name: "goose", Title: "Goose", programs: []string{"goose"}, dir: config("goose"),
		files: gooseFiles, prove: proveGoose,
	}
	if a.program() == "" {
		a.partly = "the server as Goose will start it was proved, not Goose itself"
	}
	return a
}

type gooseServer struct {
	Enabled bool     `json:"enabled"`
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Command string   `json:"cmd"`
	Args    []string `json:"args"`
	Timeout int      `json:"timeout"` // seconds
}

// gooseOwn are extensions of Goose that run a shell, read files, or enable others.
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

// proveGoose omits the user's other extensions, which are other programs. Without Goose it proves the server.
func proveGoose(ctx context.Context, p *site) error {
	at := gooseExtension("toold")
	if p.program == "" {
		return p.proveServer(ctx, at)
	}
	list, err := gooseFiles(p.setup)
	if err != nil {
		return err
	}
	text := ""
	for _, name := range gooseOwn() {
		var own any
		ok, err := edit.Value(edit.YAML, string(p.after[0]), gooseExtension(name), &own)
		if err == nil && ok {
			text, _, err = edit.Apply(edit.YAML, text, []edit.Change{{Path: gooseExtension(name), Value: own}})
		}
		if err != nil {
			return err
		}
	}
	if text, _, err = edit.Apply(edit.YAML, text, list[0].Changes[:1]); err != nil {
		return err
	}
	if err := p.write(list[0].Path, text); err != nil {
		return err
	}
	command := func(url string) (env, args []string) {
		env = []string{
			"GOOSE_PROVIDER=anthropic", "GOOSE_MODEL=claude-sonnet-4-5", "ANTHROPIC_HOST=" + url, "ANTHROPIC_API_KEY=none",
			"GOOSE_MODE=auto", "GOOSE_DISABLE_KEYRING=1", "GOOSE_TELEMETRY_ENABLED=false",
		}
		return env, []string{"run", "--no-session", "-t", prompt}
	}
	shell := func(script string) call { return call{"toold__bash", fields{"command": script}} }
	touch := fields{"command": "touch " + downFile}
	return p.prove(p.agentPlays(ctx, command), shell, call{"shell", touch},
		call{"extensionmanager__manage_extensions", fields{"action": "enable", "extension_name": "developer"}},
		call{"shell", touch}, call{"developer__shell", touch})
}
