package helper

import (
	"errors"
	"fmt"
	"os"

	landlock "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Landlock rights by kind of path (landlock(7)).
const (
	rightsRead     = landlock.AccessFSExecute | landlock.AccessFSReadFile | landlock.AccessFSReadDir
	rightsTerminal = landlock.AccessFSReadFile | landlock.AccessFSReadDir | landlock.AccessFSWriteFile | landlock.AccessFSIoctlDev
	rightsNotMade  = landlock.AccessFSMakeChar | landlock.AccessFSMakeBlock | landlock.AccessFSIoctlDev
	rightsOfFile   = landlock.AccessFSExecute | landlock.AccessFSReadFile | landlock.AccessFSWriteFile |
		landlock.AccessFSTruncate | landlock.AccessFSIoctlDev
)

func handledRights(abi int) uint64 {
	switch {
	case abi >= 5:
		return 1<<16 - 1
	case abi >= 3:
		return 1<<15 - 1
	case abi == 2:
		return 1<<14 - 1
	default:
		return 1<<13 - 1
	}
}

// fileRules returns the rules of the Landlock domain of a call, a second line of defence behind the mount view, and the
// version of Landlock. The caller must close the descriptor.
//
// It does not restrict the resolution of Unix socket paths (version 9), as the seccomp filter does not. The scopes of
// version 6 restrict abstract sockets and signals.
func fileRules(s *Spec) (fd, abi int, err error) {
	abi, err = landlock.LandlockGetABIVersion()
	if err != nil {
		return -1, 0, fmt.Errorf("the kernel has no Landlock: %w", err)
	}
	if abi < 1 {
		return -1, 0, errors.New("the kernel has no Landlock")
	}
	if s.Shared && abi < 6 {
		return -1, 0, fmt.Errorf("the kernel's Landlock (version %d) does not keep signals in, as it has to without a namespace of processes: version 6 is needed (Linux 6.12)", abi)
	}
	rules := ruleset{handled: handledRights(abi)}
	attr := landlock.RulesetAttr{HandledAccessFS: rules.handled}
	if abi >= 6 {
		attr.Scoped = landlock.ScopeAbstractUnixSocket | landlock.ScopeSignal
	}
	if rules.fd, err = landlock.LandlockCreateRuleset(&attr, 0); err != nil {
		return -1, 0, fmt.Errorf("cannot create a ruleset: %w", err)
	}
	if err := rules.fill(s); err != nil {
		unix.Close(rules.fd)
		return -1, 0, err
	}
	return rules.fd, abi, nil
}

type ruleset struct {
	fd      int
	handled uint64
}

func (r ruleset) fill(s *Spec) error {
	write := r.handled &^ rightsNotMade
	if s.Listed {
		return r.fillListed(s, write)
	}
	if err := r.add("/", rightsRead); err != nil {
		return err
	}
	for _, root := range s.Roots {
		if root.Is != "" && !s.Namespaces {
			return fmt.Errorf("cannot verify the directory %s without a view", root.Path)
		}
		if root.Writable {
			if err := r.add(root.Path, write); err != nil {
				return err
			}
		}
	}
	for _, cache := range s.Caches {
		if err := except(r.add(cache.Path, write), unix.ENOENT); err != nil {
			return err
		}
	}
	if !s.Namespaces {
		return nil
	}
	if s.External { // run by the file tools; may be missing in the view
		if err := r.add("/proc/self/exe", rightsRead); err != nil {
			return err
		}
	}
	// All of these are private to the view, so a missing one does not matter.
	for path, rights := range map[string]uint64{
		"/tmp": write, "/var/tmp": write, "/dev/shm": write, "/proc": s.rightsProc(),
		"/dev/null": rightsOfFile, "/dev/zero": rightsOfFile, "/dev/full": rightsOfFile,
		"/dev/random": rightsOfFile, "/dev/urandom": rightsOfFile,
		"/dev/tty": rightsTerminal, "/dev/console": rightsTerminal, "/dev/pts": rightsTerminal,
	} {
		if err := except(r.add(path, rights), unix.ENOENT); err != nil {
			return err
		}
	}
	return nil
}

// rightsProc returns the rights below /proc. With the machine's network, files below /proc/net belong to the machine's
// root, such as the lists of its firewall.
func (s *Spec) rightsProc() uint64 {
	if os.Getuid() == 0 && !s.Loopback {
		return rightsRead
	}
	return rightsRead | landlock.AccessFSWriteFile
}

// add grants rights below path. For a file, it grants only the rights that files have.
func (r ruleset) add(path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", path, err)
	}
	defer unix.Close(fd)
	return r.addOpened(fd, path, rights)
}

func (r ruleset) addOpened(fd int, path string, rights uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("cannot stat %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFile
	}
	attr := landlock.PathBeneathAttr{ParentFd: fd, AllowedAccess: rights & r.handled}
	if err := landlock.LandlockAddPathBeneathRule(r.fd, &attr, 0); err != nil {
		return fmt.Errorf("cannot add a rule for %s: %w", path, err)
	}
	return nil
}
