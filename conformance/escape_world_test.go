//go:build linux

package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"
)

// A world is this very test binary, started again in namespaces of its own: what
// a case attacks is not the machine on which it runs. It goes through two stages.
// The first has the capabilities to make the world and gives them up, the second
// is an ordinary process, or root's, and plays the case.
//
// Root gets no user namespace if it can do without: a call of root attacks with
// all that root has.
const worldVariable = "TOOLD_CONFORMANCE_WORLD"

// worldJob is what a world is made for.
type worldJob struct {
	Made    bool // the second stage
	Daemon  string
	Escape  string // the helper of the cases
	Base    string // the folder of the world
	Case    escapeCase
	Masked  bool   // calls get no /proc of their own: tier B
	Bare    bool   // an ordinary user who can make no namespaces: tier C
	Bwrap   bool   // bwrap makes the namespaces of calls: tier A-bwrap
	Profile string // replaces that of the case, if any
}

// outcome is what became of a case.
type outcome struct {
	Verdict string // escaped, broken, blocked, usable or not applicable
	Why     string
	Output  string // the end of what the call returned
}

// bad tells whether the sandbox has failed.
func (o outcome) bad() bool { return o.Verdict == "escaped" || o.Verdict == "broken" }

// playInWorld plays a case in a world of its own.
func playInWorld(ctx context.Context, job worldJob) (outcome, error) {
	for _, dir := range []string{"/mnt", "/srv", "/opt", "/home"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			job.Base = dir
			break
		}
	}
	text, err := json.Marshal(job)
	if err != nil {
		return outcome{}, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), worldVariable+"="+string(text))
	cmd.SysProcAttr = worldAttributes(rootNeedsNoNamespace() && !job.Case.stopsNamespaces() && !job.Bare)
	if job.Bare {
		const ordinary = 1000
		cmd.SysProcAttr.UidMappings[0].ContainerID, cmd.SysProcAttr.GidMappings[0].ContainerID = ordinary, ordinary
	}
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		return outcome{}, fmt.Errorf("the world ended: %w\n%s", err, errors.String())
	}
	var got outcome
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		return outcome{}, fmt.Errorf("the world said %q: %w\n%s", out.String(), err, errors.String())
	}
	return got, nil
}

// stopsNamespaces tells whether a case forbids user namespaces, which must hold in
// its world only.
func (c escapeCase) stopsNamespaces() bool {
	return strings.HasPrefix(c.Setup, "user.max_user_namespaces=0")
}

