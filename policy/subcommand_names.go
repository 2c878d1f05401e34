package policy

import (
	"slices"
	"strings"
	"sync"
)

// group are the names of one subcommand, each of one or more words.
type group [][]Word

// subcommandGroups is subcommandNames in parts: for each program the groups, in
// order, by what the names in them begin with.
var subcommandGroups = sync.OnceValue(func() map[string]map[string][]group {
	out := make(map[string]map[string][]group)
	for name, text := range subcommandNames {
		by := make(map[string][]group)
		for line := range strings.SplitSeq(text, "\n") {
			var g group
			for other := range strings.FieldsSeq(line) {
				g = append(g, prepend(other, nil))
			}
			for _, key := range g.keys(name) {
				by[key] = append(by[key], g)
			}
		}
		out[name] = by
	}
	return out
})

// keys returns what the names of a group begin with, each once.
func (g group) keys(program string) (out []string) {
	for _, name := range g {
		if key := groupKey(program, name[0].Text); !slices.Contains(out, key) {
			out = append(out, key)
		}
	}
	return out
}

// groupKey is what a group is found by: the first word of a name, or its first
// letter for npm, which takes the beginning of a name for it.
func groupKey(program, first string) string {
	if program == "npm" {
		return first[:min(1, len(first))]
	}
	return first
}

// groups returns the groups of a program that may have a name which begins with a
// word.
func groups(program, first string) []group {
	return subcommandGroups()[program][groupKey(program, first)]
}

// named returns how many operands are one of the names of a group.
func named(g group, name string, operands []Word) int {
	for _, other := range g {
		if len(operands) >= len(other) && slices.EqualFunc(operands[:len(other)], other, sameText) {
			return len(other)
		}
		if first := operands[0].Text; name == "npm" && len(other) == 1 && len(first) > 1 && strings.HasPrefix(other[0].Text, first) {
			return 1
		}
	}
	return 0
}

func sameText(a, b Word) bool { return a.Text == b.Text }

// subcommandNames lists, for programs, the names that mean the same subcommand: one
// group a line, a slash between the words of one name.
var subcommandNames = map[string]string{
	"npm": `add i in ins inst insta instal install isnt isnta isntal isntall
ci clean-install ic install-clean isntall-clean
install-test it
install-ci-test cit clean-install-test sit
uninstall unlink remove rm r un
update up u upgrade udpate
run run-script rum urn
test t tst run/test run-script/test rum/test urn/test
start run/start run-script/start rum/start urn/start
stop run/stop run-script/stop rum/stop urn/stop
restart run/restart run-script/restart rum/restart urn/restart
exec x
config c
get config/get c/get
set config/set c/set
init create innit
link ln
rebuild rb
ls list la ll
view info show v
search find s se
docs home
bugs issues
owner author
login adduser add-user
dedupe ddp
dist-tag dist-tags
explain why
help hlep
org ogr
version verison`,
	"yarn": `add install/add
list ls
upgrade up
remove rm
global/add global/install`,
	"pnpm": `install i
remove rm uninstall un
update up upgrade
run run-script
test t tst run/test
start run/start
link ln
unlink dislink
rebuild rb
list ls la ll
config c
create init
recursive multi m`,
	"bun":   "add a\ninstall i\nremove rm\nlink ln\ntest t",
	"cargo": "build b\ncheck c\ndoc d\nrun r\ntest t\nremove rm\nclippy lint",
	"git":   "add stage",
	"gh": `pr/list pr/ls
pr/create pr/new
issue/list issue/ls
issue/create issue/new
repo/list repo/ls
repo/create repo/new
release/list release/ls
release/create release/new
run/list run/ls
workflow/list workflow/ls
gist/list gist/ls
gist/create gist/new
label/list label/ls
secret/list secret/ls
secret/delete secret/remove
variable/list variable/ls
variable/delete variable/remove
extension/remove extensions/remove ext/remove
extension/install extensions/install ext/install
codespace cs
attestation at
pr/checkout pr/co co`,
	"helm": "uninstall un del delete\nlist ls\ndependency dep dependencies\ntemplate\nplugin/uninstall plugin/remove plugin/rm\nplugin/install plugin/add",
	"brew": "uninstall remove rm\nlist ls\nupgrade up\ninfo abv",
	"docker": `run container/run
exec container/exec
rm container/rm container/remove
kill container/kill
stop container/stop
start container/start
restart container/restart
create container/create
cp container/cp
commit container/commit
attach container/attach
export container/export
logs container/logs
pause container/pause
unpause container/unpause
rename container/rename
top container/top
stats container/stats
port container/port
diff container/diff
update container/update
wait container/wait
ps container/ls container/list container/ps
images image/ls image/list
rmi image/rm image/remove
build image/build buildx/build builder/build
push image/push
pull image/pull
tag image/tag
save image/save
load image/load
import image/import
history image/history
info system/info
events system/events
volume/rm volume/remove
network/rm network/remove
volume/ls volume/list
network/ls network/list
context/rm context/remove`,
}

// resourceGroups is resourceNames in parts: the names of a kind by each of them.
var resourceGroups = sync.OnceValue(func() map[string][]string {
	out := make(map[string][]string)
	for line := range strings.SplitSeq(resourceNames, "\n") {
		names := strings.Fields(line)
		for _, name := range names {
			out[name] = names
		}
	}
	return out
})

// resourceNames are kubectl's names of kinds of objects, one kind a line.
const resourceNames = `pod pods po
deployment deployments deploy
service services svc
namespace namespaces ns
node nodes no
configmap configmaps cm
secret secrets
serviceaccount serviceaccounts sa
daemonset daemonsets ds
replicaset replicasets rs
replicationcontroller replicationcontrollers rc
statefulset statefulsets sts
ingress ingresses ing
job jobs
cronjob cronjobs cj
event events ev
endpoints ep
persistentvolume persistentvolumes pv
persistentvolumeclaim persistentvolumeclaims pvc
storageclass storageclasses sc
networkpolicy networkpolicies netpol
horizontalpodautoscaler horizontalpodautoscalers hpa
poddisruptionbudget poddisruptionbudgets pdb
customresourcedefinition customresourcedefinitions crd crds
role roles
rolebinding rolebindings
clusterrole clusterroles
clusterrolebinding clusterrolebindings`
