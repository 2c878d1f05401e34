package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/policy"
)

// judge returns a function that decides scripts in a workspace; OUT is a directory outside.
func judge(t *testing.T, f policy.File) func(script string) policy.Decision {
	t.Helper()
	ws, out := must.Workspace(t)
	p := must.Get(policy.Compile(policy.Options{Workspace: ws, Home: "/home/u", Tmp: "/tmp"}, f))(t)
	a := newAnalyser(ws)
	return func(script string) policy.Decision {
		return p.Decide(a.Effects(strings.ReplaceAll(script, "OUT", out), ws))
	}
}

func permissive() policy.Defaults {
	return policy.Defaults{
		Bash: policy.Allow, Read: policy.Allow, Write: policy.Allow, Net: policy.Allow,
		Unanalysable: policy.Ask, UnknownRead: policy.Ask, UnknownWrite: policy.Ask, UnknownEnv: policy.Allow,
	}
}

func TestARuleFollowsProgramsOfEverySystemDirectory(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]policy.File{
		"presets":    {Defaults: policy.Defaults{Bash: policy.Ask, Read: policy.Ask, Write: policy.Ask, UnknownRead: policy.Ask, UnknownWrite: policy.Ask}, Presets: []string{"shell-readonly", "shell-workspace"}},
		"permissive": {Defaults: permissive()},
	} {
		file.Commands = []policy.Rule{{ID: "push", Action: policy.Deny, Run: []string{"git push **"}}}
		decide := judge(t, file)
		for _, dir := range []string{"", "/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/opt/homebrew/bin/", "/usr/./sbin/", "//usr/sbin/", "/usr/bin/../sbin/", "./", "/opt/x/"} {
			for _, script := range []string{
				"DIRfind . -exec git push ';'", "DIRfind . -execdir git push {} +", "DIRxargs git push < a.txt", "DIRenv git push", "DIRenv A=b git push", "DIRtimeout 5 git push",
				"DIRnice git push", "DIRbash -c 'git push'", "DIRsh -c 'cd src && git push'", "DIRtimeout 5 DIRfind . -exec DIRgit push ';'", "DIRgit -C src push", "DIRfind . -exec DIRsh -c 'git push' ';'",
			} {
				script = strings.ReplaceAll(script, "DIR", dir)
				if d := decide(script); d.Action != policy.Deny {
					t.Errorf("%s: %s: %v by %s", name, script, d.Action, d.Rule)
				}
			}
		}
	}
}

