package policy

import (
	"strings"
	"testing"
)

func TestPresetsCoverEverydayCommands(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Presets: []string{presetReadOnly, presetWorkspace}})
	for _, command := range strings.Split(strings.TrimSpace(`
ls -la
cat -n a b
head -20 a
head -n 5 a
tail -n +3 a
wc -l …
grep -rn --include=*.go x .
grep -e x -f p a
rg -n x src
find . -name x -type f -print0
find . ( -name a -o -name b ) -exec wc {} ;
sed -n 1,5p a
sed -i s/a/b/g a
sed s|a|b|;s/c/d/2 a
sed s/[[:space:]]*$//;s/[]x]/y/;s/[^]]*//g a
awk {print$1} a
sort -u -k2,2 a
sort -o b a
uniq -c
git status --short
git --no-pager log --oneline -5
git log -n 3 --stat -- a
git diff HEAD~1 -- a
git show v1:a
git branch -a
git branch --list x
git tag -l v*
git remote -v
git stash list
git config --get user.name
mkdir -p a/b
touch a
cp -r a b
mv a b c
rm -rf a
ln -s a b
tee -a a
chmod 644 a
chmod u+x a
truncate -s 0 a
date +%s
jq .a a
tar tf a.tar
python3 --version
/usr/bin/ls
gofmt -l .
du -sh …
test -f a
[ -d a ]
npm ls --depth=0
npm explain lodash
npm pkg get scripts
npm config get registry
npm root -g
pip list
pip3 show -f requests
pip freeze --local
uv --version
rustup --version
terraform version
helm template ./chart -f values.yaml --set a=b
helm lint chart
helm show values ./chart
kubectl version --client
git config user.email
git config --global user.name
git symbolic-ref --short HEAD
git range-diff main~3..main~1 main~2..main
git fsck --no-dangling
git notes show
git bisect log
git apply --check a.patch
git apply --stat --numstat a.patch
git ls-remote --get-url
git archive HEAD
git show :/fix
go version -m build/app
tar tf -
`), "\n") {
		if d := p.Decide([]Effect{run(command)}); d.Action != Allow {
			t.Errorf("%s: %v by %s", command, d.Action, d.Rule)
		}
	}
}

func TestPresetsDoNotCoverWhatRunsOrWritesElsewhere(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Presets: []string{presetReadOnly, presetWorkspace}})
	for _, command := range strings.Split(strings.TrimSpace(`
./ls
/w/ls
python3 a
python3 --version -c x
bash a
git
git push
git -c core.pager=x log
git -C /x status
git --git-dir=x status
git diff --output=x
git diff --ext-diff
git log --textconv
git branch x
git branch -D x
git branch -a x
git tag x
git tag -d x
git stash
git remote add a b
git config --get a --unset b
git config a b
git submodule status
git …
find . -delete
find . -fprint x
find …
find . -na… x
sed -f x a
sed s/a/b/e a
sed s/a/b/w a
sed s/[]/]/g;y/e;abc/e;abc/ a
sed s/[[:alpha:]/]/g;y/e;abc/e;abc/ a
sed s/[[=a=]/]/g;y/e;abc/e;abc/ a
sed 1e
sed 1r a
sed … a
awk system("x")
awk {print>"x"}
awk {print|"x"}
awk -f x
awk -v … x
sort --compress-program=x a
sort -T x a
sort … a
rg --pre x y
rg … x
tree -o x
file -C
xxd -r a b
date -s x
date 0101
hostname x
env -S x
tar xf a
tar tf h:a
tar tf a --to-command=x
chmod 4755 a
chmod u+s a
chmod --reference=x a
jq import"a"as$a;. x
jq -f x
less a
man ls
xargs ls
make
go test
uniq -x a
cp --no-such a b
printf -v x y
unzip a
who x
yarn --version
yarn -v
npm config set a b
npm pkg set a=b
npm ls --prefix x
npm run build
pip install x
pip list --outdated --index-url x
python3 -m pip list
terraform fmt
terraform fmt -recursive
terraform fmt -check -write=true
helm template --post-renderer x c
helm template --output-dir x c
helm show --keyring x
kubectl version
git config edit
git config x.y z
git config --unset x.y
git apply a.patch
git apply --check --apply a.patch
git archive --format=x HEAD
git archive --remote=x HEAD
git ls-remote x
git symbolic-ref HEAD refs/heads/x
git symbolic-ref -d HEAD
git fsck --lost-found
git notes add
git submodule foreach x
`), "\n") {
		if d := p.Decide([]Effect{run(command)}); d.Action == Allow {
			t.Errorf("%s: %v by %s", command, d.Action, d.Rule)
		}
	}
}

