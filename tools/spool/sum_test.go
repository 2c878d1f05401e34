package spool

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/tools"
)

// The sum of what was written is that of the files, also of masks and of a limit, and of no other ones.
func TestTheSumOfACaptureIsThatOfItsFiles(t *testing.T) {
	t.Parallel()
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	for name, write := range map[string]func(c *Capture){
		"one stream":  func(c *Capture) { c.Write(tools.Stdout, []byte("hello\n")) },
		"the other":   func(c *Capture) { c.Write(tools.Stderr, []byte("hello\n")) },
		"both":        func(c *Capture) { c.Write(tools.Stdout, []byte("a\n")); c.Write(tools.Stderr, []byte("b\n")) },
		"much":        func(c *Capture) { c.Write(tools.Stdout, []byte(strings.Repeat("0123456789", 10_000))) },
		"more":        func(c *Capture) { c.Write(tools.Stdout, []byte(strings.Repeat("0123456789", 20_000))) },
		"many pieces": func(c *Capture) { scriptOf(c, strings.Repeat("some words\n", 9000)) },
		"many tokens": func(c *Capture) { scriptOf(c, strings.Repeat("some words "+token+"\n", 900)) },
		"a long one": func(c *Capture) {
			scriptOf(c, "ey"+"J"+strings.Repeat("aB3dE6", 160)+"."+"ey"+"J"+strings.Repeat("aB3dE6", 900))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "call")
			c := NewCapture(Options{Dir: dir, SpoolBytes: 150_000})
			write(c)
			c.Close()
			sum, err := Sum(dir)
			if err != nil || sum == "" || sum != c.Sum() || sum != c.Sum() {
				t.Errorf("%x of the files, %x of what was written, %v", sum, c.Sum(), err)
			}
			files := must.Get(filepath.Glob(filepath.Join(dir, "*")))(t)
			for _, f := range files {
				text := must.Get(os.ReadFile(f))(t)
				text[len(text)/2] ^= 1
				must.Do(t, os.WriteFile(f, text, 0o600))
				if now, err := Sum(dir); err != nil || now == sum {
					t.Errorf("%s was changed: %x, %v", filepath.Base(f), now, err)
				}
				text[len(text)/2] ^= 1
				must.Do(t, os.WriteFile(f, text, 0o600))
			}
			for _, change := range []func(string) error{func(f string) error { return os.Truncate(f, 0) }, os.Remove} {
				for _, f := range files {
					must.Do(t, change(f))
				}
				if now, err := Sum(dir); err != nil || now == "" || now == sum {
					t.Errorf("all files were emptied or removed: %x, %v", now, err)
				}
			}
			must.Do(t, Remove(dir))
			if sum, err := Sum(dir); err != nil || sum != "" {
				t.Errorf("it was removed: %x, %v", sum, err)
			}
		})
	}
}

// scriptOf writes a text in pieces of many sizes.
func scriptOf(c *Capture, text string) {
	for i := 0; text != ""; i++ {
		n := min(len(text), 1+i*37%1500)
		c.Write(tools.Stdout, []byte(text[:n]))
		text = text[n:]
	}
}

// What a crash leaves of a removal is listed, under a name of no call, and removed in turn.
func TestWhatIsLeftOfARemovalIsRemoved(t *testing.T) {
	t.Parallel()
	all := t.TempDir()
	for _, name := range []string{"7", "-7"} {
		c := NewCapture(Options{Dir: filepath.Join(all, name)})
		c.Write(tools.Stdout, []byte(name))
		c.Close()
	}
	list, err := List(all)
	if err != nil || len(list) != 2 {
		t.Fatalf("%v are there, %v", list, err)
	}
	for _, i := range list {
		if err := Remove(filepath.Join(all, i.Name)); err != nil {
			t.Error(err)
		}
	}
	if list, err := List(all); err != nil || len(list) != 0 {
		t.Errorf("%v are left, %v", list, err)
	}
	if err := Remove(filepath.Join(all, "7")); err != nil {
		t.Errorf("nothing is there: %v", err)
	}
}

// What is no file is neither waited for nor read for ever.
func TestWhatIsNoFileIsNotRead(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(path string) error{
		"a pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"a device":    func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		dir := filepath.Join(t.TempDir(), "call")
		c := NewCapture(Options{Dir: dir})
		c.Write(tools.Stdout, []byte("a"))
		c.Write(tools.Stderr, []byte("b"))
		c.Close()
		for _, file := range fileNames {
			path := filepath.Join(dir, file)
			must.Do(t, errors.Join(os.Remove(path), make(path)))
			if sum, err := Sum(dir); err != nil || sum == "" || sum == c.Sum() {
				t.Errorf("%s at %s: sum %x, %v", name, file, sum, err)
			}
		}
		s := must.Get(Open(dir))(t)
		for _, stream := range []tools.Stream{tools.Stdout, tools.Stderr, tools.Combined} {
			if p, _ := s.ReadAt(stream, 0, 10); len(p) > 0 {
				t.Errorf("%s: read %q of %v", name, p, stream)
			}
		}
	}
}

// A secret that was written before it was recognised is not kept when the disk takes no mask. The
// child process cannot write beyond a first byte.
func TestASecretThatCannotBeMaskedIsNotKept(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("SPOOL_DIR")
	if dir == "" {
		dir := filepath.Join(t.TempDir(), "call")
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		c.Env = append(os.Environ(), "SPOOL_DIR="+dir)
		if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS: "+t.Name()) {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	token := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	c := NewCapture(Options{Dir: dir, Call: "call_1"})
	c.Write(tools.Stdout, []byte("some words "+token[:20]))
	c.Write(tools.Stderr, []byte("more\n"))
	if kept, err := os.ReadFile(filepath.Join(dir, "stdout")); err != nil || !strings.Contains(string(kept), token[:20]) {
		t.Fatalf("kept is %q, %v", kept, err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	var limit syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	limit.Cur = 1
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	c.Write(tools.Stdout, []byte(token[20:]+" and more\n"))
	c.Write(tools.Stdout, []byte(token+"\n"))
	c.Close()
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is kept: %v", err)
	}
	if c.Sum() != Nothing() {
		t.Errorf("the sum %x is of something", c.Sum())
	}
	if text, _ := c.Text(tools.Stdout, 20); strings.Contains(string(text), "bash_output") {
		t.Errorf("the text says that it is kept: %s", text)
	}
}