func TestCodeThatIsReadFromInputIsNotKnown(t *testing.T) {
	t.Parallel()
	f := open()
	f.Commands = []policy.Rule{{ID: "push", Action: policy.Deny, Run: []string{"git push **"}}}
	decide := judge(t, f)
	for script, want := range map[string]policy.Action{
		`make -f /dev/stdin <<< "$(printf 'x:\n\tgit push')"`: policy.Ask, "make all -f /dev/stdin < a.txt": policy.Ask, "make -f- < a.txt": policy.Ask, "make -f - < a.txt": policy.Ask, "make --file=- < a.txt": policy.Ask,
		"make all --makefile=/proc/self/fd/0 < a.txt": policy.Ask, "make -f/dev/fd/0 < a.txt": policy.Ask, "make -f <(cat a.txt)": policy.Ask, "cat a.txt | make x -f /dev/stdin": policy.Ask, "make -sf /dev/stdin < a.txt": policy.Ask,
		"make -f /dev/../dev/stdin < a.txt": policy.Ask, "cd /dev; make -f stdin < /w/a": policy.Ask, "make -f ../../../../../../../dev/stdin < a.txt": policy.Ask, "make -f /proc/thread-self/fd/0 < a.txt": policy.Ask,
		"make x -f $(echo /dev/stdin) < a.txt": policy.Ask, "make x -f /dev/$(echo stdin) < a.txt": policy.Ask, "gmake -f /dev/stdin < a.txt": policy.Ask, "exec 3< a.txt; make -f /dev/fd/3": policy.Ask,
		"ninja -f /dev/stdin < a.txt": policy.Ask, "cmake -P /dev/stdin < a.txt": policy.Ask, "cmake -P <(cat a.txt)": policy.Ask, "just -f - x < a.txt": policy.Ask, "rake -f /dev/stdin < a.txt": policy.Ask, "ansible-playbook /dev/stdin < a.txt": policy.Ask,
		"python3 /dev/stdin < a.txt": policy.Ask, "python3 < a.txt": policy.Ask, "python3.12 /dev/fd/0 < a.txt": policy.Ask, "python3.12 < a.txt": policy.Ask, "ruby /proc/self/fd/0 < a.txt": policy.Ask, "perl <(cat a.txt)": policy.Ask, "node -r /dev/stdin a.js": policy.Ask, "lua - < a.txt": policy.Ask,
		"Rscript /dev/stdin < a.txt": policy.Ask, "julia /dev/stdin < a.txt": policy.Ask, "tclsh /dev/stdin < a.txt": policy.Ask, "tclsh < a.txt": policy.Ask, "octave < a.txt": policy.Ask, "gdb -x /dev/stdin < a.txt": policy.Ask, "psql db < a.txt": policy.Ask, "psql -f - db < a.txt": policy.Ask,
		"sqlite3 x.db < a.txt": policy.Ask, "mysql db < a.txt": policy.Ask, "parallel < a.txt": policy.Ask, "cat a.txt | parallel -j2": policy.Ask, "vim -S /dev/stdin < a.txt": policy.Ask, "curl -K - < a.txt": policy.Ask, "curl --config /dev/stdin < a.txt": policy.Ask,
		"wget -i - < a.txt": policy.Ask, "bash < a.txt": policy.Ask, "bash <(cat a.txt)": policy.Ask, "sh -s < a.txt": policy.Ask, "source /dev/stdin < a.txt": policy.Ask, ". <(cat a.txt)": policy.Ask, "script -q /dev/null < a.txt": policy.Ask, "su < a.txt": policy.Ask,
		"unknowntool -c /dev/stdin < a.txt": policy.Ask, "unknowntool --config=<(cat a.txt)": policy.Ask, "docker build - < a.txt": policy.Ask, "docker compose -f - up < a.txt": policy.Ask, "gcc @/dev/stdin < a.txt": policy.Ask, "npx eslint -c /dev/stdin . < a.txt": policy.Ask,
		"env make -f /dev/stdin < a.txt": policy.Ask, "timeout 5 make x -f - < a.txt": policy.Ask, "find . -exec make -f /dev/stdin {} ';'": policy.Ask, "xargs make -f /dev/stdin < a.txt": policy.Ask,
		// What the shell is given is known.
		"bash <<< 'git push'": policy.Deny, "bash <<'E'\ngit push\nE": policy.Deny, "sh -s <<< 'cd src; git push origin'": policy.Deny, "bash -x <<E\ngit push\nE": policy.Deny, "env bash <<< 'git push'": policy.Deny, "bash /dev/stdin <<< 'git push'": policy.Deny,
		"bash - <<< 'git push'": policy.Deny, "{ bash; } <<< 'git push'": policy.Deny, "echo 'git push' | bash": policy.Deny, `printf 'git push\n' | sh`: policy.Deny, "cat <<'E' | bash\ngit push\nE": policy.Deny, "source /dev/stdin <<< 'git push'": policy.Deny,
		"x='git push'; bash <<< \"$x\"": policy.Deny, "bash <<< \"$(cat a.txt)\"": policy.Ask, "bash <<< 'ls'": policy.Ask,
		// What is read is data.
		"cat /dev/stdin < a.txt": policy.Allow, "diff <(cat a.txt) <(cat b.txt)": policy.Allow, "wc -l < a.txt": policy.Allow, "grep -f <(cat a.txt) b.txt": policy.Allow, "sort -u - < a.txt": policy.Allow, "tar xf - < a.txt": policy.Allow, "tee >(cat) < a.txt": policy.Allow,
		"git commit -F - < a.txt": policy.Allow, "python3 a.py - < a.txt": policy.Allow, "python3 a.py /dev/stdin < a.txt": policy.Allow, "node a.js /dev/fd/0 < a.txt": policy.Allow, "make -f Makefile all": policy.Allow, "make -j2 all": policy.Allow, "psql --version": policy.Allow,
		"git apply < a.txt": policy.Allow, "curl -d @- http://a.test": policy.Allow, "kubectl apply -f - < a.txt": policy.Allow, "unknowntool - < a.txt": policy.Allow, "sqlite3 x.db 'select 1'": policy.Allow, "while read -r l; do echo \"$l\"; done < <(cat a.txt)": policy.Allow,
		"jq . <(cat a.txt)": policy.Allow, "comm -12 <(sort a.txt) <(sort b.txt)": policy.Allow, "paste <(cut -f1 a.txt) <(cut -f2 a.txt)": policy.Allow, "parallel echo ::: a b": policy.Allow, "cmake -S . -B build": policy.Allow, "patch -p1 < a.txt": policy.Allow,
	} {
		if d := decide(script); d.Action != want {
			t.Errorf("%s: %v by %s (%s), want %v", script, d.Action, d.Rule, d.Reason, want)
		}
	}
}

