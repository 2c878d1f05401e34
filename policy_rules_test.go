package toold_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toold/toold/policy"
	"github.com/toold/toold/policy/check"
	"github.com/toold/toold/tools"
)

// judgeOf is the judge of a policy for calls in a workspace.
func judgeOf(t *testing.T, registry *tools.Registry, ws string, f policy.File) *check.Judge {
	t.Helper()
	p, err := policy.Compile(policy.Options{Workspace: ws, Home: "/home/u", Tmp: "/tmp"}, f)
	if err != nil {
		t.Fatal(err)
	}
	return &check.Judge{Policy: p, Effects: func(name string, arguments json.RawMessage) ([]policy.Effect, error) {
		tool, _, _ := registry.Lookup(name)
		inv, err := tool.Build(arguments)
		if err != nil {
			return nil, err
		}
		return inv.Effects(), nil
	}}
}

// Rules of the kind that people write, with what used to pass them: five spellings of each
// are tried, and check has nothing to say of the rules.
func TestRulesMeanWhatTheySayInEverySpelling(t *testing.T) {
	t.Parallel()
	ws := docsWorkspace(t)
	registry := docsTools(t, ws)
	for _, row := range []struct {
		rule    policy.Rule
		matches string
		not     string
	}{
		{policy.Rule{Action: policy.Deny, Run: []string{"rm -rf **"}}, "rm -r -f x; rm -fr x; rm -Rf x; rm --recursive --force x; rm x -r -f; rm --rec -vf x; sudo rm -fR x; env rm x -rf; find . -exec rm -r -f {} +; xargs rm -f -r", "rm -r x; rm -f x; rm x"},
		{policy.Rule{Action: policy.Deny, Run: []string{"kubectl ** -n prod **"}}, "kubectl get pods -n prod; kubectl -n prod get pods; kubectl --namespace=prod get pods; kubectl delete -nprod pod x; kubectl get --namespace prod pods; kubectl -n=prod apply -f x; kubectl --context c -n prod get x; bash -c 'kubectl get x -n prod'", "kubectl get pods -n dev; kubectl get prod"},
		{policy.Rule{Action: policy.Deny, Run: []string{"git commit --no-verify **"}}, "git commit -nm x; git commit -n -m x; git commit -m x --no-verify; git -C . commit -n; git commit -anm x; git commit --no-veri -m x", "git commit -m x; git commit -am -n"},
		{policy.Rule{Action: policy.Deny, Run: []string{"git branch -D **"}}, "git branch -d -f x; git branch --delete --force x; git branch -df x; git branch -f -d x; git branch -D x y; git -c a=b branch x -D", "git branch -d x; git branch x"},
		{policy.Rule{Action: policy.Deny, Run: []string{"npm install --global **"}}, "npm i --global x; npm install -g x; npm add x -g; npm --global i x; npm i x --global=true; npm isntall -g x; npx npm i -g x", "npm install x; npm i"},
		{policy.Rule{Action: policy.Deny, Run: []string{"docker run --privileged **"}}, "docker run --privileged x; docker container run --privileged x; docker --debug run -it --privileged x; docker run --rm --privileged=true x; sudo docker run --privileged x", "docker run x; docker ps"},
		{policy.Rule{Action: policy.Deny, Run: []string{"pip install **"}}, "python -mpip install x; python3 -m pip install x; pip3 install x; pip --quiet install x; python3.12 -m pip install x; uv run pip install x", "pip list; pip show install"},
		{policy.Rule{Action: policy.Deny, Run: []string{"git push **"}}, "git send-pack x; git subtree push x; /usr/lib/git-core/git-push; git -C x push; timeout 5 git push; uv run git push; poetry run git push; rustup run stable git push; pipx run git push; /usr/sbin/find . -exec git push ';'", "git pull; git log push"},
		{policy.Rule{Action: policy.Allow, Run: []string{"git push origin feature/*"}}, "git push origin feature/x; git push origin feature/a-b", "git push origin feature/x:main; git push origin +feature/x; git push origin feature/x main; git push --force origin feature/x; git push -f origin feature/x; git push origin feature/../main:x"},
		{policy.Rule{Action: policy.Allow, Run: []string{"kubectl -n dev get **"}}, "kubectl -n dev get pods; kubectl -n dev get pods -o wide", "kubectl -n dev get pods -n prod; kubectl -n dev get pods --namespace=prod; kubectl -n dev get --kubeconfig=evil; kubectl -n dev get pods -nprod; kubectl -n prod get pods; kubectl -n dev delete pods"},
		{policy.Rule{Action: policy.Allow, Run: []string{"kubectl get **"}, RequireFlags: []string{"-n dev"}}, "kubectl -n dev get pods; kubectl get pods -ndev; kubectl get --namespace=dev x; kubectl --namespace dev get x; kubectl get x -n=dev", "kubectl get x; kubectl get x -n dev -n prod; kubectl -n prod get x; kubectl get -n dev x --kubeconfig=evil; kubectl get x -n $NS; kubectl get x -- -n dev"},
		{policy.Rule{Action: policy.Allow, Run: []string{"docker build **"}}, "docker build .; docker build -t x .", "docker build -o dest=/ .; docker build --output=/ .; docker build --secret id=x .; docker buildx build --output /x .; docker -H evil build ."},
		{policy.Rule{Action: policy.Allow, Run: []string{"mocha **", "protoc **", "rustc **"}}, "mocha test; protoc a.proto", "mocha -r ./evil; mocha --require=./evil; protoc --plugin=./evil a; rustc -C linker=./evil a.rs; rustc -Clinker=./evil a.rs; mocha --config evil.js"},
		{policy.Rule{Action: policy.Allow, Run: []string{"psql **", "php **", "java **"}}, "", "psql -c '\\! id'; php -r 'system(1);'; java -javaagent:x.jar Main; psql -f x; php -B 'x'"},
	} {
		row.rule.ID = "mine"
		start := policy.Allow
		if row.rule.Action == policy.Allow {
			start = policy.Ask
		}
		j := judgeOf(t, registry, ws, policy.File{Defaults: policy.Defaults{Bash: start, Read: policy.Allow, Write: policy.Allow, Net: policy.Allow, Unanalysable: policy.Ask, UnknownRead: policy.Allow, UnknownWrite: policy.Allow, UnknownEnv: policy.Allow}, Commands: []policy.Rule{row.rule}})
		for script := range strings.SplitSeq(row.matches, "; ") {
			if script == "" {
				continue
			}
			if got := judged(t, registry, j.Policy, script).Action; (got == policy.Allow) != (row.rule.Action == policy.Allow) {
				t.Errorf("%q: %s: %v", row.rule.Run, script, got)
			}
		}
		for script := range strings.SplitSeq(row.not, "; ") {
			if got := judged(t, registry, j.Policy, script).Action; (got == policy.Allow) == (row.rule.Action == policy.Allow) {
				t.Errorf("%q: not meant: %s: %v", row.rule.Run, script, got)
			}
		}
		for _, f := range j.Lint() {
			if !strings.Contains(f.Problem, "allows more than it names") {
				t.Errorf("%q: %v", row.rule.Run, f)
			}
		}
	}
}

// What a wildcard covers of a program of which nothing is known is named.
func TestWhatSlipsIntoARuleIsNamed(t *testing.T) {
	t.Parallel()
	ws := docsWorkspace(t)
	registry := docsTools(t, ws)
	for pattern, want := range map[string]string{
		"mydb **":        `its flags are not known: a rule about mydb allows all that they can do`,
		"mydb dump **":   `its flags are not known: a rule about mydb`,
		"mydb -v dump *": "", "mydb dump": "", "./own.sh **": "", "go test **": "", "tflint **": "", "ffmpeg **": "", "rspec **": "", "hg log **": "",
	} {
		j := judgeOf(t, registry, ws, policy.File{Defaults: policy.Defaults{Bash: policy.Ask}, Commands: []policy.Rule{{ID: "mine", Action: policy.Allow, Run: []string{pattern}}}})
		var text string
		for _, f := range j.Lint() {
			text += f.Problem
		}
		if !strings.Contains(text, want) || (text == "") != (want == "") {
			t.Errorf("%s: %q", pattern, text)
		}
	}
}
