package protect_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/quarantine"
)

// A process that opens a directory before it gets a protected name keeps the descriptor.
func TestADescriptorOfWhatIsTakenAwayLeadsNowhere(t *testing.T) {
	t.Parallel()
	p := newProject(t, "")
	c := p.Begin(nil)
	p.sh("mkdir -p w/deep/er; echo x >w/file")
	var held []int
	for _, dir := range []string{"w", "w/deep", "w/deep/er"} {
		fd := must.Get(unix.Open(filepath.Join(p.dir, dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0))(t)
		defer unix.Close(fd)
		held = append(held, fd)
	}
	file := must.Get(os.OpenFile(filepath.Join(p.dir, "w/file"), os.O_WRONLY, 0))(t)
	defer file.Close()
	p.sh("mv w .vscode")
	p.taken(c.End())
	for _, fd := range held {
		if new, err := unix.Openat(fd, "new", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, 0o600); err == nil {
			unix.Close(new)
			t.Error("a file was made in what was taken away")
		}
		if unix.Mkfifoat(fd, "fifo", 0o600) == nil || unix.Symlinkat("/", fd, "link") == nil || unix.Mkdirat(fd, "dir", 0o700) == nil {
			t.Error("something was made in what was taken away")
		}
	}
	must.Get(file.WriteString("later"))(t)
	_ = filepath.WalkDir(p.quar, func(path string, d fs.DirEntry, err error) error {
		if b, _ := os.ReadFile(path); strings.Contains(string(b), "later") {
			t.Errorf("%s was written from outside", path)
		}
		return err
	})
}

func TestWhatIsNoFileIsNotedAndRemoved(t *testing.T) {
	t.Parallel()
	p := newProject(t, "mkdir outside; echo mine >outside/file")
	taken := p.call(`mkdir w; cd w; mkfifo fifo; ln -s ../outside link; ln ../outside/file hard; truncate -s 300M large
mkdir closed; echo x >closed/file; chmod 0 closed; printf x >$'\xff\xfe'; d=d; for i in {1..100}; do d=$d/d; done; mkdir -p $d; echo x >$d/x; cd ..; mv w .vscode`)
	if len(taken) != 1 || taken[0] != ".vscode" {
		t.Fatalf("taken: %v", taken)
	}
	items, err := quarantine.Items(p.quar)
	if err != nil || len(items) != 1 {
		t.Fatalf("%v: %v", items, err)
	}
	note, err := os.ReadFile(filepath.Join(filepath.Dir(items[0].Kept), "not-kept"))
	for _, want := range []string{`".vscode/fifo": a FIFO`, `"../outside"`, `".vscode/large": a file of 314572800 bytes`, "too deep"} {
		if err != nil || !strings.Contains(string(note), want) {
			t.Errorf("the note lacks %s: %v", want, err)
		}
	}
	for _, name := range []string{"hard", "closed/file", "\xff\xfe"} {
		if _, err := os.Lstat(filepath.Join(items[0].Kept, name)); err != nil {
			t.Error(err)
		}
	}
	if b, err := os.ReadFile(p.dir + "/outside/file"); err != nil || string(b) != "mine\n" {
		t.Errorf("%q, %v", b, err)
	}
}