func TestAVersionOfRustIsNotAskedOfAProgramOfTheProject(t *testing.T) {
	t.Parallel()
	ws, _ := must.Workspace(t)
	p := must.Get(policy.Compile(policy.Options{Workspace: ws, Home: "/home/u", Tmp: "/tmp"}, policy.File{
		Defaults: policy.Defaults{Bash: policy.Ask, Read: policy.Allow, Write: policy.Allow, Unanalysable: policy.Ask}, Presets: []string{"shell-readonly", "shell-workspace"},
	}))(t)
	want := func(script string, action policy.Action) {
		t.Helper()
		if d := p.Decide(newAnalyser(ws).Effects(script, ws)); d.Action != action {
			t.Errorf("%s: %v by %s: %s", script, d.Action, d.Rule, d.Reason)
		}
	}
	for _, command := range []string{"cargo --version", "cd src/deep && rustc -V", "rustup --version", "rustfmt --version"} {
		want(command, policy.Allow)
		want("echo x >rust-toolchain; "+command, policy.Ask)
	}
	must.Do(t, os.WriteFile(filepath.Join(ws, "rust-toolchain.toml"), []byte("[toolchain]\npath = \"x\"\n"), 0o644))
	for _, command := range []string{"cargo --version", "cd src/deep && rustc -V", "rustup --version", "rustfmt --version"} {
		want(command, policy.Ask)
	}
}

// TestNothingHidesInWhatLooksHarmless allows everyday commands with any words.
func TestNothingHidesInWhatLooksHarmless(t *testing.T) {
	t.Parallel()
	var everyday []string
	for name := range strings.FieldsSeq("git find tar sed awk gawk sort wc du dd tee install cp mv ln split csplit rsync ssh scp curl wget make rg fd jq xxd grep cat ls echo printf " +
		"test cut tail head diff less man zip unzip gcc node python3 go npm cargo date touch truncate shuf uniq base64 chmod rm patch iconv xargs env") {
		everyday = append(everyday, name+" **")
	}
	decide := judge(t, policy.File{
		Name:     "careful.yaml",
		Defaults: policy.Defaults{Bash: policy.Ask, Read: policy.Ask, Write: policy.Ask, Net: policy.Ask, UnknownRead: policy.Ask, UnknownWrite: policy.Ask, Unanalysable: policy.Ask},
		Presets:  []string{"shell-readonly", "shell-workspace"},
		Commands: []policy.Rule{{ID: "everyday", Action: policy.Allow, Run: everyday}},
		Paths:    []policy.Rule{{ID: "workspace", Action: policy.Allow, Paths: []string{"${workspace}/**"}}},
		Net:      []policy.Rule{{ID: "known", Action: policy.Allow, Hosts: []string{"a.test"}}},
	})
	hiding := must.Get(os.ReadFile("testdata/hiding.txt"))(t)
	for line := range strings.Lines(string(hiding)) {
		script := strings.ReplaceAll(strings.TrimSuffix(line, "\n"), `\n`, "\n")
		if d := decide(script); d.Action == policy.Allow {
			t.Errorf("%s: allowed by %s", script, d.Rule)
		}
	}
}

