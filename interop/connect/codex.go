package connect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toold/toold/internal/edit"
)

// codexAgent connects Codex with the daemon's exec-server (internal/codex).
func codexAgent() Agent {
	return Agent{
		Name: "codex", Title: "Codex", programs: []string{"codex"},
		Notes: []string{"environments.toml, which contains the token, becomes a link to a file in toold's state directory, where no call can read it"},
		dir:   Setup.codexHome, files: codexFiles, prove: proveCodex, warn: codexProfiles,
	}
}

func (s Setup) codexHome() string { return s.directory("CODEX_HOME", ".codex") }

func codexFiles(s Setup) ([]File, error) {
	hands := edit.Path{"environments", "[id=toold]"}
	at := func(key string, value any) edit.Change {
		return edit.Change{Path: append(append(edit.Path{}, hands...), key), Value: value}
	}
	return []File{
		{Path: filepath.Join(s.codexHome(), "environments.toml"), Format: edit.TOML, Mode: 0o600, Secret: true, Changes: []edit.Change{
			{Path: edit.Path{"default"}, Value: "toold"},
			{Path: edit.Path{"include_local"}, Value: false},
			at("url", s.URL+"/v1/codex"), at("auth_bearer_token", s.Token),
		}},
		{Path: filepath.Join(s.codexHome(), "config.toml"), Format: edit.TOML, Mode: 0o600, Changes: []edit.Change{
			{Path: edit.Path{"approval_policy"}, Value: "never"},
			{Path: edit.Path{"sandbox_mode"}, Value: "workspace-write"},
		}},
	}, nil
}

// codexProfiles lists profiles of the user that override the settings made by connect.
func codexProfiles(s Setup) (list []string) {
	own := []string{"approval_policy", "sandbox_mode", "default_permissions"}
	main := filepath.Join(s.codexHome(), "config.toml")
	if text, err := os.ReadFile(main); err == nil {
		for _, name := range edit.Tables(string(text), "profiles") {
			if set := codexSets(string(text), edit.Path{"profiles", name}, own); set != "" {
				list = append(list, fmt.Sprintf("the profile %s in %s sets %s itself, and Codex asks or confines by that: take it out there", name, main, set))
			}
		}
	}
	files, _ := filepath.Glob(filepath.Join(s.codexHome(), "*.config.toml")) // cannot fail: the pattern is valid
	for _, file := range files {
		text, err := os.ReadFile(file)
		if set := codexSets(string(text), nil, own); err == nil && set != "" {
			list = append(list, fmt.Sprintf("the profile %s sets %s itself, and Codex asks or confines by that: take it out there", file, set))
		}
	}
	return list
}

func codexSets(text string, at edit.Path, keys []string) string {
	var set []string
	for _, key := range keys {
		var v any
		if ok, err := edit.Value(edit.TOML, text, append(slices.Clone(at), key), &v); ok || err != nil { // or unreadable
			set = append(set, key)
		}
	}
	return strings.Join(set, ", ")
}

// codexKeeps lists the settings that a proof keeps. The others may start programs.
func codexKeeps() []string {
	return []string{"approval_policy", "sandbox_mode", "sandbox_workspace_write", "features", "shell_environment_policy", "profile", "profiles", "default_permissions", "permissions"}
}

func proveCodex(ctx context.Context, p *site) error {
	home := filepath.Join(p.dir, "codex")
	setup := p.setup
	setup.Getenv = func(name string) string { return map[string]string{"CODEX_HOME": home}[name] }
	list, err := codexFiles(setup)
	if err != nil {
		return err
	}
	for i, f := range list {
		text := string(p.after[i])
		if filepath.Base(f.Path) == "config.toml" {
			var err error
			if text, err = edit.Only(text, codexKeeps()); err != nil {
				return err
			}
		}
		text, _, err := edit.Apply(f.Format, text, f.Changes)
		if err != nil {
			return err
		}
		at := f.Path
		if f.Secret {
			at = filepath.Join(p.dir, "kept", filepath.Base(f.Path))
			err = errors.Join(os.Mkdir(home, 0o700), os.Symlink(at, f.Path))
		}
		if err := errors.Join(err, p.write(at, text)); err != nil {
			return err
		}
	}
	profile, err := codexProfile(string(p.after[1]))
	if err != nil {
		return err
	}
	command := func(url string) (env, args []string) {
		args = []string{
			"exec", "--skip-git-repo-check", "-c", `model_providers.proof={name="proof",base_url="` + url + `/v1",wire_api="responses"}`,
			"-c", "check_for_update_on_startup=false", "-c", "analytics.enabled=false",
		}
		for _, at := range profile {
			args = append(args, "-c", at+`model="scripted"`, "-c", at+`model_provider="proof"`)
		}
		return []string{"CODEX_HOME=" + home, "OPENAI_API_KEY=none"}, append(args, prompt)
	}
	shell := func(script string) call { return call{"exec_command", fields{"cmd": script}} }
	patch := "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: " + downFile + "\n+x\n*** End Patch\nEOF"
	return p.prove(p.agentPlays(ctx, command), shell, shell(patch))
}

func codexProfile(config string) ([]string, error) {
	var name string
	ok, err := edit.Value(edit.TOML, config, edit.Path{"profile"}, &name)
	if !ok || err != nil {
		return []string{""}, err
	}
	return []string{"", "profiles." + name + "."}, nil
}
