package connect

import (
	"path/filepath"

	"github.com/toold/toold/internal/edit"
	"github.com/toold/toold/interop/claude"
)

// lettaAgent connects Letta Code with a hook that decides on each tool use. Package interop/letta adds toold's tools.
func lettaAgent() Agent {
	return Agent{
		Name: "letta", Title: "Letta Code", programs: []string{"letta"}, dir: home(".letta"),
		Notes: []string{"the hook decides and records; what it allows runs unconfined in Letta Code. toold's tools come with `toold connect letta --url URL`, for conversations of a server"},
		files: lettaFiles,
		trial: lettaTrial,
	}
}

func lettaFiles(s Setup) ([]File, error) {
	hook := fields{"type": "command", "command": claude.Line(s.command("letta")) + " hook letta", "timeout": 60_000}
	return []File{{Path: filepath.Join(home(".letta")(s), "settings.json"), Format: edit.JSON, Mode: 0o600, Changes: []edit.Change{
		{Path: hookPath(), Value: fields{"matcher": "*", "hooks": []any{hook}}, Include: true},
	}}}, nil
}

func lettaTrial() trial {
	return trial{
		shell: "Bash", described: true, own: writing,
		keeps: map[string]func(any) any{"hooks": only("disabled")},
		args:  []string{"-p", prompt, "--backend", "local", "--new-agent", "--model", "lmstudio/scripted", "--yolo"},
		env: func(url string) []string {
			return []string{"LETTA_CODE_TELEM=0", "DISABLE_AUTOUPDATER=1", "LMSTUDIO_BASE_URL=" + url + "/v1"}
		},
	}
}
