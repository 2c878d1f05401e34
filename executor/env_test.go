package executor_test

import (
	"os/user"
	"slices"
	"strings"
	"testing"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
)

func TestOnlyListedVariablesPass(t *testing.T) {
	t.Parallel()
	got := executor.BaseEnv(executor.EnvOptions{
		From: []string{
			"PATH=/usr/bin", "HOME=/home/u", "LC_TIME=de_DE.UTF-8", "LANG=fr_FR.UTF-8", "TZ=UTC", "AWS_SECRET_ACCESS_KEY=x",
			"GOPATH=/go", "GOFLAGS=-v", "NPM_TOKEN=x", "EMPTY=", "broken", "=C:=x", "USER=u", "LOGNAME=u",
			"NO_COLOR=1", "VISUAL=vi", "SHELL=/bin/zsh",
		},
		Pass: []string{"GO*", "EMPTY"},
		Set:  map[string]string{"CI": "1", "TERM": "dumb", "GOFLAGS": "-x"},
	})
	want := []string{
		"CI=1", "DEBIAN_FRONTEND=noninteractive", "EDITOR=false", "EMPTY=", "GCM_INTERACTIVE=never", "GH_PROMPT_DISABLED=1",
		"GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=core.fsmonitor", "GIT_CONFIG_KEY_1=core.pager", "GIT_CONFIG_KEY_2=safe.bareRepository",
		"GIT_CONFIG_VALUE_0=false", "GIT_CONFIG_VALUE_1=cat", "GIT_CONFIG_VALUE_2=explicit",
		"GIT_EDITOR=false", "GIT_MERGE_AUTOEDIT=no", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GOFLAGS=-x", "GOPATH=/go",
		"HOME=/home/u", "LANG=fr_FR.UTF-8", "LC_TIME=de_DE.UTF-8", "LOGNAME=u", "MANPAGER=cat", "NO_COLOR=1", "PAGER=cat",
		"PATH=/usr/bin", "SHELL=/bin/zsh", "SSH_ASKPASS_REQUIRE=never", "TERM=dumb", "TMPDIR=/tmp", "TZ=UTC", "USER=u", "VISUAL=false",
	}
	must.Match(t, want, got)
}

func TestScriptsAreReadAsUnicode(t *testing.T) {
	t.Parallel()
	for _, entry := range []string{"LC_ALL=zh_CN.GBK", "LANG=zh_TW", "LC_CTYPE=ja_JP.SJIS", "LC_ALL=japanese"} {
		env := executor.BaseEnv(executor.EnvOptions{From: []string{entry}})
		if slices.Contains(env, entry) || !slices.Contains(env, "LANG=C.UTF-8") {
			t.Errorf("with %s a shell would take `\u4e2d\\;` for the end of a command: %q", entry, env)
		}
		name, value, _ := strings.Cut(entry, "=")
		if env := executor.BaseEnv(executor.EnvOptions{From: []string{entry}, Set: map[string]string{name: value}}); !slices.Contains(env, entry) {
			t.Errorf("%s is set, and is not there: %q", entry, env)
		}
	}
	for _, entry := range []string{"LC_ALL=zh_CN.UTF-8", "LANG=de_DE.utf8", "LC_CTYPE=C", "LC_ALL=sr_RS.UTF-8@latin", "LC_TIME=zh_TW"} {
		if env := executor.BaseEnv(executor.EnvOptions{From: []string{entry}}); !slices.Contains(env, entry) {
			t.Errorf("%s does not pass: %q", entry, env)
		}
	}
}

func TestTheUserIsNamedWhereTheDaemonWasNotTold(t *testing.T) {
	t.Parallel()
	u, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	env := executor.BaseEnv(executor.EnvOptions{From: []string{"LOGNAME=other"}})
	if !slices.Contains(env, "USER="+u.Username) || !slices.Contains(env, "LOGNAME=other") {
		t.Errorf("got %q", env)
	}
	hasShell := func(v string) bool { return strings.HasPrefix(v, "SHELL=/") && strings.HasSuffix(v, "/bash") }
	if !slices.ContainsFunc(env, hasShell) {
		t.Errorf("no shell: %q", env)
	}
}

func TestDangerousVariablesNeverPass(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"BASH_ENV", "ENV", "BASH_FUNC_ls%%", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "GIT_DIR",
		"GIT_WORK_TREE", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_PARAMETERS", "GIT_SSH_COMMAND", "GIT_EXEC_PATH",
		"TOOLD_CALL", "PROMPT_COMMAND", "CDPATH", "GLOBIGNORE", "SHELLOPTS", "BASHOPTS", "IFS", "PS4",
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AZURE_CLIENT_SECRET",
		"GOOGLE_APPLICATION_CREDENTIALS", "VAULT_TOKEN",
	} {
		for how, o := range map[string]executor.EnvOptions{
			"passed by name": {From: []string{name + "=x"}, Pass: []string{name}},
			"passed by *":    {From: []string{name + "=x"}, Pass: []string{"*"}},
			"set":            {Set: map[string]string{name: "x"}},
		} {
			if env := executor.BaseEnv(o); slices.Contains(env, name+"=x") {
				t.Errorf("%s was %s", name, how)
			}
		}
	}
	env := executor.BaseEnv(executor.EnvOptions{Set: map[string]string{"A": "1\x00LD_PRELOAD=x", "B=C": "", "": "x"}})
	if s := strings.Join(env, "\n"); strings.Contains(s, "LD_PRELOAD") || strings.Contains(s, "B=C") {
		t.Errorf("got %q", s)
	}
}

func TestNamesThatNeverPassAreTold(t *testing.T) {
	t.Parallel()
	got := executor.NeverPass(executor.EnvOptions{
		Pass: []string{"GOPATH", "LD_PRELOAD", "AWS_*", "AWS_PROFILE", "AWS_SECRET_ACCESS_KEY", "TOOLD_TOKEN"},
		Set:  map[string]string{"TOOLD_TEST": "x", "IFS": "x"},
	})
	must.Match(t, []string{"LD_PRELOAD", "AWS_SECRET_ACCESS_KEY", "TOOLD_TOKEN", "IFS"}, got)
}

func TestTheDaemonsOwnVariablesAreNotInherited(t *testing.T) {
	t.Parallel()
	env := executor.BaseEnv(executor.EnvOptions{
		From: []string{"TOOLD_TOKEN=secret"}, Pass: []string{"*", "TOOLD_TOKEN"}, Set: map[string]string{"TOOLD_NOTE": "set"},
	})
	if s := strings.Join(env, "\n"); strings.Contains(s, "secret") || !slices.Contains(env, "TOOLD_NOTE=set") {
		t.Errorf("got %q", s)
	}
}

func TestPathHoldsNothingThatACallCanWrite(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/usr/bin:/bin":                        "/usr/bin:/bin",
		":/usr/bin::.:bin:/bin:":               "/usr/bin:/bin",
		"/proj/bin:/proj:/project/bin":         "/project/bin",
		"/usr/bin:/proj/../proj/node/bin:/bin": "/usr/bin:/bin",
		"":                                     "/usr/local/bin:/usr/bin:/bin",
		"/proj/bin":                            "/usr/local/bin:/usr/bin:/bin",
		"/other/bin:/others/bin":               "/others/bin",
	} {
		env := executor.BaseEnv(executor.EnvOptions{From: []string{"PATH=" + path}, Workspace: "/proj", Others: []string{"/other"}})
		if !slices.Contains(env, "PATH="+want) {
			t.Errorf("%q: want PATH=%s in %v", path, want, env)
		}
	}
}