// A variable from which a shell or git takes a command is one, and the configuration of git in
// variables hides what git does.
func TestRulesReachCommandsInVariables(t *testing.T) {
	t.Parallel()
	file := policy.File{Defaults: permissive(), Env: strings.Fields("GIT_EDITOR GIT_PAGER EDITOR PS1 MAKEFLAGS CFLAGS"), Commands: []policy.Rule{{ID: "rule", Action: policy.Deny, Run: []string{"git push **", "rm -rf **"}}}}
	decide := judge(t, file)
	for script, want := range map[string]policy.Action{
		"BASH_ENV='$(rm -rf src)' bash -c ls": policy.Deny, "export BASH_ENV='$(rm -rf src)'; ./x.sh": policy.Deny, "env 'BASH_FUNC_ls%%=() { rm -rf src; }' bash -c ls": policy.Deny,
		"GIT_EDITOR='rm -rf src;' git commit": policy.Deny, "env GIT_EDITOR='git push -q origin main;' git commit": policy.Deny, "export GIT_SSH_COMMAND='rm -rf src;'; git fetch": policy.Deny,
		"export GIT_PAGER='git push -q origin main; cat'; git -p log": policy.Deny, "GIT_EXTERNAL_DIFF='timeout 5 git push' git diff": policy.Deny, "GIT_PAGER=\"sh -c 'cd src && git push'\" git log": policy.Deny,
		"env PS4='$(rm -rf src)' bash -xc ls": policy.Deny, "GIT_EDITOR='git status' git commit; git push": policy.Deny, "GIT_EDITOR='git push' true; git push": policy.Deny,
		"RSYNC_RSH='git push' rsync a x:b": policy.Deny, "MAKEFLAGS='--eval=$(shell git push)' make": policy.Deny, "TAR_OPTIONS=\"--to-command='git push'\" tar xf a.tar": policy.Deny, "LESSOPEN='|git push %s' less a.txt": policy.Deny,
		"env CC='git push' make": policy.Deny, "make CC='git push'": policy.Deny, "make -C src X=1 CC='git push'": policy.Deny, "export PERL5OPT='-Mx' CCACHE_PREFIX='git push'; make": policy.Deny, "FZF_DEFAULT_COMMAND='git push' fzf": policy.Deny,
		"GNUMAKEFLAGS=-fx make": policy.Ask, "COMPILER_PATH=. gcc a.c": policy.Ask, "GCC_EXEC_PREFIX=./ gcc a.c": policy.Ask, "ZIPOPT=-TTx zip a b": policy.Ask, "GOCACHEPROG=./x go build": policy.Ask, "shell_escape=t pdflatex a": policy.Ask, "RM=./x make clean": policy.Ask,
		"GUNICORN_CMD_ARGS=-cx gunicorn a": policy.Ask, "APT_CONFIG=x apt list": policy.Ask, "JAVACMD=./x mvn test": policy.Ask, "ASAN_SYMBOLIZER_PATH=./x ./a.out": policy.Ask, "COMPOSE_FILE=x docker compose up": policy.Ask,
		"MAKEFLAGS=-j4 make": policy.Allow, "CFLAGS='-O2 -g' make": policy.Allow, "make V=1 CFLAGS='-O2 -g' test": policy.Allow,
		"GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='reset --hard' git x": policy.Ask, "GIT_CONFIG_GLOBAL=./a.txt git x": policy.Ask, "git -c include.path=./a x": policy.Ask, "git --config-env=alias.x=A x": policy.Ask,
		"GIT_EDITOR=true git commit": policy.Allow, "GIT_PAGER=cat git log": policy.Allow, "EDITOR='vim -n' git commit": policy.Allow, "PS1='(venv) \\u@\\h$ '": policy.Allow,
	} {
		if d := decide(script); d.Action != want {
			t.Errorf("%s: %v by %s, want %v", script, d.Action, d.Rule, want)
		}
	}
}

// What a program starts sees the variables that the program sets for it.
func TestAVariableOfEnvIsOneOfWhatItStarts(t *testing.T) {
	t.Parallel()
	decide := judge(t, policy.File{Name: "p.yaml", Defaults: permissive(), Commands: []policy.Rule{{ID: "rule", Action: policy.Deny, Run: []string{"git push **"}}}})
	for script, want := range map[string]policy.Action{
		"env A=git B=push sh -c '$A $B'": policy.Ask, "env A='git push' bash -c '$A'": policy.Ask, "env A='git push' bash -c 'eval \"$A\"'": policy.Ask, "env A=push bash -c 'git $A'": policy.Deny,
		"env -i A=git timeout 9 sh -c '$A push'": policy.Ask, "env A=push env B=git sh -c '$B $A'": policy.Ask, "find . -exec env A=git sh -c '$A push' ';'": policy.Ask, "nice env A=git B=push sh -c 'exec $A $B'": policy.Ask,
		"env A=1 sh -c 'echo $A'": policy.Allow, "env A=ls ls; ls": policy.Allow, "env NODE_ENV=test sh -c 'echo \"$NODE_ENV\"; ls'": policy.Allow,
	} {
		if d := decide(script); d.Action != want {
			t.Errorf("%s: %v by %s, want %v", script, d.Action, d.Rule, want)
		}
	}
}

