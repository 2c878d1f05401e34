package shell

import (
	"strings"
	"testing"

	"github.com/toold/toold/policy"
)

// A symbolic link only names its target, which is written only when something is written through a link.
func TestTheTargetOfALinkIsWrittenThroughTheLink(t *testing.T) {
	t.Parallel()
	f := careful()
	f.Defaults.Read = policy.Allow
	f.Paths = append(f.Paths, policy.Rule{ID: "sources", Action: policy.Deny, Paths: []string{"${workspace}/src/**"}, Ops: []policy.Kind{policy.Write}})
	in, out := confined(t, f)
	for _, script := range []string{
		"ln -s /usr/bin/python3 python", "ln -sf /usr/bin/python3 python", "ln -sfn /usr/share conf", "ln --symbolic /etc/hosts h", "ln -st . /etc/hosts", "ln -sr /etc/hosts h", "ln -s -f -v /etc/hosts h",
		"ln -s src s", "ln -s ../src/main.go template/main.go", "ln -s /etc/hosts h; cat h; echo x > a.txt", "ln -s /etc/hosts h; touch h2 hh/x; mkdir -p d/h", "mkdir -p bin && ln -s /usr/bin/python3 bin/python && echo ok > bin/log",
		"for t in python3 pip3; do ln -s /usr/bin/$t $t; done", "ln -s /etc/hosts h; [ -L h ] && readlink h",
	} {
		for _, d := range []policy.Decision{in(script), out(script)} {
			if d.Action != policy.Allow {
				t.Errorf("%s: %v by %s: %s", script, d.Action, d.Rule, d.Reason)
			}
		}
	}
	if d := in("ln -s /etc/hosts h; rm h"); d.Action == policy.Deny {
		t.Errorf("a link that is removed: %v by %s", d.Action, d.Rule)
	}
	for _, script := range []string{
		"ln -s /etc/passwd p; echo x > p", "echo x > p; ln -sf /etc/passwd p", "(sleep 1; echo x > p) & ln -s /etc/passwd p", "ln -s /etc/passwd p | tee p", "ln -s /etc/passwd p; tee p", "ln -s /etc/passwd p; cp a.txt p", "ln -sr /etc/passwd p; echo x > p",
		"ln -s /etc e; touch e/x", "ln -s /etc e; cd e; touch x", "ln -s /etc e && cd e && echo x > hosts", "ln -s /etc e; ln -s a e", "for i in 1 2; do ln -s /etc/cron.d c; done", "ln -s a e & ln -s /etc e", "ln -s /etc e; rm -rf e/x", "ln -s /etc e; rm -rf e/",
		"ln -s q p; ln -s /etc/passwd q; echo x > p", "ln -s . q; ln -s /etc/passwd p; echo x > q/p", "mkdir d; ln -s /etc/passwd d/p; cp -r template/. d", "ln -s /etc/passwd P; echo x > p", "ln -s /etc/passwd p; echo x > $PWD/./p", "ln -s /etc/passwd p; echo x > /proc/self/cwd/p",
		"f() { echo x > p; }; ln -s /etc/passwd p; f", "trap 'echo x > p' EXIT; ln -s /etc/passwd p", "bash -c 'ln -s /etc/passwd p'; echo x > p", "ln -s /etc/passwd p; bash -c 'echo x > p'", "ln -s /etc/passwd p; x=p; echo x > $x",
		"ln -s src s; echo x > s/main.go", "ln -s src s; sed -i s/a/b/ s/main.go", "ln -s src/main.go m; cp a.txt m",
		// What is not followed may write through any link.
		strings.Repeat("ln -s a.txt b; ", 70) + "ln -s src/main.go p; echo x > p", "ln -s src/main.go p; " + strings.Repeat("true; ", 4000) + "echo x > p", "ln -s src/main.go p; echo \"$(cat n)\" | bash",
		// These may be hard links.
		"ln /etc/hosts h", "ln src/main.go h", "ln -S -s src/main.go h", "ln src/main.go -s h", "ln $x src/main.go h",
	} {
		for _, d := range []policy.Decision{in(script), out(script)} {
			if d.Action != policy.Deny {
				t.Errorf("%s: %v by %s", script, d.Action, d.Rule)
			}
		}
	}
	for _, script := range []string{"ln -s /etc/passwd p; mv p q; echo x > q", "ln -s /etc/passwd p; ln p q; echo x > q", "ln -s /etc/passwd p; cp -a p q; echo x > q", "mkdir t d; ln -s ../src t/h; tar c t | tar x -C d; echo x > d/t/h/main.go", "ln -s /etc/passwd p; read x; echo y > \"$x\"", "x=$(mktemp -u p.X); ln -s /etc/passwd \"$x\"; echo y > \"$x\""} {
		if d := out(script); d.Action == policy.Allow {
			t.Errorf("%s: allowed by %s", script, d.Rule)
		}
	}
}
