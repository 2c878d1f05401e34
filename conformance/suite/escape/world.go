//go:build linux

package escape

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/toold/toold/conformance/suite"
)

// A world is this program, started again in namespaces of its own, so that a case does not attack the machine. The first
// stage has the capabilities to make the world and drops them; the second, an ordinary process or root's, plays the case.
//
// Root gets a user namespace only if it needs one: a call of root attacks with all rights of root.
const worldVariable = "TOOLD_CONFORMANCE_WORLD"

// World is a case and the world in which it is played.
type World struct {
	Made     bool // the second stage
	Base     string
	Case     Case
	Target   string            // who plays it; see InWorld
	Programs map[string]string // by the name that each has in the directory bin of the world; e is the helper of the cases
	Keep     []string          // files and folders that stay where they are, although what is around them goes
	Masked   bool              // calls get no /proc of their own: tier B
	Bare     bool              // an ordinary user who can make no namespaces: tier C
	Bwrap    bool              // bwrap makes the namespaces of calls: tier A-bwrap
	User     bool              // an ordinary user plays it, whose home is that of the world
	Profile  string            // replaces that of the case, if any
}

// program is where a program is.
func (w World) program(name string) string { return w.Programs[name] }

// Outcome is what became of a case.
type Outcome struct {
	Verdict string // escaped, broken, blocked, usable or not applicable
	Why     string
	Output  string // the end of what the call returned
}

// Bad reports whether the sandbox has failed.
func (o Outcome) Bad() bool { return o.Verdict == "escaped" || o.Verdict == "broken" }

// Play plays the case in a world of its own. The program must call InWorld first of all.
func (w World) Play(ctx context.Context) (Outcome, error) {
	for _, dir := range []string{"/mnt", "/srv", "/opt", "/home"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			w.Base = dir
			break
		}
	}
	text, err := json.Marshal(w)
	if err != nil {
		return Outcome{}, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), worldVariable+"="+string(text))
	cmd.SysProcAttr = WorldAttributes(rootNeedsNoNamespace() && !w.Case.stopsNamespaces() && !w.Bare)
	if w.Bare {
		cmd.SysProcAttr.UidMappings[0].ContainerID, cmd.SysProcAttr.GidMappings[0].ContainerID = ordinary, ordinary
	}
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		return Outcome{}, fmt.Errorf("the world ended: %w\n%s", err, errors.String())
	}
	var got Outcome
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		return Outcome{}, fmt.Errorf("the world said %q: %w\n%s", out.String(), err, errors.String())
	}
	return got, nil
}

// ordinary is the id of an ordinary user.
const ordinary = 1000

// stopsNamespaces reports whether a case forbids user namespaces, which must hold in
// its world only.
func (c Case) stopsNamespaces() bool {
	return strings.HasPrefix(c.Setup, "user.max_user_namespaces=0")
}

// WorldAttributes are the namespaces of a world; bare: without a user namespace.
func WorldAttributes(bare bool) *syscall.SysProcAttr {
	sys := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
		Setsid:     true,
	}
	if bare {
		return sys
	}
	const netAdmin, sysAdmin, sysResource = 12, 21, 24
	sys.Cloneflags |= syscall.CLONE_NEWUSER
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
	sys.AmbientCaps = []uintptr{netAdmin, sysAdmin, sysResource}
	return sys
}

// rootNeedsNoNamespace reports whether this process may make the other namespaces
// without a user namespace.
func rootNeedsNoNamespace() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = WorldAttributes(true)
	return os.Getuid() == 0 && cmd.Run() == nil
}

// InWorld plays the case if this process was started for a world, and reports whether it was. open returns the target of
// a World.
func InWorld(open func(w World) suite.Target) bool {
	text := os.Getenv(worldVariable)
	if text == "" {
		return false
	}
	var w World
	err := json.Unmarshal([]byte(text), &w)
	if err == nil && !w.Made {
		runtime.LockOSThread()
		err = w.make()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot make the world:", err)
		os.Exit(1)
	}
	os.Unsetenv(worldVariable)
	json.NewEncoder(os.Stdout).Encode(play(context.Background(), w, open(w)))
	return true
}

// make makes the file systems and the network of a world and executes its second stage. It returns only on failure.
func (w World) make() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	list, err := w.open()
	if err != nil {
		return err
	}
	resolver, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return err
	}
	if err := w.mountAll(list); err != nil {
		return err
	}
	if err := w.resolve(resolver); err != nil {
		return err
	}
	if err := MakeNetwork(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if err := w.degrade(); err != nil {
		return err
	}
	if err := w.prepare(); err != nil {
		return fmt.Errorf("what the case needs: %w", err)
	}
	w.Made = true
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	os.Setenv(worldVariable, string(text))
	const ambient, clearAll = 47, 4 // prctl(2), PR_CAP_AMBIENT
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, ambient, clearAll, 0, 0, 0, 0); e != 0 {
		return e
	}
	return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
}