// What env removes is not there.
func TestAVariableThatEnvRemovesIsNotSeen(t *testing.T) {
	t.Parallel()
	decide := judge(t, open())
	for script, want := range map[string]policy.Action{
		"env -u LANG bash -c 'cat .e${LANG:+x}nv'": policy.Deny, "env -i bash -c 'cat .e${LANG:+x}nv'": policy.Deny, "env - bash -c 'cat .e${LANG:+x}nv'": policy.Deny,
		"env --unset=LANG bash -c 'cat .env$LANG'": policy.Deny, "A=x; env -u A bash -c 'cat .env$A'": policy.Deny,
		"env bash -c 'cat .env$LANG'": policy.Allow, "env -i A=a.txt bash -c 'cat $A'": policy.Allow, "env -u A make": policy.Allow,
	} {
		if d := decide(script); d.Action != want {
			t.Errorf("%s: %v by %s, want %v", script, d.Action, d.Rule, want)
		}
	}
}

func TestRulesReachCommandsInOtherLanguages(t *testing.T) {
	t.Parallel()
	decide := judge(t, policy.File{Defaults: permissive(), Commands: []policy.Rule{{ID: "rule", Action: policy.Deny, Run: []string{"git push **"}}}})
	for _, script := range []string{
		"sed '1e git push' a.txt", "sed --expr 'e git push' a.txt", "sed -e p -ne 's/a/b/;e git push' a.txt", "gcc -wrapper git,push a.c", `ruby -e 'system("git","push")'`,
		`node -e 'require("child_process").spawnSync("git",["push"])'`, `python3 -c 'import os; os.system("git push")'`, `perl -e 'exec qw(git push)'`, `php -r 'system("git push");'`, `awk 'BEGIN{system("git push")}'`, `find . -exec sed '1e git push' {} +`,
	} {
		if d := decide(script); d.Action != policy.Deny {
			t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
		}
	}
}

// What a command starts is parsed, too; its flags are not those of the command.
func TestAStartedCommandHidesNoWordOfItsStarter(t *testing.T) {
	t.Parallel()
	decide := judge(t, policy.File{Defaults: permissive(), Commands: []policy.Rule{{ID: "rule", Action: policy.Deny, Run: []string{"git push **"}}}})
	for _, script := range []string{"uv run -p 'git push' pytest", "uv run -p 'git push' grep -e 9 ls", "uv run -p 'git push' timeout -s 9 5 ls"} {
		if d := decide(script); d.Action != policy.Deny {
			t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
		}
	}
}

