package anchor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/toold/toold/internal/journal/seal"
)

// Git returns a Store that keeps each checkpoint as the message of an empty commit on refs/toold/anchors of a
// repository.
func Git(repository string) Store { return store{git(repository), "the git repository " + repository} }

type git string

const anchorRef = "refs/toold/anchors"

// gitOptions keep the repository's configuration from running programs: hooks, file system monitors, signing
// programs, and fetches of objects that a partial clone lacks.
var gitOptions = []string{
	"--no-pager", "--no-replace-objects",
	"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false",
	"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "protocol.allow=never", "-c", "credential.helper=",
	"-c", "core.fsync=committed", "-c", "core.fsyncMethod=fsync",
}

// gitEnv excludes the user's own configuration.
func gitEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none",
		"GIT_AUTHOR_NAME=toold", "GIT_AUTHOR_EMAIL=toold@localhost", "GIT_COMMITTER_NAME=toold", "GIT_COMMITTER_EMAIL=toold@localhost",
	}
}

func (repository git) run(ctx context.Context, in []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", slices.Concat(gitOptions, []string{"-C", string(repository)}, args)...)
	cmd.Env, cmd.Stdin = gitEnv(), bytes.NewReader(in)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// refuseHooks returns an error if the configuration sets a named hook, since newer versions of git run those despite
// core.hooksPath.
func (repository git) refuseHooks(ctx context.Context) error {
	if _, err := repository.run(ctx, nil, "rev-parse", "--git-dir"); err != nil {
		return err
	}
	hooks, err := repository.run(ctx, nil, "config", "--includes", "--name-only", "--get-regexp", `^hook\.`)
	if hooks != "" {
		name, _, _ := strings.Cut(hooks, "\n")
		return fmt.Errorf("the configuration of %s has git run programs (%s): use a repository that does not", repository, name)
	}
	const notFound = 1
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == notFound {
		return nil
	}
	return err
}

func (repository git) add(ctx context.Context, _ seal.Checkpoint, line []byte) error {
	if err := repository.refuseHooks(ctx); err != nil {
		return err
	}
	tree, err := repository.run(ctx, nil, "mktree")
	if err != nil {
		return err
	}
	parent, err := repository.run(ctx, nil, "for-each-ref", "--format=%(objectname)", anchorRef)
	if err != nil {
		return err
	}
	commit := []string{"commit-tree", tree}
	if parent != "" {
		commit = append(commit, "-p", parent)
	}
	commitID, err := repository.run(ctx, line, commit...)
	if err != nil {
		return err
	}
	if parent == "" {
		parent = strings.Repeat("0", len(commitID)) // the ref must not exist yet
	}
	_, err = repository.run(ctx, nil, "update-ref", "-m", "toold audit anchor", anchorRef, commitID, parent)
	return err
}

func (repository git) all(ctx context.Context) ([]seal.Checkpoint, error) {
	if err := repository.refuseHooks(ctx); err != nil {
		return nil, err
	}
	log, err := repository.run(ctx, nil, "rev-list", "--format=%B", anchorRef, "--")
	if err != nil {
		return nil, err
	}
	return parseLines(strings.NewReader(log), func(text []byte) bool { return len(text) == 0 || bytes.HasPrefix(text, []byte("commit ")) })
}