// mountAll makes /proc, the terminals, the private directories and that of the case, with its
// programs.
func (w *World) mountAll(list []kept) error {
	mounts := []struct{ kind, at, options string }{
		{"tmpfs", w.Base, "mode=755"},
		{"tmpfs", "/tmp", "mode=1777"},
		{"tmpfs", "/run", "mode=755"},
		{"tmpfs", "/dev/shm", "mode=1777"},
		{"proc", "/proc", ""},
		// An attack that gets out writes to every terminal that it finds, also to
		// those of other tests.
		{"devpts", "/dev/pts", "ptmxmode=0666,mode=0620"},
	}
	for _, m := range mounts {
		if err := syscall.Mount(m.kind, m.at, m.kind, 0, m.options); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	for _, k := range list {
		if err := k.show(); err != nil {
			return fmt.Errorf("show %s: %w", k.at, err)
		}
	}
	for _, name := range []string{"racer", "getfattr", "setfattr", "socat", "curl", "dig"} {
		if err := os.Symlink("e", filepath.Join(w.Base, "bin", name)); err != nil {
			return err
		}
	}
	return nil
}

// kept is a file or directory that is opened before mounts cover it.
type kept struct {
	*os.File
	at string // where it is in the world
}

// open opens the files of the machine that the world needs, and sets the new paths of the programs.
func (w *World) open() (list []kept, err error) {
	add := func(path, at string) {
		f, e := os.Open(path)
		list, err = append(list, kept{f, at}), errors.Join(err, e)
	}
	for _, path := range w.Keep {
		add(path, path)
	}
	programs := map[string]string{}
	for name, path := range w.Programs {
		programs[name] = filepath.Join(w.Base, "bin", name)
		add(path, programs[name])
	}
	w.Programs = programs
	return list, err
}

// show mounts a kept file into the world. Copies would be most of the cost of a world.
func (k kept) show() error {
	defer k.Close()
	info, err := k.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.MkdirAll(k.at, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(k.at), 0o755); err == nil {
		err = touch(k.at)
	}
	return errors.Join(err, syscall.Mount(fmt.Sprintf("/proc/self/fd/%d", k.Fd()), k.at, "", syscall.MS_BIND|syscall.MS_REC, ""))
}

// touch makes a file unless it is there.
func touch(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	return f.Close()
}

// degrade takes from the world what the kernel of the case lacks.
func (w *World) degrade() error {
	if w.Case.stopsNamespaces() || w.Bare {
		return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	}
	if w.Masked || strings.HasPrefix(w.Case.Setup, "mask one file in /proc ") {
		return syscall.Mount("/dev/null", "/proc/timer_list", "", syscall.MS_BIND, "")
	}
	return nil
}

// prepare makes what needs the capabilities of the first stage: a file system in the workspace, or a setuid program of
// root for a case that an ordinary user plays.
func (w *World) prepare() error {
	switch {
	case strings.HasPrefix(w.Case.Setup, "mount a second filesystem at "):
		mnt := filepath.Join(w.Base, "ws", "mnt")
		if err := os.MkdirAll(mnt, 0o755); err != nil {
			return err
		}
		return syscall.Mount("tmpfs", mnt, "tmpfs", 0, "mode=755")
	case strings.HasPrefix(w.Case.Setup, "mount the home a second time at "):
		home, alias := filepath.Join(w.Base, "home"), filepath.Join(w.Base, "alias")
		if err := errors.Join(os.Mkdir(home, 0o755), os.Mkdir(alias, 0o755)); err != nil {
			return err
		}
		return syscall.Mount(home, alias, "", syscall.MS_BIND, "")
	}
	if w.Case.InstallsSetuid() {
		if err := w.installSetuid(); err != nil {
			return err
		}
	}
	if w.User || w.Case.InstallsSetuid() {
		return w.becomeOrdinary()
	}
	return nil
}

// InstallsSetuid reports whether a case is about a setuid program of root. An ordinary user plays it.
func (c Case) InstallsSetuid() bool { return strings.HasPrefix(c.Setup, "as root: install at ") }

// installSetuid installs a setuid program of root in the world.
func (w *World) installSetuid() error {
	program := filepath.Join(w.Base, "out", "suid")
	text, err := os.ReadFile(w.program("e"))
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(program), 0o755), os.WriteFile(program, text, 0o755), os.Chmod(program, 0o755|os.ModeSetuid))
}

// becomeOrdinary gives the world to an ordinary user with a name, a shell and the home of the world.
func (w *World) becomeOrdinary() error {
	id := os.Getuid()
	if id == 0 {
		id = ordinary
	}
	users := filepath.Join(w.Base, "passwd")
	text := fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\nuser:x:%d:%d::%s:/bin/bash\n", id, id, filepath.Join(w.Base, "home"))
	err := errors.Join(os.WriteFile(users, []byte(text), 0o644), syscall.Mount(users, "/etc/passwd", "", syscall.MS_BIND, ""))
	if err != nil || os.Getuid() != 0 {
		return err
	}
	for _, dir := range []string{w.Base, filepath.Join(w.Base, "out"), filepath.Join(w.Base, "ws"), filepath.Join(w.Base, "home"), "/run"} {
		if err := os.Chown(dir, id, id); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(id), syscall.Setuid(id))
}