// What a program may run is judged in every form that is told apart from a name, a pattern and a target.
func TestACommandThatAProgramIsGivenIsJudged(t *testing.T) {
	t.Parallel()
	decide := judge(t, policy.File{Defaults: permissive(), Commands: []policy.Rule{{ID: "rule", Action: policy.Deny, Run: []string{"git push **", "rm -r -f **", "halt **"}}}})
	for _, script := range []string{
		"nix run nixpkgs#git -- push", "nix run github:NixOS/nixpkgs#git push", "nix shell nixpkgs#git -c git push", "nix-shell -p git --run 'git push'",
		"terraform apply -var 'cmd=git push'", "terraform plan -var=cmd='git push'", "tofu apply -var 'cmd=git push'", "make x ARGS='-k; halt'", "make x ARGS='-c \"git push\"'", "make x CMD=halt",
		"python3 -c 'exec(input())' <<< 'import os;os.system(\"git push\")'", "ruby -e 'eval gets' <<< 'system(\"git push\")'", "perl -ne 'system $_' <<< 'git push'", "node -e 'eval(fs.readFileSync(0)+\"\")' <<< 'exec(\"git push\")'",
		"awk '{system($0)}' <<< 'git push'", "sed e <<< 'git push'", "python3 -c 'os.system(\"git\" + \" push\")'", "python3 -c 'exec(b64decode(\"b3Muc3lzdGVtKCdnaXQgcHVzaCcp\"))'",
		"node --import 'data:text/javascript,import(\"x\").then(c=>c.execSync(\"git push\"))'", "node --import 'data:text/javascript;base64,eC5leGVjU3luYygiZ2l0IHB1c2giKQ=='",
		"npx git push", "npx sh -c 'git push'", "npx node -e 'exec(\"git push\")'", "npx unknown git push", "pnpm exec git push", "npx jest --globalSetup 'git push'", "npx make X='git push'", "bunx unknown -x 'git push'",
		"npx zx <<< 'await $`git push`'", "uv run python - <<< 'os.system(\"git push\")'", "bundle exec ruby <<< 'system(\"git push\")'", "git config alias.p push; git p", "git config --add Alias.p 'push origin'", "git config set alias.p push",
		"git config alias.p '!git push'", "git-config alias.p push", "git config core.editor 'git push'", "git config init.templateDir 'git push'", "git config diff.external 'git push'", "git -c core.pager='git push' log", "git -c core.pager='git push' config user.name x",
		"docker exec web git push", "docker exec git git push", "docker exec -it web sh -c 'git push'", "docker exec web env git push", "docker exec web unknown -t 'git push'", "docker exec --frob web jest -t 'git push'", "docker exec $c -t 'git push'", "docker exec web jest --globalSetup 'git push'",
		"docker compose exec -T web bash -lc 'git push'", "kubectl exec web -- git push", "kubectl exec web -c app -- sh -c 'git push'", "docker run web jest -t 'git push'",
		"npm exec -c 'git push'", "npm run x -- git push", "npm run build -- 'git push'", "npm test -- -x 'git push'", "npm -t 'git push' test", "cargo test --config 'git push'",
	} {
		if d := decide(script); d.Action != policy.Deny {
			t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
		}
	}
	for _, script := range []string{
		"npx jest -t 'rm -rf handling'", "pnpm exec jest --testNamePattern='rm -rf x'", "yarn exec vitest -t 'git push'", "bunx mocha -g 'git push'", "npx playwright test -g 'git push'", "uvx pytest -k 'rm -rf x'", "bundle exec rspec -e 'rm -rf x'",
		"npx vitest run --reporter=dot halt", "npx prettier --write halt", "make test ARGS='-v -k halt'", "make test 'TESTARGS=-run halt'", "terraform workspace new halt", "poetry run pytest -k halt",
		"python3 -c 'print(json.load(sys.stdin))' <<< '{\"x\": \"git push\"}'", "sed s/a/b/ <<< 'git push'", "awk '{print $1}' <<< 'git push'",
		"npx prettier --stdin-filepath x.md <<< 'git push'", "mvn test -Dtest=ATest#halt", "git config alias.s status", "git config --get alias.p; git log push",
		"npm test -- -t 'rm -rf x'", "npm test -- --testNamePattern='git push'", "npm run test:unit -- -u --grep 'git push'", "pnpm test -- -t 'git push'", "bun test -t 'git push'", "cargo test 'git push'", "cargo bench -- 'git push'",
		"docker exec web jest -t 'git push'", "docker exec -it -u root web pytest -k 'git push'", "podman exec web npm test -- -t 'git push'", "docker compose exec -T web jest -t 'git push'", "kubectl exec -it web -c app -- jest -t 'git push'", "kubectl annotate pod x a='git push'",
		"git config user.name 'git push'", "git config --global user.name 'git push'", "git config set user.email 'rm -rf x'", "git -C src config --replace-all commit.template 'git push'", "git config core.autocrlf 'git push'", "git notes add -m 'git push'",
	} {
		if d := decide(script); d.Action == policy.Deny {
			t.Errorf("%s: denied by %s", script, d.Rule)
		}
	}
}

