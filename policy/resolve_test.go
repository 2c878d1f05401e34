package policy

import (
	"strings"
	"testing"
)

func TestADenialOfAFlagWithItsValueHoldsForEverySpelling(t *testing.T) {
	t.Parallel()
	p := rules(t, Defaults{Bash: Allow}, Rule{ID: "prod", Run: []string{"kubectl ** -n prod **"}})
	decides(t, p, map[string]Action{
		"kubectl -n prod get pods": Deny, "kubectl get pods -n prod": Deny, "kubectl get pods -nprod": Deny, "kubectl get pods --namespace prod": Deny,
		"kubectl --namespace=prod delete pod x": Deny, "kubectl get -n … pods": Deny, "kubectl get pods -n dev": Allow, "kubectl get prod -n dev": Allow, "kubectl get prod": Allow,
	})
}

func TestAnAllowanceOfAValueCoversNoOther(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "dev", Action: Allow, Run: []string{"kubectl -n dev get **"}})
	decides(t, p, map[string]Action{
		"kubectl -n dev get pods": Allow, "kubectl -n dev get pods -o wide": Allow, "kubectl -n dev get pods -n dev": Allow,
		"kubectl -n dev get pods -n prod": Ask, "kubectl -n dev get pods --namespace=prod": Ask, "kubectl -n dev get pods -nprod": Ask, "kubectl -n dev get --kubeconfig evil pods": Ask,
	})
}

func TestABranchIsNoOtherBranchThere(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "feature", Action: Allow, Run: []string{"git push origin feature/*"}})
	decides(t, p, map[string]Action{
		"git push origin feature/x": Allow, "git push origin feature/x:main": Ask, "git push origin +feature/x": Ask, "git push --force origin feature/x": Ask,
		"git push origin feature/x --force": Ask, "git push origin HEAD:main": Ask, "git push origin feature/x main": Ask,
	})
}

func TestADenialHoldsForEveryWayToRunACommand(t *testing.T) {
	t.Parallel()
	p := rules(t, Defaults{Bash: Allow}, Rule{ID: "no", Run: []string{"git push **", "npm publish **", "pip install **"}})
	for command := range strings.Lines(`uv run git push
poetry run git push
rustup run stable git push
pipx run npm publish
git send-pack origin
git subtree push --prefix=a origin b
/usr/lib/git-core/git-push origin
/usr/sbin/find . -exec git push ;
/opt/homebrew/bin/find . -exec git push ;
timeout -k 5 10 git push
env -u HOME A=1 git push
sudo -u x git push
xargs -n1 git push
stdbuf -oL nice -n 5 git push
yarn publish
pnpm publish
python -mpip install x
python3 -m pip install x
npx npm publish
`) {
		command = strings.TrimSpace(command)
		if d := p.Decide([]Effect{run(command)}); d.Action != Deny {
			t.Errorf("%s: %v by %s", command, d.Action, d.Rule)
		}
	}
}

func TestAllowancesOfAProgramCarryNoCode(t *testing.T) {
	t.Parallel()
	var all []string
	for name := range strings.FieldsSeq("kubectl docker mocha protoc psql php java rustc helm git npm") {
		all = append(all, name+" **")
	}
	p := rules(t, asking(), Rule{ID: "all", Action: Allow, Run: all})
	for command := range strings.Lines(`kubectl get --kubeconfig evil pods
docker build -o dest=/ .
mocha -r ./evil
protoc --plugin=protoc-gen-x=./evil a.proto
psql -c x
php -r x
java -javaagent:evil.jar -jar a.jar
rustc -C linker=./evil a.rs
helm template --post-renderer ./evil x
git bisect run ./evil
`) {
		command = strings.TrimSpace(command)
		if d := p.Decide([]Effect{run(command)}); d.Action == Allow {
			t.Errorf("%s: %v by %s", command, d.Action, d.Rule)
		}
	}
}
