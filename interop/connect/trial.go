package connect

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"

	"github.com/toold/toold/internal/edit"
)

type trial struct {
	shell     string                   // name of the shell tool
	described bool                     // commands need a description
	own       func(file string) []call // calls of the agent's own tools that create a file
	keeps     map[string]func(any) any // settings of the user to keep
	home      string                   // variable for the settings directory; "": none
	more      map[string]any
	args      []string
	env       func(url string) []string // selects the model
}

// proveClient runs an agent with the change, and with those settings of the user that the trial keeps. Other settings
// may name other programs.
func (p *site) proveClient(ctx context.Context, t trial) error {
	setup, dir := p.setup, filepath.Join(p.dir, "settings")
	setup.Getenv = func(name string) string { return map[string]string{t.home: dir}[name] }
	list, err := p.agent.files(setup)
	if err != nil {
		return err
	}
	for i, f := range list {
		text := string(f.Content)
		if f.Format != "" {
			text, err = t.settings(f, string(p.after[i]))
		}
		if err == nil {
			err = p.write(f.Path, text)
		}
		if err != nil {
			return err
		}
	}
	command := func(url string) (env, args []string) {
		if env = t.env(url); t.home != "" {
			env = append(env, t.home+"="+dir)
		}
		return env, t.args
	}
	shell := func(script string) call {
		c := call{t.shell, fields{"command": script}}
		if t.described {
			c.Arguments["description"] = "a step of the proof"
		}
		return c
	}
	return p.prove(p.agentPlays(ctx, command), shell, t.own(filepath.Join(p.workspace, downFile))...)
}

// settings returns the settings to keep and the first change, which adds the server or the hook.
func (t trial) settings(f File, user string) (string, error) {
	var kept []edit.Change
	for name, value := range t.more {
		kept = append(kept, edit.Change{Path: edit.Path{name}, Value: value})
	}
	for name, part := range t.keeps {
		var own any
		ok, err := edit.Value(f.Format, user, edit.Path{name}, &own)
		if err != nil {
			return "", err
		}
		own = part(own)
		table, isTable := own.(map[string]any)
		if ok && !isTable {
			kept = append(kept, edit.Change{Path: edit.Path{name}, Value: own})
		}
		for _, key := range slices.Sorted(maps.Keys(table)) { // the order may matter
			kept = append(kept, edit.Change{Path: edit.Path{name, key}, Value: table[key]})
		}
	}
	text, _, err := edit.Apply(f.Format, "", append(kept, f.Changes[0]))
	return text, err
}

const prompt = "prove that calls run in toold"

func geminiTrial() trial {
	return trial{
		shell: "mcp_toold_bash",
		own: func(file string) []call {
			return []call{
				{Name: "run_shell_command", Arguments: fields{"command": "touch " + file, "description": "d"}},
				{Name: "write_file", Arguments: fields{"file_path": file, "content": "x"}},
			}
		},
		keeps: map[string]func(any) any{"tools": only("core", "exclude", "allowed")},
		more:  map[string]any{"security": fields{"auth": fields{"selectedType": "gemini-api-key"}}},
		args:  []string{"--approval-mode", "yolo", "-m", "gemini-2.5-flash", "-p", prompt},
		env: func(url string) []string {
			return []string{"GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_TELEMETRY_ENABLED=false"}
		},
	}
}

func opencodeTrial() trial {
	return trial{
		shell: "toold_bash",
		own: func(file string) []call {
			return []call{
				{Name: "bash", Arguments: fields{"command": "touch " + file, "description": "d"}},
				{Name: "write", Arguments: fields{"filePath": file, "content": "x"}},
			}
		},
		keeps: map[string]func(any) any{"permission": whole, "tools": whole, "agent": each(only("permission", "tools", "mode"))},
		more:  map[string]any{"autoupdate": false, "share": "disabled"},
		args:  []string{"run", "-m", "proof/scripted", prompt},
		env: func(url string) []string {
			settings, _ := json.Marshal(fields{
				"model": "proof/scripted", "small_model": "proof/scripted",
				"provider": fields{"proof": fields{
					"npm": "@ai-sdk/anthropic", "options": fields{"baseURL": url + "/v1", "apiKey": "none"}, "models": fields{"scripted": fields{"name": "scripted"}},
				}},
			})
			return []string{"OPENCODE_CONFIG_CONTENT=" + string(settings), "OPENCODE_DISABLE_PROJECT_CONFIG=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"}
		},
	}
}

// writing calls the tool of Claude Code that writes a file, which others have too.
func writing(file string) []call {
	return []call{{"Write", fields{"file_path": file, "content": "x"}}}
}

func whole(v any) any { return v }

func only(names ...string) func(any) any {
	return func(v any) any {
		kept := make(map[string]any)
		table, _ := v.(map[string]any)
		for _, name := range names {
			if value, ok := table[name]; ok {
				kept[name] = value
			}
		}
		return kept
	}
}

// each applies part to every table in a table.
func each(part func(any) any) func(any) any {
	return func(v any) any {
		table, _ := v.(map[string]any)
		table = maps.Clone(table)
		for name, value := range table {
			table[name] = part(value)
		}
		return table
	}
}
