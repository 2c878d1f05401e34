package policy

import (
	"path"
	"strings"
	"testing"
)

// judged decides the paths of a command as they stand in it, from the workspace.
func judged(p *Policy, command string) Action {
	var effects []Effect
	for _, o := range describe(words(command)).Operands {
		e := Effect{Kind: o.Kind, Tree: o.Tree, Part: o.Part, Unknown: o.Word.Dynamic}
		if !e.Unknown {
			e.Path = path.Join("/w", o.Word.Text)
			e.Canonical = e.Path
		}
		effects = append(effects, e)
	}
	if effects == nil {
		return Allow
	}
	return p.Decide(effects).Action
}

func TestWhatPassesByADeniedFileIsNotAsked(t *testing.T) {
	t.Parallel()
	d := asking()
	d.UnknownRead = Allow
	p := compile(t, File{Name: "p.yaml", Defaults: d, Paths: []Rule{
		{ID: "ws", Action: Allow, Paths: []string{"${workspace}/**"}},
		{ID: "dotenv", Paths: []string{"${workspace}/**/.env"}},
		{ID: "pem", Paths: []string{"${workspace}/**/*.pem"}},
	}})
	for command, want := range map[string]Action{
		"find . -name *.go -exec cat {} ; -o ( -name *.pem -o -name *.go ) -exec cat {} ;": Ask,
		"find . -name *.pyc -delete -o ( -name *.env -o -name *.pyc ) -delete":             Deny,

		"find . -name *.ts":                               Allow,
		"find . -name .env -exec cat {} ;":                Deny,
		"find . -delete":                                  Deny,
		"find . -name *.go -exec cat {} ;":                Allow,
		"find . -name *.pem -exec cat {} +":               Ask,
		"find . -type f -name a.go -exec cat {} ;":        Allow,
		"find . -name src.go -exec grep -r x {} ;":        Ask, // it may be a folder
		"find . -name *.go -o -name *.pem -exec cat {} ;": Ask,
		"find . ! -name *.go -exec cat {} ;":              Ask,
		"find . -exec cat {} ; -name *.go":                Ask,
		"find . -name *.go -exec cat {} ; -exec x ;":      Allow,
		"find . -name *.pyc -delete":                      Allow,
		"find . -iname *.PEM -exec cat {} +":              Ask,
		"find . -type f -iname .ENV -delete":              Deny,
		"find . -iname *.PYC -delete":                     Allow,
		"find . -iname .GIT -delete":                      Deny,
		"find . -iname *.GIT -delete":                     Deny,
		"find . -type f -name .DS_Store -delete":          Allow,
		"find . -name .env -delete":                       Deny,
		"find . -delete -name *.pyc":                      Deny,
		"find . -name *.pyc -o -delete":                   Deny,
		"find . -name config -delete":                     Deny,
		"find . -name .git -delete":                       Deny,
		"ls -R":                                           Allow,
		"ls -R .":                                         Allow,
		"tree":                                            Allow,
		"tree -L 2 .":                                     Allow,
		"du -sh .":                                        Allow,
		"fd x":                                            Allow,
		"grep -rn x .":                                    Ask,
		"grep -rn x --include=*.go .":                     Allow,
		"grep -rn --include=*.go --include=*.ts x":        Allow,
		"grep -rn --include *.go x .":                     Allow,
		"grep -rn --include=*.pem x .":                    Ask,
		"grep -rn --include=*env x .":                     Ask,
		"grep -rn --include=* x .":                        Ask,
		"grep -rn --include=…":                            Ask,
		"grep -rn --include=*.go --include=.env x .":      Ask,
		"grep -rn --exclude=x --include=*.go x .":         Ask, // what no pattern names is read then
		"grep -rn --include=*.go --exclude=x x .":         Allow,
		"grep -rn --exclude-from=x --include=*.go .":      Ask,
		"grep -rn --incl=*.go x .":                        Ask,
		"rg x":                                            Ask, // .ignore may name hidden files
		"rg -g *.go x":                                    Allow,
		"rg -g *.{go,ts} x":                               Allow,
		"rg -g !*.go x":                                   Ask,
		"rg -g *.go -g .e* x":                             Ask,
		"gofmt -l .":                                      Allow,
		"gofmt -w .":                                      Allow,
		"cat .env":                                        Deny,
		"ls .env":                                         Deny,
		"tar czf src.tgz .":                               Ask,
		"tar czf src.tgz src":                             Allow, // as for grep -r src
		"tar czf a.pem a.txt":                             Deny,
	} {
		if got := judged(p, command); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func TestADeniedFolderIsNotListedOrFormatted(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Name: "p.yaml", Defaults: asking(), Paths: []Rule{
		{ID: "ws", Action: Allow, Paths: []string{"${workspace}/**"}},
		{ID: "secrets", Paths: []string{"${workspace}/secrets/**"}},
	}})
	for command, want := range map[string]Action{
		"find . -name x":              Ask,
		"find src -name x":            Allow,
		"ls -R .":                     Ask,
		"ls secrets":                  Deny,
		"du -sh .":                    Ask,
		"grep -r --include=*.go x .":  Ask,
		"gofmt -l .":                  Ask,
		"gofmt -w .":                  Deny,
		"gofmt -w src":                Allow,
		"gofmt -w .git/hooks/x.go":    Deny, // named itself, by a built-in rule
		"gofmt -w .git/hooks/install": Deny,
	} {
		if got := judged(p, command); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func TestTarThatPacksReadsWhatItPacks(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"tar czf src.tgz .":                  "write src.tgz; read+ .",
		"tar -czf src.tgz a b":               "write src.tgz; read+ a; read+ b",
		"tar -c -f src.tar --exclude=.git .": "write src.tar; read+ .",
		"tar --create --file=x.tar a":        "write x.tar; read+ a",
		"tar czf x.tgz -C src .":             "write x.tgz; read+ src/.",
		"tar -C src -czf x.tgz /a":           "write x.tgz; read+ /a",
		"tar czf x.tgz …":                    "write+ x.tgz; read+ x.tgz; write+ …; read+ …",
		"tar czf x.tgz --remove-files a":     "write x.tgz; read+ a; write+ a",
		"tar xzf x.tgz":                      "write+ x.tgz; read+ x.tgz",
		"tar czf h:x.tgz a":                  "net h:x.tgz; write+ h:x.tgz; read+ h:x.tgz; write+ a; read+ a",
		"tar tf x.tgz":                       "read+ x.tgz; read+ x.tgz",
		"tar cf x.tar -T list":               "write+ x.tar; read+ x.tar; write+ list; read+ list",
		"tar czf x.tgz --to-command=sh a":    "write+ x.tgz; read+ x.tgz; write+ a; read+ a",
	} {
		if got := strings.Join(operands(command), "; "); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
