package executor_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toold/toold/executor"
	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox"
)

// inOneHelper runs a command twice in the same helper, with change in between, and returns what
// the second one printed. The workspace is a new one each time it has to try again.
func inOneHelper(t *testing.T, command func() executor.Command, change func(c *executor.Command)) string {
	t.Helper()
	for {
		p := executor.NewPool(0, nil)
		c := command()
		first, one := inSlot(t, p, c)
		for p.Idle() == 0 && lives(one) {
			runtime.Gosched()
		}
		change(&c)
		second, two := inSlot(t, p, c)
		p.Close()
		if one == two {
			return first + "-\n" + second
		}
	}
}

func noError(t *testing.T, errs ...error) {
	t.Helper()
	must.Do(t, errors.Join(errs...))
}

// moveAndLink gives a file another name, which then gets the old one. The identity of what the path
// leads to stays.
func moveAndLink(t *testing.T, path string) {
	t.Helper()
	noError(t, os.Link(path, path+".new"), os.Rename(path, path+".old"), os.Rename(path+".new", path))
}

func write(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) }

// A view serves several calls, but never shows what would be hidden, masked or read-only in a
// new one.
func TestAViewIsMadeAnewWhenWhatItIsMadeFromHasChanged(t *testing.T) {
	t.Parallel()
	const secret = "secret\n"
	for name, change := range map[string]func(t *testing.T, c *executor.Command, home string){
		"nothing": func(*testing.T, *executor.Command, string) {},
		"a hidden path appears": func(t *testing.T, _ *executor.Command, home string) {
			noError(t, write(home+"/later", secret))
		},
		"a hidden file is replaced": func(t *testing.T, _ *executor.Command, home string) {
			noError(t, write(home+"/new", secret), os.Rename(home+"/new", home+"/key"))
		},
		"a hidden file is removed, and its other name takes its place": func(t *testing.T, _ *executor.Command, home string) {
			noError(t, os.Link(home+"/key", home+"/new"), os.Remove(home+"/key"), os.Rename(home+"/new", home+"/key"))
		},
		"a masked file is removed, and its other name takes its place": func(t *testing.T, c *executor.Command, _ string) {
			noError(t, os.Link(c.Dir+"/.env", c.Dir+"/new"), os.Remove(c.Dir+"/.env"), os.Rename(c.Dir+"/new", c.Dir+"/.env"))
		},
		"a hidden file is moved, and its other name takes its place": func(t *testing.T, _ *executor.Command, home string) {
			moveAndLink(t, home+"/key")
		},
		"a masked file is moved, and its other name takes its place": func(t *testing.T, c *executor.Command, _ string) {
			moveAndLink(t, c.Dir+"/.env")
		},
		"a protected file is moved, and its other name takes its place": func(t *testing.T, c *executor.Command, _ string) {
			moveAndLink(t, c.Dir+"/git/config")
		},
		"a hidden link leads to another name of the file": func(t *testing.T, _ *executor.Command, home string) {
			noError(t, os.Link(home+"/key", home+"/new"), os.Remove(home+"/link"), os.Symlink("new", home+"/link"))
		},
		"the directory of a protected file is replaced, and the file moved": func(t *testing.T, c *executor.Command, _ string) {
			dir := c.Dir + "/git"
			noError(t, os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o755), os.Rename(dir+".old/config", dir+"/config"))
		},
		"a hidden link leads elsewhere": func(t *testing.T, _ *executor.Command, home string) {
			noError(t, os.Remove(home+"/link"), os.Symlink("plain", home+"/link"))
		},
		"the workspace is replaced": func(t *testing.T, c *executor.Command, _ string) {
			noError(t, os.Rename(c.Dir, c.Dir+".old"), os.MkdirAll(c.Dir+"/git", 0o755), write(c.Dir+"/.env", secret), write(c.Dir+"/git/config", "kept\n"))
		},
		"one more file is masked": func(t *testing.T, c *executor.Command, home string) {
			noError(t, write(home+"/more", secret))
			masks := sandbox.MaskSet{Hidden: []sandbox.Mask{{Path: home + "/more"}}}
			c.Sandbox.Masks = c.Sandbox.Masks.With(&masks)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var home string
			command := func() executor.Command {
				c := in(t, executor.Off, "")
				var err error
				if home, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
					t.Fatal(err)
				}
				noError(t, write(home+"/key", secret), write(home+"/plain", secret), os.Symlink("key", home+"/link"),
					write(c.Dir+"/.env", secret), os.Mkdir(c.Dir+"/git", 0o755), write(c.Dir+"/git/config", "kept\n"))
				c.Sandbox.Write = []string{home}
				c.Sandbox.Hide = []string{home + "/key", home + "/later", home + "/link"}
				c.Sandbox.Protect = []string{c.Dir + "/git/config"}
				c.Sandbox.Masks = &sandbox.MaskSet{Hidden: []sandbox.Mask{{Path: c.Dir + "/.env"}}}
				c.Script = "cat " + home + `/{key,later,link,more} .env 2>/dev/null; echo changed 2>/dev/null >git/config; mv git elsewhere 2>/dev/null
cat git/config; echo mine >/tmp/f; ls -A /tmp | grep -v Test; touch here && echo made`
				return c
			}
			const want = "kept\nf\nmade\n"
			got := inOneHelper(t, command, func(c *executor.Command) { change(t, c, home) })
			must.Match(t, want+"-\n"+want, got)
		})
	}
}