func worldAttributes(bare bool) *syscall.SysProcAttr {
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

// rootNeedsNoNamespace tells whether this process may make the other namespaces
// without a user namespace.
func rootNeedsNoNamespace() bool {
	cmd := exec.Command("true")
	cmd.SysProcAttr = worldAttributes(true)
	return os.Getuid() == 0 && cmd.Run() == nil
}

// world is the main function of both stages; it is false in the tests themselves.
func world() bool {
	text := os.Getenv(worldVariable)
	if text == "" {
		return false
	}
	var job worldJob
	err := json.Unmarshal([]byte(text), &job)
	if err == nil && !job.Made {
		runtime.LockOSThread()
		err = job.makeWorld()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot make the world:", err)
		os.Exit(1)
	}
	os.Unsetenv(worldVariable)
	json.NewEncoder(os.Stdout).Encode(playEscape(context.Background(), job))
	return true
}

// makeWorld makes the file systems and the network of a world, and begins its
// second stage. It returns only if it cannot.
func (j worldJob) makeWorld() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	programs := map[string]*os.File{}
	for name, path := range map[string]string{"toold": j.Daemon, "e": j.Escape} {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		programs[name] = f
	}
	resolver, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return err
	}
	if err := j.mountAll(programs); err != nil {
		return err
	}
	if err := j.resolve(resolver); err != nil {
		return err
	}
	if err := makeNetwork(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	if err := j.degrade(); err != nil {
		return err
	}
	if err := j.prepare(); err != nil {
		return fmt.Errorf("what the case needs: %w", err)
	}
	j.Made = true
	text, err := json.Marshal(j)
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

// mountAll makes /proc, the terminals, the private folders and that of the case, with its
// programs.
func (j *worldJob) mountAll(programs map[string]*os.File) error {
	mounts := []struct{ kind, at, options string }{
		{"tmpfs", j.Base, "mode=755"},
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
	bin := filepath.Join(j.Base, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return err
	}
	for name, f := range programs {
		if err := j.place(f, filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	j.Daemon, j.Escape = filepath.Join(bin, "toold"), filepath.Join(bin, "e")
	for _, name := range []string{"racer", "getfattr", "setfattr", "socat", "curl", "dig"} {
		if err := os.Symlink("e", filepath.Join(bin, name)); err != nil {
			return err
		}
	}
	return nil
}

// place shows a program in the world: a copy for each would be most of what a world costs.
func (j *worldJob) place(program *os.File, at string) error {
	f, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), syscall.Mount(fmt.Sprintf("/proc/self/fd/%d", program.Fd()), at, "", syscall.MS_BIND, ""))
}

// resolve makes names be asked for at 127.0.0.53, where the world listens.
func (j *worldJob) resolve(resolver string) error {
	own := filepath.Join(j.Base, "resolv.conf")
	if err := os.WriteFile(own, []byte("nameserver 127.0.0.53\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		return err
	}
	if strings.HasPrefix(resolver, "/run/") { // where the world has nothing
		if err := os.MkdirAll(filepath.Dir(resolver), 0o755); err != nil {
			return err
		}
		return os.Symlink(own, resolver)
	}
	return syscall.Mount(own, resolver, "", syscall.MS_BIND, "")
}

// makeNetwork gives the loopback of the world the addresses of the internet and
// of a cloud's metadata, and lets anybody listen on any port. All of 93.0.0.0/8 is
// there, as all of 127.0.0.0/8 is, and only its first address is one that this
// machine calls its own.
func makeNetwork() error {
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(s)
	for label, address := range map[string]string{"lo": "127.0.0.1", "lo:1": "203.0.113.5", "lo:2": "169.254.169.254", "lo:3": "93.0.0.1"} {
		var request [40]byte // struct ifreq (netdevice(7))
		copy(request[:16], label)
		if label != "lo" {
			binary.NativeEndian.PutUint16(request[16:], syscall.AF_INET)
			copy(request[20:24], net.ParseIP(address).To4())
			if err := ioctl(s, syscall.SIOCSIFADDR, unsafe.Pointer(&request)); err != nil {
				return fmt.Errorf("address %s: %w", address, err)
			}
			clear(request[16:])
		}
		binary.NativeEndian.PutUint16(request[16:], syscall.IFF_UP|syscall.IFF_RUNNING)
		if err := ioctl(s, syscall.SIOCSIFFLAGS, unsafe.Pointer(&request)); err != nil {
			return fmt.Errorf("interface %s: %w", label, err)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("0"), 0)
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(argument)); e != 0 {
		return e
	}
	return nil
}

// cannotPlay tells why a case cannot be played in this world, "" if it can.
func (j worldJob) cannotPlay() string {
	if (j.Masked || j.Bare) && strings.HasPrefix(j.Case.ID, "dg-") {
		return "the case is about another kernel"
	}
	if j.Bare {
		if why := j.Case.notInTierC(); why != "" {
			return why
		}
	}
	if j.Bwrap {
		if why := j.Case.notInTierBwrap(); why != "" {
			return why
		}
	}
	return j.Case.cannotPlay()
}

// notInTierC tells what of a case tier C has nothing of, "" if nothing.
func (c escapeCase) notInTierC() string {
	kind, _, _ := strings.Cut(c.ID, "-")
	switch {
	case kind == "eg":
		return "there are no connections by name"
	case kind == "rc":
		return "nobody judges connections, since there are none"
	case kind == "rs":
		return "the limits are those of tier B"
	case c.installsSetuid():
		return "there is no other user"
	case c.Beside != "":
		return "calls have no loopback"
	}
	return ""
}

// degrade takes from the world what the case says that its kernel lacks.
func (j *worldJob) degrade() error {
	if j.Case.stopsNamespaces() || j.Bare {
		return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	}
	if j.Masked || strings.HasPrefix(j.Case.Setup, "mask one file in /proc ") {
		return syscall.Mount("/dev/null", "/proc/timer_list", "", syscall.MS_BIND, "")
	}
	return nil
}

// prepare makes what only who makes the world can: a file system in the workspace, or
// a program of root's for a case that is then played by somebody else.
func (j *worldJob) prepare() error {
	switch {
	case strings.HasPrefix(j.Case.Setup, "mount a second filesystem at "):
		mnt := filepath.Join(j.Base, "ws", "mnt")
		if err := os.MkdirAll(mnt, 0o755); err != nil {
			return err
		}
		return syscall.Mount("tmpfs", mnt, "tmpfs", 0, "mode=755")
	case strings.HasPrefix(j.Case.Setup, "mount the home a second time at "):
		home, alias := filepath.Join(j.Base, "home"), filepath.Join(j.Base, "alias")
		if err := errors.Join(os.Mkdir(home, 0o755), os.Mkdir(alias, 0o755)); err != nil {
			return err
		}
		return syscall.Mount(home, alias, "", syscall.MS_BIND, "")
	case j.Case.installsSetuid():
		return j.becomeOrdinary()
	}
	return nil
}

// installsSetuid tells whether a case is about a program of root's. A call of root
// has root's rights already, so that somebody else plays it.
func (c escapeCase) installsSetuid() bool { return strings.HasPrefix(c.Setup, "as root: install at ") }

// becomeOrdinary gives the world to an ordinary user, with a program in it that would
// make him root.
func (j *worldJob) becomeOrdinary() error {
	const nobody = 65534
	program := filepath.Join(j.Base, "out", "suid")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	text, err := os.ReadFile(j.Escape)
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err == nil {
		err = os.Chmod(program, 0o755|os.ModeSetuid)
	}
	if err != nil {
		return err
	}
	for _, dir := range []string{j.Base, filepath.Dir(program), "/run"} {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			return err
		}
	}
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody))
}

// openWindow opens a pair of terminals as a window of the user has one, raw and
// without echo: nothing is in it but what somebody put there.
func openWindow() (master, slave *os.File, err error) {
	if master, slave, err = openTerminal(); err != nil {
		return nil, nil, err
	}
	var mode syscall.Termios
	return master, slave, ioctl(int(slave.Fd()), syscall.TCSETS, unsafe.Pointer(&mode))
}

// pending is what can be read from a terminal at once.
func pending(f *os.File) string {
	b := make([]byte, 4096)
	fd := int(f.Fd())
	if syscall.SetNonblock(fd, true) != nil {
		return ""
	}
	n, err := syscall.Read(fd, b)
	if err != nil {
		return ""
	}
	return string(b[:n])
}