// A denial counts in every form in which the text says what runs, also where that is asked in any case.
func TestADenialReachesEveryFormOfACommand(t *testing.T) {
	t.Parallel()
	decide := judge(t, policy.File{Defaults: permissive(), Commands: []policy.Rule{{ID: "rule", Action: policy.Deny, Run: []string{"git push **"}}}})
	for _, script := range []string{
		"coproc git push", "coproc NAME { git push; }", "coproc (git push)", "coproc while :; do git push; done", "coproc N if :; then git push; fi", "x=git; coproc $x push", "f() { git push; }; coproc f", "coproc cat | git push",
		"select x in git; do $x push; done", "cd() { git push; }; cd", "if [ -f a.txt ]; then f() { git push; }; else f() { ls; }; fi; f",
		"printf -v x 'git push'; $x", "printf -v x '%s %s' git push; $x", "printf -v x %s git; $x push", "printf -v x '%q' 'git push'; eval $x", "printf -v 'a[0]' 'git push'; ${a[0]}", "printf -v 'a[$(git push)]' x", "a[0]='git push'; ${a[0]}",
		"x=$(echo git); $x push", "x=$(echo ls; echo git); $x; $x push",
		"x=GIT; ${x,,} push", "x=Git; ${x,} push", "x=git; ${x@L} push", "x=gait; ${x/a/} push", "x=gaait; ${x//a} push", "x=agitb; ${x:1:3} push", "x=agit; ${x:1} push", "y=git; x=y; ${!x} push", "set -- git; n=1; ${!n} push", "set -- gait; ${1/a/} push", "set -- xgit; ${1:1} push", "f() { ${1/a/} push; }; f gait",
		"x='git push'; ${x@P}", "x='\\147it'; ${x@E} push", "declare -n r=y; y=git; $r push", "f() { local -n r=$1; $r push; }; y=git; f y", "sh -c 'x=gait; ${x/a/} push'",
		"IFS=,; x=git,push; $x", "IFS=:; x=git:push:origin; $x", "IFS=+; x=git+push; ${x}", "IFS=x; a=gitxpush; $a", "IFS=$1; x=git,push; $x", "f() { local IFS=-; local x=git-push; $x; }; f", "IFS=$'\n'; x=$'git\npush'; $x", "IFS=,; x=git; $x push",
		"IFS=,; set -- git push; x=\"$*\"; $x", "set -- git push; IFS=+; eval \"$*\"", "set -- git+push; IFS=+; $1",
		"hash -p /usr/bin/git foo; foo push", "hash -lp /usr/bin/git foo; command foo push", "hash -p /usr/bin/git a b; b push", "BASH_CMDS[foo]=/usr/bin/git; foo push", "BASH_ALIASES[foo]=git; foo push",
		"shopt -s expand_aliases\nalias g=git\ng push", "alias g=git; shopt -s expand_aliases\ng push", "sh -c 'alias g=git\ng push'", "shopt -s expand_aliases\nalias cd=git\ncd push",
		"x='a[$(git push)]'; ((x))", "x='a[`git push`]'; echo $((x + 1))", "declare -i n; n='a[$(git push)]'", "declare -i 'n=a[$(git push)]'", "x='a[$(git push)]'; [[ 1 -eq $x ]]", "x='a[$(git push)]'; echo ${a[x]} ${y:x:1}", "x='a[$(git push)]'; a[x]=1", "x='$(git push)'; echo \"${x@P}\"",
		"bash -c '$0 push' git", "bash -c '\"$0\" \"$@\"' git push", "bash -c 'git \"$0\"' push", "bash -c 'eval \"$0\"' 'git push'", "find . -exec sh -c '$0 push' git ';'", "PATH=x:$PATH; $(which git) push", "\"$(command -v git)\" push",
		"if p; then c=git; else c=ls; fi; $c push", "[ -d x ] && c=git || c=ls; $c push", "c=ls; p && c=git; \"$c\" push", "c=ls; while p; do $c push; c=git; done", "case x in x) c='git -C src';; *) c=ls;; esac; $c push", "if p; then c=push; else c=pull; fi; git $c", "f() { $1 push; }; if p; then c=git; else c=ls; fi; f $c", "S=; p && S='git push'; $S", "S=; p && S=env; $S git push",
		"complete -C 'git push' x", "compgen -C 'git push'", "bind -x '\"a\":git push'", "fc -s git push", "mapfile -C 'git push' -c 1 a < a.txt", "jobs -x git push", "exec -a ls git push", "let 'x=a[$(git push)]'", "unset 'a[$(git push)]'", "read 'a[$(git push)]'",
	} {
		if d := decide(script); d.Action != policy.Deny {
			t.Errorf("%s: %v by %s (%s)", script, d.Action, d.Rule, d.Effect)
		}
	}
	for _, script := range []string{
		"coproc ls", "coproc N { ls; }; echo push", "select x in a b; do ls $x; done", "printf -v x 'git push'; echo \"$x\"", "printf \"$f\" 'git push'", "printf -v 'a[0]' 'git push'", "IFS=,; x=git,push; echo $x", "IFS=,; x=a,b; $x",
		"if p; then c=git; else c=ls; fi; $c pull", "if p; then c=push; else c=pull; fi; echo git $c", "c=git; c=ls; $c push", "bash -c '$0 pull' git", "x='a[$(git pull)]'; ((x))",
		"hash -p /usr/bin/git foo; foo pull; bar push", "alias g=git; g push", "unset g; g push", "x=$(echo git); $x pull; git status", "x=GIT; ${x,,} pull", "x=git; y=${x^^}; echo $y push", "x=$(echo git); $x -m 'do not push'", "shopt -s nullglob; g push", "cd() { ls; }; cd",
	} {
		if d := decide(script); d.Action == policy.Deny {
			t.Errorf("%s: denied by %s (%s)", script, d.Rule, d.Effect)
		}
	}
}