func TestReadOnlyPresetDoesNotWrite(t *testing.T) {
	t.Parallel()
	p := compile(t, File{Defaults: asking(), Presets: []string{presetReadOnly}})
	for _, command := range []string{"mkdir a", "rm a", "cp a b", "tee a", "sed -i s/a/b/ a", "sed -ni p a", "sort -o b a", "uniq a b", "touch a", "chmod 644 a"} {
		if d := p.Decide([]Effect{run(command)}); d.Action == Allow {
			t.Errorf("%s: %v by %s", command, d.Action, d.Rule)
		}
	}
}

// shown renders operands for comparison: r and w for read and write, n for net,
// + for a tree, @ for a link itself.
func shown(u usage) string {
	var out []string
	for _, o := range u.Operands {
		s := map[Kind]string{Read: "r", Write: "w", Net: "n"}[o.Kind]
		if o.Tree {
			s += "+"
		}
		if o.Link {
			s += "@"
		}
		s += ":" + o.Word.Text
		if o.Word.Dynamic {
			s += "…"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestOperandsAreDescribed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, want string }{
		{"cat a b", "r:a r:b"},
		{"cat -- -a", "r:-a"},
		{"head -n 5 a", "r:a"},
		{"head -n5 a", "r:a"},
		{"grep x a", "r:a"},
		{"grep -e x a", "r:a"},
		{"grep -f p a", "r:p r:a"},
		{"grep -fp a", "r:p r:a"},
		{"grep --file=p a", "r:p r:a"},
		{"grep --fil p a", "r:p r:a"},
		{"grep -r x", "r+:."},
		{"grep -R x d", "r+:d r:…"},
		{"rg x", "r+:."},
		{"sort -o b a", "w:b r:a"},
		{"sort -ob a", "w:b r:a"},
		{"uniq a b", "r:a w:b"},
		{"cp a b", "r:a w:b w:b/a"},
		{"cp -r a/b c", "r+:a/b w:c w+:c/b"},
		{"cp -t d a", "w+:d r:a"},
		{"cp a/. b", "r:a/. w:b w+:b"},
		{"mv a b", "r+@:a w+@:a w:b w:b/a"},
		{"rm -rf a", "w+@:a"},
		{"ln -s a b", "r+:./a r+:b/a w+:./a w+:b/a w:b w:b/a"},
		{"tee a", "w:a"},
		{"chmod -R 755 a", "w+:a"},
		{"sed -i s/a/b/ a", "r:a w:a w:a"},
		{"sed -i.bak s/a/b/ a", "r:a w:a w:a.bak"},
		{"sed -n -e p a", "r:a"},
		{"find a b -name x", "r+:a r+:b"},
		{"find -name x", "r+:."},
		{"find a -delete", "r+:a w+:a"},
		{"find a -fprint b", "r+:a w:b"},
		{"git show HEAD:a", "r:HEAD:a r:a"},
		{"git diff -- a", "r:a"},
		{"curl -o a http://h/", "w:a n:http://h/"},
		{"curl -d @a http://h/", "r:a n:http://h/"},
		{"curl -sT a http://h/", "r:a n:http://h/"},
		{"git clone https://h/x", "n:https://h/x w+:x"},
		{"git clone https://h/.vscode.git", "n:https://h/.vscode.git w+:.vscode"},
		{"git clone a b/c", "r+:a r+:b/c w+:b/c"},
		{"git mv a .envrc", "r+@:a w+@:a w:.envrc w:.envrc/a"},
		{"git clone git@h:y/x.git", "n:git@h:y/x.git w+:x"},
		{"test -f a", "r:a"},
	} {
		if got := shown(describe(words(c.command))); got != c.want {
			t.Errorf("%s: %s, want %s", c.command, got, c.want)
		}
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add("grep -rn x .")
	f.Add("sed -i s/a/b/ a")
	f.Add("npm --x y ci -ihttps://h/ a@b:c")
	f.Add("tar -C a czf b -- c")
	f.Add("curl -o a -d @b http://h/")
	p := compile(f, File{Defaults: asking(), Presets: []string{presetReadOnly, presetWorkspace}})
	f.Fuzz(func(t *testing.T, command string) {
		argv := words(command)
		describe(argv)
		suspects(argv)
		p.Decide([]Effect{{Kind: Exec, Argv: argv}})
		// A word that could be anything never turns a question into consent.
		if len(argv) > 0 && p.Decide([]Effect{{Kind: Exec, Argv: argv}}).Action != Allow {
			more := append(argv, Word{Dynamic: true})
			if d := p.Decide([]Effect{{Kind: Exec, Argv: more}}); d.Action == Allow && describe(argv).Known && argv[0].Text == "rm" {
				t.Errorf("%s is allowed with an unknown word", command)
			}
		}
	})
}
