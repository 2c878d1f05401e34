package policy

import (
	"strings"
	"testing"
)

// One letter means many things in git: only where it runs a program or changes a
// setting must a rule permit it.
func TestFlagsOfGitAreThoseOfTheirSubcommand(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "git", Action: Allow, Run: []string{"git **"}})
	decides(t, p, map[string]Action{
		"git push -u origin topic": Allow, "git commit -C HEAD": Allow, "git commit -mfix": Allow, "git switch -c topic": Allow, "git add -u": Allow,
		"git stash -u": Allow, "git clean -fdx": Allow, "git cherry-pick -x abc": Allow, "git diff -C HEAD": Allow, "git --no-pager log -c": Allow,
		"git clone -u ./x a": Ask, "git clone -c a=b c": Ask, "git -c alias.x=!x x": Ask, "git -C .. push -u origin": Ask, "git rebase -x ./x": Ask,
		"git -u push": Ask, "git grep -O./x a": Ask, "git push --receive-pack=./x": Ask, "git fetch --upload-pack ./x": Ask, "git commit -c… x": Ask,
		"git --unknown push -c x": Ask, "git … -c x": Ask, "git diff --output=x": Ask, "git ls-remote -u ./x": Ask, "git archive --exec=./x": Ask,
	})
}

// A long flag of one dash is no bundle of short ones with a path.
func TestALongFlagOfOneDashNamesItsOwnPath(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"terraform -chdir=envs/dev validate": "envs/dev", "terraform validate -var-file=a/b.tfvars": "a/b.tfvars",
	} {
		var got []string
		for _, o := range describe(run(command).Argv).Operands {
			got = append(got, o.Word.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s names %q, want %s", command, got, want)
		}
	}
	p := rules(t, asking(), Rule{ID: "tf", Action: Allow, Run: []string{"terraform {fmt,validate,init} **", "terraform -chdir=* validate"}})
	decides(t, p, map[string]Action{
		"terraform fmt -recursive": Allow, "terraform init -backend=false": Allow, "terraform init -plugin-dir=./x": Ask, "terraform init -from-module=x": Ask,
		"terraform -chdir=x validate": Allow, "terraform -chdir=x init": Ask,
	})
}

// A program that another one starts under its name takes its flags along.
func TestFlagsOfAStartedProgramAreItsOwn(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "all", Action: Allow, Run: []string{
		"npx {eslint,tsc,prettier,eslint@8} **", "npm exec **", "{yarn,pnpm,bunx} **", "python3 -m {pytest,mypy} **", "{uv,poetry} run **", "bundle exec **",
	}})
	decides(t, p, map[string]Action{
		"npx eslint src --ext .ts": Allow, "npx eslint .": Allow, "npx prettier --check .": Allow, "npm exec -- eslint .": Allow, "yarn lint": Allow,
		"python3 -m pytest -q": Allow, "uv run pytest -x -q": Allow, "poetry run ruff check": Allow, "bundle exec rspec": Allow, "pnpm exec vitest run": Allow,
		"npx eslint@8 " + strings.Repeat("x ", 200): Allow, "npx eslint@8 " + strings.Repeat("x ", 200) + "--fix": Ask,
		"npx eslint --fix .": Ask, "npx eslint@8 --fix .": Ask, "npx eslint -c ./x.js .": Ask, "npx prettier --write .": Ask, "npx tsc --outDir /x": Ask,
		"npm exec -- eslint --fix .": Ask, "npm exec eslint --fix": Ask, "yarn eslint --fix": Ask, "pnpm exec eslint --fix": Ask, "bunx eslint -o x .": Ask,
		"python3 -m pytest -p evil": Ask, "python3 -m pytest --rootdir=/x": Ask, "uv run ruff check --fix": Ask, "poetry run pytest -c x": Ask, "npx eslint …": Ask,
	})
}

// Flags of test runners, compilers and checkers that load a program, or write where
// they are told, are to be permitted one by one.
func TestFlagsThatLoadOrWriteArePermittedOneByOne(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "all", Action: Allow, Run: []string{"npx {jest,vitest,tsc} **", "{pytest,mypy,cargo,node,npm} **"}})
	decides(t, p, map[string]Action{
		"npx jest --ci -u": Allow, "npx vitest run src": Allow, "npx tsc --noEmit": Allow, "pytest -q -k x": Allow, "mypy src": Allow, "cargo clippy": Allow, "node x.js": Allow, "npm run build": Allow,
		"npx jest --preset ./x": Ask, "npx jest --moduleLoader=./x": Ask, "npx jest --coverageDirectory=.git": Ask, "npx vitest run --environment ./x": Ask,
		"npx vitest --poolOptions.forks.execArgv=-r": Ask, "npx tsc @x": Ask, "pytest @x": Ask, "pytest --tx popen//python=x": Ask, "mypy --html-report .git x": Ask,
		"cargo clippy --fix": Ask, "node data:text/javascript,x": Ask, "node /dev/stdin": Ask, "node -": Ask, "npm exec -c x": Ask, "npm --editor=x edit y": Ask,
	})
}
