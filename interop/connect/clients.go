package connect

import (
	"context"
	"path/filepath"

	"github.com/toold/toold/internal/edit"
)

func clients() []Agent {
	list := []Agent{
		client("gemini", "Gemini CLI", []string{"gemini"}, home(".gemini"), "settings.json", edit.Path{"mcpServers", "toold"}, server{Trust: true},
			include("tools", "exclude", "run_shell_command", "write_file", "replace")...).triedBy(geminiTrial),
		client("vscode", "VS Code", []string{"code"}, config("Code", "User"), "mcp.json", edit.Path{"servers", "toold"}, server{Type: "stdio"}),
		client("cursor", "Cursor", []string{"cursor", "cursor-agent"}, home(".cursor"), "mcp.json", edit.Path{"mcpServers", "toold"}, server{}),
		client("zed", "Zed", []string{"zed", "zeditor"}, config("zed"), "settings.json", edit.Path{"context_servers", "toold"}, server{},
			edit.Change{Path: edit.Path{"agent", "profiles", "write", "tools", "terminal"}, Value: false}),
		client("opencode", "opencode", []string{"opencode"}, config("opencode"), "opencode.json", edit.Path{"mcp", "toold"}, server{Type: "local", Enabled: true},
			edit.Change{Path: edit.Path{"permission", "bash"}, Value: "deny"}, edit.Change{Path: edit.Path{"permission", "edit"}, Value: "deny"}).triedBy(opencodeTrial),
		client("crush", "Crush", []string{"crush"}, config("crush"), "crush.json", edit.Path{"mcp", "toold"}, server{Type: "stdio"},
			include("options", "disabled_tools", "bash", "edit", "write")...),
	}
	list[0].Notes = append(list[0].Notes, "Gemini CLI leaves out toold's write_file with its own: apply_patch and bash make files")
	list[1].Notes = append(list[1].Notes, "VS Code has no setting that takes its own terminal and edit tools away: leave them out of the agent's tools in its picker")
	list[2].Notes = append(list[2].Notes, "Cursor has no setting that takes its own shell away: it can go around toold")
	return append(list, gooseAgent(), lettaAgent())
}

func home(name string) func(Setup) string {
	return func(s Setup) string { return filepath.Join(s.Home, name) }
}

func config(names ...string) func(Setup) string {
	return func(s Setup) string { return s.config(names...) }
}

func include(table, list string, words ...string) (changes []edit.Change) {
	for _, w := range words {
		changes = append(changes, edit.Change{Path: edit.Path{table, list}, Value: w, Include: true})
	}
	return changes
}

func client(name, title string, programs []string, dir func(Setup) string, file string, at edit.Path, like server, off ...edit.Change) Agent {
	return Agent{
		Name: name, Title: title, programs: programs, dir: dir,
		partly: "the server as " + title + " will start it was proved, not " + title + " itself",
		files: func(s Setup) ([]File, error) {
			server := edit.Change{Path: at, Value: like.starting(append(s.command(name), "mcp"))}
			return []File{{Path: filepath.Join(dir(s), file), Format: edit.JSON, Mode: 0o600, Changes: append([]edit.Change{server}, off...)}}, nil
		},
		prove: func(ctx context.Context, p *site) error { return p.proveServer(ctx, at) },
	}
}

func (a Agent) triedBy(trial func() trial) Agent {
	a.trial = trial
	return a
}

type server struct {
	Type    string   `json:"type,omitempty"`
	Command any      `json:"command"`
	Args    []string `json:"args,omitempty"`
	Trust   bool     `json:"trust,omitempty"` // toold asks for approval, not the client
	Enabled bool     `json:"enabled,omitempty"`
}

func (v server) starting(command []string) server {
	if v.Type == "local" { // opencode expects one list
		v.Command = command
	} else {
		v.Command, v.Args = command[0], command[1:]
	}
	return v
}
