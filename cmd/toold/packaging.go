package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
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

func addManuals(files map[string]string, cmd *cobra.Command) {
	files["man/"+manualName(cmd)+".1"] = manual(cmd)
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			addManuals(files, below)
		}
	}
}

// manual returns the man page of a command (man(7)).
func manual(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	name := manualName(cmd)
	var b strings.Builder
	section := func(title, text string) {
		if text = strings.TrimRight(text, "\n"); text != "" {
			fmt.Fprintf(&b, ".SH %s\n%s\n", title, text)
		}
	}
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"toold %s\"\n", roff(strings.ToUpper(name)), version)
	section("NAME", roff(name)+` \- `+roff(cmd.Short))
	section("SYNOPSIS", verbatim(cmd.UseLine()))
	section("DESCRIPTION", verbatim(cmp.Or(cmd.Long, cmd.Short+".")))
	var commands, also strings.Builder
	if cmd.HasParent() {
		fmt.Fprintf(&also, ".BR %s (1)\n", roff(manualName(cmd.Parent())))
	}
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			fmt.Fprintf(&commands, ".TP\n.B %s\n%s\n", roff(below.Name()), roff(below.Short))
			fmt.Fprintf(&also, ".BR %s (1)\n", roff(manualName(below)))
		}
	}
	section("COMMANDS", commands.String())
	const width = 72 // 80 columns without margins
	section("OPTIONS", verbatim(cmd.LocalFlags().FlagUsagesWrapped(width)))
	section("OPTIONS OF ALL COMMANDS", verbatim(cmd.InheritedFlags().FlagUsagesWrapped(width)))
	section("SEE ALSO", also.String())
	return b.String()
}

func manualName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func verbatim(text string) string {
	if text == "" {
		return ""
	}
	return ".nf\n" + roff(strings.TrimRight(text, "\n")) + "\n.fi"
}

// roff escapes characters that are special in roff.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
