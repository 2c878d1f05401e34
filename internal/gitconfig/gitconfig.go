// Package gitconfig asks git for its configuration.
package gitconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// gitPrograms are where systems install git. PATH is not searched: a call may have written there.
var gitPrograms = [...]string{"/usr/bin/git", "/bin/git", "/opt/homebrew/bin/git"}

// Alias returns an alias of git's configuration (git-config(1)) in dir, "" if there is none. env has the
// variables of the command. It waits at most two seconds for git, which starts nothing to read its
// configuration.
func Alias(dir, name string, env map[string]string) (string, error) {
	program := ""
	for _, path := range gitPrograms {
		if _, err := os.Stat(path); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		if _, err := exec.LookPath("git"); err != nil {
			return "", nil // the script will find none either
		}
		return "", fmt.Errorf("git is in none of %s", strings.Join(gitPrograms[:], ", "))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "config", "--get", "alias."+name)
	cmd.Env = configEnv(env)
	for cmd.Dir = dir; cmd.Dir != "/"; cmd.Dir = filepath.Dir(cmd.Dir) {
		if _, err := os.Stat(cmd.Dir); err == nil {
			break // the script may make the others
		}
	}
	var out limitedBuffer
	cmd.Stdout = &out
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return "", nil // there is no such key
	}
	return strings.TrimSpace(string(out)), err
}

// maxAlias bounds an alias, in bytes: calls may have written the configuration.
const maxAlias = 64 << 10

type limitedBuffer []byte

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(*b)+len(p) > maxAlias {
		return 0, errors.New("an alias is too long")
	}
	*b = append(*b, p...)
	return len(p), nil
}

// configEnv returns the variables that choose git's configuration.
func configEnv(env map[string]string) (list []string) {
	for name, value := range env {
		if name == "HOME" || name == "XDG_CONFIG_HOME" || strings.HasPrefix(name, "GIT_CONFIG_") {
			list = append(list, name+"="+value)
		}
	}
	return list
}