func TestAViewThatCanBeUsedAgainIsNotMadeAnew(t *testing.T) {
	t.Parallel()
	for _, mode := range terminals {
		c := in(t, mode, `stat -c %w /dev; tty; test -e /dev/console && stat -c %t /dev/console; (: >/dev/tty) 2>/dev/null && echo controls; ps -o tpgid= $$ | grep -c -- -1`)
		got := inOneHelper(t, func() executor.Command { return c }, func(*executor.Command) {})
		half := len(got) / 2
		if one, two := got[:half-1], got[half+1:]; one != two {
			t.Errorf("%s: the second call sees another /dev: %q", mode, got)
		}
	}
}

// The mounts in private file systems are made for each call.
func TestAViewThatIsKeptHidesAndShowsWhatAFreshOneDoes(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, "")
	shm, err := os.MkdirTemp("/dev/shm", "")
	noError(t, err)
	t.Cleanup(func() { os.RemoveAll(shm) })
	inRoot, inShm := c.Dir+"/sock", shm+"/sock"
	for _, path := range []string{inRoot, inShm} {
		l, err := net.Listen("unix", path)
		noError(t, err)
		t.Cleanup(func() { l.Close() })
	}
	c.Script = "exec 2>&1; ls -A sock; touch /var/tmp/x /dev/shm/x; ls -A /run /var/tmp /dev/shm"
	for name, change := range map[string]func(p *sandbox.Profile){
		"a socket below a root in /tmp":     func(p *sandbox.Profile) { p.Sockets = []string{inRoot} },
		"private file systems are hidden":   func(p *sandbox.Profile) { p.Hide = []string{"/run", "/var/tmp", "/dev/shm"} },
		"a socket below a hidden directory": func(p *sandbox.Profile) { p.Sockets, p.Hide = []string{inShm}, []string{"/dev/shm"} },
		"a socket":                          func(p *sandbox.Profile) { p.Sockets = []string{inShm} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := c
			change(&c.Sandbox)
			fresh, _ := run(t, c)
			got := inOneHelper(t, func() executor.Command { return c }, func(*executor.Command) {})
			if diff := cmp.Diff(fresh.Out+"-\n"+fresh.Out, got); diff != "" {
				t.Errorf("(-fresh +kept)\n%s", diff)
			}
		})
	}
}

// The devices are the machine's.
func TestACallCannotChangeTheModeOfADevice(t *testing.T) {
	t.Parallel()
	c := in(t, executor.Off, "for name in null zero full random urandom tty; do chmod 666 /dev/$name 2>/dev/null && echo changed; done; echo x >/dev/null")
	expect(t, c, result{})
}
