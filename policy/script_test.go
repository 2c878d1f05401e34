package policy

import "testing"

// The file of a program that an interpreter runs is that program.
func TestARuleAboutAProgramHoldsForItsFile(t *testing.T) {
	t.Parallel()
	p := rules(t, Defaults{Bash: Allow, Read: Allow, Write: Allow, Net: Allow}, Rule{ID: "no", Action: Deny, Run: []string{
		"{npm,pnpm,yarn} publish **", "pip install **", "composer update **", "sync now",
	}, Except: []string{"npm publish --dry-run **"}})
	decidesAll(t, p, Deny,
		"node /usr/lib/node_modules/npm/bin/npm-cli.js publish", "node --no-warnings /usr/bin/npm publish ./x", "node node_modules/.bin/npm --tag next publish",
		"/usr/lib/node_modules/npm/bin/npm-cli.js publish", "node .yarn/releases/yarn-4.1.0.cjs publish", "node node_modules/pnpm/bin/pnpm.cjs publish",
		"bash -x /usr/bin/npm publish", "python3 -u /usr/bin/pip install x", "php composer.phar update", "unheard-of yarn publish", "tsup --onSuccess pnpm publish", "env node /usr/bin/npm publish", "nohup nodejs /usr/bin/npm publish")
	decidesAll(t, p, Allow,
		"node publish.js", "node npm.js publish", "python3 sync.py now", "node /usr/bin/npm ci", "node /usr/bin/npm publish --dry-run", "node node_modules/npm/bin/npm-cli.js run publish",
		"python3 -m sync")
}
