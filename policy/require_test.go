package policy

import (
	"strings"
	"testing"
)

// A rule that allows a command with "-n dev" does so in every spelling and place, and with
// no other value.
func TestARuleRequiresFlagsWithTheirValues(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Commands: []Rule{
		{ID: "dev", Action: Allow, Run: []string{"kubectl {get,describe,logs} **", "kubectl delete pod *"}, RequireFlags: []string{"-n dev"}, ForbidFlags: []string{"--watch"}},
		{ID: "trial", Action: Allow, Run: []string{"kubectl apply **"}, RequireFlags: []string{"--dry-run=client", "--namespace=dev*"}},
		{ID: "isolated", Action: Allow, Run: []string{"docker run node:*"}, RequireFlags: []string{"--rm", "--network none"}},
		{ID: "own", Action: Allow, Run: []string{"mytool **"}, RequireFlags: []string{"--env=dev", "-q"}},
	}})
	for _, row := range []struct {
		want     Action
		commands string
	}{
		{Allow, `
kubectl -n dev get pods
kubectl get pods -n dev
kubectl get -ndev pods
kubectl --namespace=dev get pods -o wide
kubectl --namespace dev describe pod x
kubectl -n=dev logs x
kubectl -n dev get pods --namespace=dev
kubectl delete -n dev pod x
kubectl apply --dry-run=client -f x.yaml -n dev-1
kubectl --namespace=dev apply -f x.yaml --dry-run=client
docker run --rm --network none node:22
docker run --network=none --rm node:22
mytool x --env=dev -q
mytool -q --env=dev
/usr/bin/kubectl get -n dev pods`},
		{Ask, `
kubectl get pods
kubectl -n prod get pods
kubectl -n dev get pods -n prod
kubectl get pods -n dev --namespace=prod
kubectl -n dev-2 get pods
kubectl -n dev… get pods
kubectl … dev get pods
kubectl -n dev get pods …
kubectl -n dev get pods --watch
kubectl -n dev get pods -A --namesp=prod
kubectl -n dev delete pod x y
kubectl -n dev exec x -- sh
kubectl get pods -- -n dev
kubectl apply -f x.yaml -n dev
kubectl apply --dry-run=none -f x.yaml -n dev
kubectl apply --dry-run -f x.yaml -n dev
kubectl apply --dry-run=client --dry-run=none -f x.yaml -n dev
docker run --rm node:22
docker run --rm --network none --network host node:22
docker run --network none node:22
docker run --rm --network none evil:1
mytool x --env=prod -q
mytool x --env dev -q
mytool x --env=dev
mytool x --env=dev -xq
./kubectl get -n dev pods`},
	} {
		for _, command := range strings.Split(strings.TrimSpace(row.commands), "\n") {
			if d := p.Decide([]Effect{run(command)}); d.Action != row.want {
				t.Errorf("%s: %v by %s, want %v", command, d.Action, d.Rule, row.want)
			}
		}
	}
	for _, flag := range []string{"n dev", "", "-", "--name*=x", "-n {a,b}", "-n a b"} {
		if _, err := Compile(Options{}, File{Commands: []Rule{{ID: "x", Action: Allow, Run: []string{"a"}, RequireFlags: []string{flag}}}}); err == nil {
			t.Errorf("%q is taken for a flag", flag)
		}
	}
}
