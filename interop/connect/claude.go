package connect

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"github.com/toold/toold/internal/edit"
	"github.com/toold/toold/interop/claude"
)

// claudeAgent connects Claude Code by a plugin, which answers calls, and a hook, which decides all others.
func claudeAgent() Agent {
	return Agent{
		Name: "claude", Title: "Claude Code", programs: []string{"claude"},
		dir: Setup.claudeHome, files: claudeFiles, prove: proveClaude,
	}
}

func (s Setup) claudeHome() string { return s.directory("CLAUDE_CONFIG_DIR", ".claude") }

func claudeFiles(s Setup) ([]File, error) {
	texts, err := claude.Files(s.command("claude")...)
	if err != nil {
		return nil, err
	}
	var list []File
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		list = append(list, File{Path: filepath.Join(s.claudeHome(), "skills", "toold", filepath.FromSlash(name)), Content: texts[name], Mode: 0o600})
	}
	return append(list, File{Path: s.claudeSettings(), Format: edit.JSON, Mode: 0o600, Changes: []edit.Change{
		{Path: edit.Path{"hooks", "PreToolUse"}, Value: claude.Setting(s.command("claude")...), Include: true},
	}}), nil
}

func (s Setup) claudeSettings() string { return filepath.Join(s.claudeHome(), "settings.json") }

// proveClaude keeps the user's permissions, and omits the user's other programs.
func proveClaude(ctx context.Context, p *site) error {
	config := filepath.Join(p.dir, "claude")
	setup := p.setup
	setup.Getenv = func(name string) string { return map[string]string{"CLAUDE_CONFIG_DIR": config}[name] }
	list, err := claudeFiles(setup)
	if err != nil {
		return err
	}
	settings, err := claudePermissions(p.user)
	if err != nil {
		return err
	}
	for _, f := range list {
		text := string(f.Content)
		if f.Format != "" {
			if text, _, err = edit.Apply(f.Format, settings, f.Changes); err != nil {
				return err
			}
		}
		if err := p.write(f.Path, text); err != nil {
			return err
		}
	}
	command := func(url string) (env, args []string) {
		env = []string{
			"CLAUDE_CONFIG_DIR=" + config, "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=none",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
		}
		return env, []string{"-p", prompt, "--model", "claude-sonnet-4-5"}
	}
	shell := func(script string) call {
		return call{"Bash", fields{"command": script, "description": "a step of the proof"}}
	}
	write := call{"Write", fields{"file_path": filepath.Join(p.workspace, downFile), "content": "x"}}
	return p.prove(p.agentPlays(ctx, command), shell, write)
}

func claudePermissions(s Setup) (string, error) {
	step, err := plan(File{Path: s.claudeSettings(), Format: edit.JSON}, "")
	if err != nil {
		return "", err
	}
	var permissions any
	if ok, err := edit.Value(edit.JSON, string(step.before), edit.Path{"permissions"}, &permissions); !ok || err != nil {
		return "{}", err
	}
	text, _, err := edit.Apply(edit.JSON, "", []edit.Change{{Path: edit.Path{"permissions"}, Value: permissions}})
	return text, err
}
