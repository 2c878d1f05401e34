package check

import (
	"encoding/json"

	"github.com/toold/toold/policy"
)

// everyday are commands by which policies are compared.
func everyday() []string {
	return []string{
		"make", "make test", "./script.sh", "go build ./...", "go test ./...", "npm test", "npm run build", "npm ci", "pytest -q", "python3 main.py",
		"cargo build", "cargo test", "mvn -o test", "gcc -o app main.c", "git add -A", "git commit -m x", "git checkout -b topic", "git stash",
		"git reset --hard", "git clean -fdx", "git checkout -- .", "git stash drop", "git push", "git push --force", "npm publish",
		"kubectl apply -f x.yaml", "terraform apply", "docker push x", "curl https://example.org", "cat .env", "export A=1", "tar xzf x.tgz", "for f in *.tmp; do rm \"$f\"; done",
	}
}

// Shift is an everyday command that two policies decide otherwise.
type Shift struct {
	Command string        `json:"command"`
	Before  policy.Action `json:"before"`
	After   policy.Action `json:"after"`
	Rule    string        `json:"rule"`
}

// Shifts returns the everyday commands that next decides otherwise than j.
func (j *Judge) Shifts(next *Judge) (list []Shift) {
	for _, command := range everyday() {
		arguments, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			continue
		}
		effects, err := j.Effects("bash", arguments)
		if err != nil {
			continue
		}
		before, after := j.Decide(effects), next.Decide(effects)
		if before.Action != after.Action {
			list = append(list, Shift{command, before.Action, after.Action, after.Rule})
		}
	}
	return list
}
