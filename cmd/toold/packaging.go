package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/toold/toold/internal/config"
	"github.com/toold/toold/internal/doctor"
	"github.com/toold/toold/internal/service"
)

const packagedProgram = "/usr/bin/toold"

func packagingCommand() *cobra.Command {
	return &cobra.Command{
		Use: "packaging DIRECTORY", Short: "Write what a package installs beside the program", Args: one, Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error { return writePackaging(cmd.Root(), args[0]) },
	}
}

func writePackaging(root *cobra.Command, dir string) error {
	var bash, zsh, fish bytes.Buffer
	err := errors.Join(root.GenBashCompletionV2(&bash, true), root.GenZshCompletion(&zsh), root.GenFishCompletion(&fish, true))
	unit, socket := service.Templates(packagedProgram, config.DefaultListen)
	files := map[string]string{
		"completion.bash": bash.String(), "completion.zsh": zsh.String(), "completion.fish": fish.String(),
		"toold@.service": unit, "toold@.socket": socket,
		"apparmor": strings.Join(doctor.AppArmorProfile(packagedProgram), "\n") + "\n",
	}
	addManuals(files, root)
	for name, text := range files {
		name = filepath.Join(dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644))
	}
	return err
}
