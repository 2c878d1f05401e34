// Package gitconfig asks git for its configuration.
package gitconfig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// gitPrograms are the paths where systems install git. PATH is not searched, since a call may have written to its
// directories.
var gitPrograms = []string{"/usr/bin/git", "/bin/git", "/opt/homebrew/bin/git"}

// Alias returns the alias name in git's configuration for dir (git-config(1)), or "" if there is none. env is the
// environment of the command. Alias waits at most two seconds for git, which starts no other program for this.
func Alias(dir, name string, env map[string]string) (string, error) {
	found := slices.IndexFunc(gitPrograms, func(path string) bool { _, err := os.Stat(path); return err == nil })
	if found < 0 {
		if _, err := exec.LookPath("git"); err != nil {
			return "", nil // the script will find none either
		}
		return "", fmt.Errorf("git is in none of %s", strings.Join(gitPrograms, ", "))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, gitPrograms[found], "config", "--get", "alias."+name)
	cmd.Env = configEnv(env)
	for cmd.Dir = dir; cmd.Dir != "/"; cmd.Dir = filepath.Dir(cmd.Dir) {
		if _, err := os.Stat(cmd.Dir); err == nil {
			break // the script may create the others
		}
	}
	var out limitedBuffer
	cmd.Stdout = &out
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return "", nil // there is no such key
	}
	return strings.TrimSpace(string(out)), err
}

// maxAlias limits the length of an alias, in bytes, since calls may have written the configuration.
const maxAlias = 64 << 10

type limitedBuffer []byte

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(*b)+len(p) > maxAlias {
		return 0, errors.New("an alias is too long")
	}
	*b = append(*b, p...)
	return len(p), nil
}

// configEnv returns the variables that determine git's configuration.
func configEnv(env map[string]string) (list []string) {
	for name, value := range env {
		if name == "HOME" || name == "XDG_CONFIG_HOME" || strings.HasPrefix(name, "GIT_CONFIG_") {
			list = append(list, name+"="+value)
		}
	}
	return list
}
