package policy

import (
	"testing"

	"github.com/toold/toold/shell/programs"
)

func TestARuleHoldsForEverySpellingOfItsFlags(t *testing.T) {
	t.Parallel()
	for pattern, commands := range map[string]map[string]Action{
		"rm -rf **": {
			"rm -rf x": Deny, "rm -r -f x": Deny, "rm -f -r x": Deny, "rm -fr x": Deny, "rm -Rf x": Deny, "rm -fR x": Deny, "rm -rvf x": Deny, "rm -vrf x": Deny, "rm -ivrf x": Deny,
			"rm --recursive --force x": Deny, "rm --force --recursive x": Deny, "rm -r x -f": Deny, "rm x -rf": Deny, "rm x -f -r": Deny, "rm --rec --forc x": Deny, "rm --r --f x": Deny,
			"rm -r --force x": Deny, "rm -f x --recursive": Deny, "/bin/rm -r -f x": Deny, "sudo rm -f -R x": Deny, "rm -f -… x": Deny, "rm -r … x": Deny, "rm -R x --f": Deny,
			"rm -r x": Ask, "rm -f x": Ask, "rm x": Ask, "rm -- -rf": Ask, "rm -r -- -f": Ask, "rm --recursive x": Ask, "rm -v -f x": Ask,
		},
		"rm --recursive --force **": {"rm -rf x": Deny, "rm -Rf x": Deny, "rm -r x -f": Deny, "rm -r x": Ask},
		"rm -fr **":                 {"rm -rf x": Deny, "rm --force -R x": Deny, "rm -f x": Ask},
		"chmod -R 777 **":           {"chmod --recursive 777 x": Deny, "chmod 777 x -R": Deny, "chmod -vR 777 x": Deny, "chmod --rec 777 x": Deny, "chmod 777 x": Ask},
		"git commit --no-verify **": {"git commit -n": Deny, "git commit -nm x": Deny, "git commit -am x -n": Deny, "git commit --no-ver -m x": Deny, "git -C y commit -anm x": Deny, "git commit -a": Ask, "git push -n": Ask},
		"git push --force **":       {"git push -f": Deny, "git push origin -f": Deny, "git push -uf origin x": Deny, "git push --forc": Deny, "git push --force-with-lease=x": Deny, "git push --dry-run": Ask},
		"git clean -fdx **":         {"git clean -f -d -x": Deny, "git clean -xdf": Deny, "git clean --force -dx": Deny, "git clean -dXf": Deny, "git clean -fd": Ask, "git clean -n": Ask},
		"git branch -D **":          {"git branch -d -f x": Deny, "git branch --delete --force x": Deny, "git branch -D x": Deny, "git branch -d x": Ask, "git branch -v": Ask},
		"npm install -g **":         {"npm i --global x": Deny, "npm install x -g": Deny, "npm i --location=global x": Deny, "npm install x": Ask},
		"tar -xzf **":               {"tar -x -z -f a": Deny, "tar --extract --gzip --file=a": Deny, "tar -zxvf a": Deny, "tar -tzf a": Ask},
		"kubectl delete -A **":      {"kubectl delete pods --all-namespaces": Deny, "kubectl delete pods -n x": Ask},
		"curl -d **":                {"curl --data x u": Deny, "curl --data-binary @x u": Deny, "curl -sSd x u": Deny, "curl u": Ask},
		"docker run -it **":         {"docker run -ti x": Deny, "docker run -i -t x": Deny, "docker run --interactive --tty x": Deny, "docker run -d x": Ask},
		"mytool -ab **":             {"mytool -ab": Deny, "mytool -a -b": Deny, "mytool -ba x": Deny, "mytool -a": Ask},
		"terraform destroy **":      {"terraform destroy -auto-approve": Deny, "terraform plan": Ask},
		"go test -exec **":          {"go test --exec=x": Deny, "go test -exec x": Deny, "go test -e -x -c": Ask},
	} {
		p := rules(t, asking(), Rule{ID: "r", Action: Deny, Run: []string{pattern}})
		for command, want := range commands {
			if d := p.Decide([]Effect{run(command)}); d.Action != want {
				t.Errorf("deny %s: %s: %v by %s, want %v", pattern, command, d.Action, d.Rule, want)
			}
		}
	}
}

// What a rule allows is what it names, in this spelling.
func TestAllowingRulesTakeFlagsAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "r", Action: Allow, Run: []string{"rm -rf *", "git commit -m *"}})
	decides(t, p, map[string]Action{
		"rm -rf x": Allow, "rm -fr x": Ask, "rm -r -f x": Ask, "rm -rf x y": Ask, "rm -rvf x": Ask, "git commit -m x": Allow, "git commit -nm x": Ask, "git commit -m x --no-verify": Ask,
	})
}

func TestProgramsWhoseFlagsAreKnown(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]bool{"rm": true, "/usr/bin/rm": true, "go": true, "gmake": true, "mytool": false} {
		if programs.Find(program).KnowsFlags() != want {
			t.Errorf("%s: %v", program, !want)
		}
	}
}