// A command that is not known may be one of the texts that the script keeps.
func TestRulesReachTextsThatAScriptKeeps(t *testing.T) {
	t.Parallel()
	decide := judge(t, policy.File{Defaults: permissive(), Commands: []policy.Rule{{ID: "rule", Action: policy.Deny, Run: []string{"git push **", "halt **"}}}})
	for _, script := range []string{
		"$(echo git push)", "eval \"$(printf 'git push')\"", "bash -c \"$(echo git push)\"", "x=$(cat <<< 'git push'); $x", "read -r x <<< 'git push'; $x", "mapfile -t x <<< 'git push'; ${x[0]}", "read x < <(echo git push); eval \"$x\"",
		"while read -r l; do $l; done <<< 'git push'", "echo 'git push' | xargs -I{} bash -c {}", "echo 'git push' > x.sh; bash x.sh", "cat > x.sh <<'E'\ngit push\nE\n./x.sh", "tee x.sh <<< 'git push'; sh x.sh", "a=(git push); \"${a[@]}\"",
		"cat > sub/Makefile <<'E'\na:\n\tgit push\nE\nmake -C sub", "cat > mk <<'E'\na: ; git push\nE\nmake -fmk", "cat > x_test.go <<'E'\nfunc init() { exec.Command(\"git\", \"push\").Run() }\nE\ngo test ./...", "cat > build.rs <<'E'\nCommand::new(\"git\").arg(\"push\")\nE\ncargo build",
		"cat > conftest.py <<'E'\nos.system('git push')\nE\npytest", "cat > x.pl <<'E'\nsystem(\"git push\")\nE\nperl x.pl", "tee x.js <<< 'execSync(\"git push\")'; node ./x", "cat > t.py <<'E'\nos.system('git push')\nE\npython3 -m t", "cat > CMakeLists.txt <<'E'\nexecute_process(COMMAND git push)\nE\ncmake .",
		"f=$(mktemp); cat > \"$f\" <<'E'\ngit push\nE\nbash \"$f\"", "patch -p1 <<'E' && sh x.sh\n@@ -0,0 +1 @@\n+git push\nE", "git apply <<'E' && sh x.sh\n@@ -0,0 +1 @@\n+git push\nE", "cat > Dockerfile <<'E'\nRUN git push\nE\ndocker build .", "cat > vimrc <<< '!git push'; vim -u vimrc",
		"echo Z2l0IHB1c2g= | base64 -d | sh", "bash -c \"$(base64 -d <<< Z2l0IHB1c2g=)\"", "echo 'git push' | tee x | sh", "echo 'git push' | sed s/x/y/ | tr a b | bash",
	} {
		if d := decide(script); d.Action != policy.Deny {
			t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
		}
	}
	for _, script := range []string{
		"x=$(echo git push); echo \"$x\"", "git commit -m \"$(cat <<'E'\nno git push\nE\n)\" && make", "echo 'git push'; $CMD", "cat > x.js <<'E'\nfunction halt() { x.halt(1); }\nE\nnode x.js", "cat > notes.md <<'E'\ngit push\nE\nbash a.txt", "cat > notes.md <<'E'\ngit push\nE\nmake", "cat > x.go <<'E'\ngit push\nE\ngit commit -am x", "git commit -F - <<'E' && make\nno git push\nE", "cat > x.go <<'E'\ngit push\nE\ncat x.go | head", "echo 'git push' | grep x | wc -l", "echo 'git push' | cat > a.md",
	} {
		if d := decide(script); d.Rule == "rule" {
			t.Errorf("%s: denied by %s", script, d.Rule)
		}
	}
}

func TestACommandInTheWordOfAFlagIsJudged(t *testing.T) {
	t.Parallel()
	file := policy.File{Defaults: permissive(), Commands: []policy.Rule{{ID: "push", Action: policy.Deny, Run: []string{"git push **"}}, {ID: "gone", Action: policy.Deny, Classes: []string{"destructive"}}}}
	decide := judge(t, file)
	for _, command := range []string{
		"git grep -OX hi", "git grep -nOX hi", "git grep -O=X hi", "git difftool -xX HEAD", "git difftool -yxX HEAD", "git difftool -y -x X HEAD", "cargo watch -sX", "cargo watch -qsX", "nodemon -xX", "nodemon -Vx X",
		"watchexec -sX", "fish -cX", "fish -lcX", "fish -c X", "tar -cf a.tar -IX a", "tar -cIX -f a.tar a", "flock a -cX", "man -PX ls", "unknown-tool -xX", "unknown-tool -abxX",
	} {
		for _, run := range []string{"git push", "git push origin main", "rm -rf data"} {
			script := strings.Replace(command, "X", "'"+run+"'", 1)
			if d := decide(script); d.Action != policy.Deny {
				t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
			}
		}
	}
}
