package connect

import (
	"context"
	"path/filepath"

	"github.com/toold/toold/internal/edit"
)

// claudeAgent offers the tools of toold to Claude Code and takes its own shell away.
func claudeAgent() Agent {
	return Agent{
		Name: "claude", Title: "Claude Code", programs: []string{"claude"},
		places: func(s Setup) []string { return []string{s.directory("CLAUDE_CONFIG_DIR", ".claude")} },
		files:  claudeFiles, prove: proveClaude,
		Notes: []string{"Claude Code gets the tools of toold as an MCP server, and its own shell is switched off; its own file tools go on working outside of toold"},
	}
}

// server is an MCP server on standard input and output, as most clients have it.
func (s Setup) server(name string) []string {
	return append(append([]string{s.Program}, s.Flags...), "mcp", "--token", name)
}

func claudeFiles(s Setup) []File {
	settings, servers := filepath.Join(s.directory("CLAUDE_CONFIG_DIR", ".claude"), "settings.json"), filepath.Join(s.Home, ".claude.json")
	if dir := s.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		servers = filepath.Join(dir, ".claude.json")
	}
	return []File{
		{Path: servers, Format: edit.JSON, Mode: 0o600, Changes: []edit.Change{
			{Path: edit.Path{"mcpServers", "toold"}, Value: typedServer(s.server("claude"))},
		}},
		{Path: settings, Format: edit.JSON, Mode: 0o600, Changes: []edit.Change{
			{Path: edit.Path{"permissions", "allow"}, Value: "mcp__toold", Include: true},
			{Path: edit.Path{"permissions", "deny"}, Value: "Bash", Include: true},
		}},
	}
}

// proveClaude runs Claude Code with the permissions of the user's settings as they will be.
// Hooks, plugins and other servers of the user are left out: they are other programs.
func proveClaude(ctx context.Context, p *site) error {
	config := filepath.Join(p.dir, "claude")
	setup := p.setup
	setup.Getenv = func(name string) string { return map[string]string{"CLAUDE_CONFIG_DIR": config}[name] }
	for i, f := range claudeFiles(setup) {
		text := "{}"
		var permissions any
		if ok, err := edit.Value(edit.JSON, string(p.after[i]), edit.Path{"permissions"}, &permissions); err != nil {
			return err
		} else if ok {
			if text, _, err = edit.Apply(edit.JSON, text, []edit.Change{{Path: edit.Path{"permissions"}, Value: permissions}}); err != nil {
				return err
			}
		}
		text, _, err := edit.Apply(f.Format, text, f.Changes)
		if err != nil {
			return err
		}
		if err := p.write(f.Path, text); err != nil {
			return err
		}
	}
	run := func(m *model) (string, error) {
		return p.run(ctx, []string{
			"CLAUDE_CONFIG_DIR=" + config, "ANTHROPIC_BASE_URL=" + m.url, "ANTHROPIC_API_KEY=none",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "IS_SANDBOX=1",
		}, p.program, "-p", "prove that calls run in toold", "--model", "claude-sonnet-4-5")
	}
	shell := func(script string) call {
		return call{Name: "mcp__toold__bash", Arguments: map[string]any{"command": script}}
	}
	return p.prove(run, shell, func() []call {
		return []call{shell("touch " + downFile), {Name: "Bash", Arguments: map[string]any{"command": "touch " + downFile, "description": "x"}}}
	})
}
