package policy

import (
	"strings"
	"testing"
)

func TestDenialsHoldForEverySpellingOfASubcommand(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ pattern, commands string }{
		{"npm publish **", `npm publish
npm --tag next publish
npm --access public publish .
npm --otp 123456 publish
npm --some-option value publish
npm --force true publish
npm --silent --tag next publish
npm pub
npx npm publish
npx -y npm@10 publish
npm exec npm publish
npm x -- npm publish`},
		{"npm run release", `npm run release
npm run-script release
npm rum release
npm urn release
npm runScript release
npm run-sc release
npm run --if-present release
npm --silent run release
npm -w pkg run release
npx npm run release`},
		{"npm run-script release", "npm run release\nnpm rum release"},
		{"npm run test", "npm test\nnpm t\nnpm tst\nnpm run-script test"},
		{"npm test", "npm run test\nnpm t\nnpm urn test"},
		{"npm install **", "npm i x\nnpm add x\nnpm isntall x\nnpm in x\nnpm insta x\nnpm --foo bar i x"},
		{"npm uninstall **", "npm rm x\nnpm un x\nnpm r x\nnpm remove x"},
		{"npm exec **", "npx x\nnpm x y"},
		{"npx prisma migrate **", `npx prisma migrate dev
npx prisma@latest migrate dev
npx --yes prisma@5.1.0 migrate reset
npx -p prisma prisma migrate dev
npm exec prisma migrate dev
npm exec -- prisma@latest migrate dev
npm x prisma migrate
pnpm dlx prisma migrate dev
yarn dlx prisma@next migrate dev
bunx prisma migrate dev`},
		{"npx @acme/tool push", "npx @acme/tool push\nnpx @acme/tool@2 push"},
		{"yarn run deploy", "yarn deploy\nyarn --silent deploy\nyarn workspace web deploy\nyarn workspace web run deploy\nyarn workspaces run deploy"},
		{"yarn deploy **", "yarn run deploy\nyarn --cwd web deploy"},
		{"pnpm run deploy", "pnpm deploy\npnpm run-script deploy\npnpm --filter web deploy\npnpm -r run deploy"},
		{"cargo build **", "cargo b\ncargo +nightly build --release\ncargo --color always b"},
		{"cargo {test,run} **", "cargo t\ncargo r"},
		{"pip install **", "pip3 install x\npip3.12 install x\npython -m pip install x\npython3 -I -m pip install x\npip --proxy p install x\nsudo pip3 install x"},
		{"pip3 install **", "pip install x\npython3.11 -m pip install x"},
		{"pytest **", "python -m pytest x"},
		{"docker rmi **", "docker image rm x\ndocker --context c image remove x\npodman image rm x"},
		{"docker run **", "docker container run x\ndocker -D run x\ndocker --unknown x run y"},
		{"docker image rm **", "docker rmi x"},
		{"docker compose up **", "docker-compose up -d\ndocker compose up"},
		{"docker-compose down **", "docker compose down -v"},
		{"kubectl delete pod **", "kubectl delete po x\nkubectl delete pods x\nkubectl delete pod/x\nkubectl delete svc,po --all\nkubectl --unknown x delete pods y"},
		{"kubectl delete deploy web", "kubectl delete deployments.apps web\nkubectl delete deployment/web"},
		{"gh pr create **", "gh pr new\ngh -R a/b pr create --fill"},
		{"gh pr checkout **", "gh co 12"},
		{"helm uninstall **", "helm del x\nhelm un x"},
		{"git add **", "git stage x"},
		{"go build -mod **", "go build --mod=mod .\ngo build -mod=mod ."},
	} {
		p := rules(t, Defaults{Bash: Allow}, Rule{ID: "no", Run: []string{row.pattern}})
		if strings.HasPrefix(row.pattern, "docker rmi") {
			p = rules(t, Defaults{Bash: Allow}, Rule{ID: "no", Run: []string{row.pattern, "podman rmi **"}})
		}
		for _, command := range strings.Split(row.commands, "\n") {
			if d := p.Decide([]Effect{run(command)}); d.Action != Deny {
				t.Errorf("%q does not deny %q: %v by %s", row.pattern, command, d.Action, d.Rule)
			}
		}
	}
}

func TestDenialsOfASubcommandLeaveOthersAlone(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ pattern, commands string }{
		{"npm publish **", "npm test\nnpm run publish-docs\nnpm --silent run publish\nnpm pack\nnpm ci\nnpm --if-present run publish"},
		{"npm run release", "npm run build\nnpm test\nnpm run release:notes"},
		{"npm install **", "npm ci\nnpm init\nnpm test\nnpm info x"},
		{"npx prisma migrate **", "npx prisma generate\nnpx eslint .\nnpm run migrate"},
		{"git push **", "git --no-pager log push\ngit -C push log\ngit log --author push"},
		{"pip install **", "pip list\npip3 show install-x\npython -m venv x"},
		{"docker rmi **", "docker images\ndocker image ls\ndocker rm x"},
		{"kubectl delete pod **", "kubectl get pod x\nkubectl delete svc x"},
		{"cargo publish **", "cargo build\ncargo p\ncargo --color always test"},
		{"yarn deploy", "yarn build\nyarn run build\nyarn add deploy-tool"},
	} {
		p := rules(t, Defaults{Bash: Allow}, Rule{ID: "no", Run: []string{row.pattern}})
		for _, command := range strings.Split(row.commands, "\n") {
			if d := p.Decide([]Effect{run(command)}); d.Action == Deny {
				t.Errorf("%q denies %q", row.pattern, command)
			}
		}
	}
}

// A name that means the same is no name that was allowed.
func TestAllowingRulesKeepToTheirSpelling(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{ID: "yes", Action: Allow, Run: []string{"npm run build", "npx prisma generate", "pip install x", "docker rmi x"}})
	decidesAll(t, p, Ask, []string{"npm rum build", "npx prisma@latest generate", "npm exec prisma generate", "pip3 install x", "docker image rm x", "npm --tag next run build"}...)
}

func TestFlagsOfGoProgramsHaveOneDashOrTwo(t *testing.T) {
	t.Parallel()
	p := rules(t, asking(), Rule{
		ID: "build", Action: Allow, Run: []string{"go build **", "terraform plan **"}, ForbidFlags: []string{"-mod*", "-destroy"}, PermitFlags: []string{"-ldflags*"},
	})
	decides(t, p, map[string]Action{
		"go build ./...":            Allow,
		"go build -mod=mod ./...":   Ask,
		"go build --mod=mod ./...":  Ask,
		"go build --mod mod ./...":  Ask,
		"go build -ldflags=-s .":    Allow,
		"go build --ldflags=-s .":   Allow,
		"terraform plan --destroy":  Ask,
		"terraform plan -no-color":  Allow,
		"go build --toolexec=./x .": Ask,
	})
}
