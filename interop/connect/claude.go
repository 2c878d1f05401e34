package connect

import (
	"maps"
	"path/filepath"
	"slices"

	"github.com/toold/toold/internal/edit"
	"github.com/toold/toold/interop/claude"
)

// claudeAgent connects Claude Code with a plugin, which answers calls, and a hook, which decides on the others and
// works without the plugin.
func claudeAgent() Agent {
	return Agent{
		Name: "claude", Title: "Claude Code", programs: []string{"claude"},
		dir: Setup.claudeHome, files: claudeFiles,
		trial: claudeTrial,
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
	return append(list, File{Path: filepath.Join(s.claudeHome(), "settings.json"), Format: edit.JSON, Mode: 0o600, Changes: []edit.Change{
		{Path: hookPath(), Value: claude.Setting(s.command("claude")...), Include: true},
	}}), nil
}

func claudeTrial() trial {
	return trial{
		shell: "Bash", described: true, own: writing, home: "CLAUDE_CONFIG_DIR",
		keeps: map[string]func(any) any{"permissions": whole},
		args:  []string{"-p", prompt, "--model", "claude-sonnet-4-5"},
		env: func(url string) []string {
			return []string{
				"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=none",
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1",
			}
		},
	}
}
