package helper

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Shared memory (memfd_create(2), shmget(2), mmap(2) with MAP_SHARED) belongs to no process, and may exist while no
// process maps it. The kernel reports the machine's total, and the size of files that a process has open. It does not
// report memory that is only mapped, sent over a socket, or owned by a process that cannot be inspected. A call that
// has such memory is charged with the growth of the total since it began.

type sharedMemory struct{ least uint64 }

// growth returns by how much the total exceeds its minimum so far, in bytes.
func (s *sharedMemory) growth(now uint64) uint64 {
	s.least = min(s.least, now)
	return now - s.least
}

// sharedNow returns the machine's shared memory in bytes: sharedram of sysinfo(2), which is "Shmem" of /proc/meminfo.
func sharedNow() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Sharedram) * uint64(info.Unit)
}

// patience limits the descriptors and mappings that are read. A process with more could hide memory among them.
const patience = 100_000

// heldBy returns the shared memory in files that processes have open, and in all shmget(2) segments. all means that
// they have no other.
func heldBy(processes []Proc) (held uint64, all bool) {
	p := pieces{opened: map[string]uint64{}, mapped: map[string]bool{}}
	for _, one := range processes {
		if p.hidden || p.seen > patience {
			break
		}
		p.open(one)
		p.mappings(one)
	}
	all = !p.hidden && p.seen <= patience
	for key := range p.mapped {
		_, known := p.opened[key]
		all = all && known
	}
	for _, size := range p.opened {
		held += size
	}
	return held + systemV(), all
}

// pieces are the unlinked files of processes, by device and inode.
type pieces struct {
	opened map[string]uint64 // sizes of open files
	mapped map[string]bool
	seen   int  // number of descriptors, mappings and threads
	hidden bool // some could not be read
}

// fails records that something of a process could not be read, and returns whether err is not nil. A process that has
// ended has nothing, and cannot be read before it is reaped (EACCES).
func (p *pieces) fails(of Proc, err error) bool {
	gone := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH)
	if err != nil && !gone {
		now, missing := Process(of.PID)
		gone = missing != nil || now.Ended()
	}
	p.hidden = p.hidden || err != nil && !gone
	return err != nil
}

// open adds the files that a process has open. A thread may have its own table (unshare(2)).
func (p *pieces) open(of Proc) {
	first := ""
	for _, dir := range of.threads() {
		p.seen++
		if p.seen > patience {
			return
		}
		if first != "" && sameTable(first, dir) {
			continue
		}
		list, err := os.ReadDir(dir + "/fd")
		if p.fails(of, err) {
			continue
		}
		if first == "" {
			first = dir
		}
		p.seen += len(list)
		for _, f := range list[:min(len(list), patience)] {
			p.descriptor(of, dir, f.Name())
		}
	}
}

// sameTable reports whether two threads share their table of open files (kcmp(2)).
func sameTable(a, b string) bool {
	const files = 2 // KCMP_FILES
	one, err := strconv.Atoi(path.Base(a))
	other, err2 := strconv.Atoi(path.Base(b))
	order, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(one), uintptr(other), files, 0, 0, 0)
	named := err == nil && err2 == nil
	return named && e == 0 && order == 0
}

// descriptor adds an open file, or records that a socket may hold others that were sent over it.
func (p *pieces) descriptor(of Proc, dir, fd string) {
	path := dir + "/fd/" + fd
	to, err := os.Readlink(path)
	if p.fails(of, err) {
		return
	}
	if strings.HasPrefix(to, "socket:") {
		info, err := os.ReadFile(dir + "/fdinfo/" + fd)
		_, sent, _ := strings.Cut(string(info), "scm_fds: ")
		holds := sent != "" && sent[0] != '0'
		p.hidden = p.hidden || holds
		p.fails(of, err)
		return
	}
	var st unix.Stat_t
	if strings.HasPrefix(to, "/memfd:") && !p.fails(of, unix.Stat(path, &st)) {
		// Hexadecimal devices, as in mappings.
		key := fmt.Sprintf("%02x:%02x %d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
		p.opened[key] = max(p.opened[key], uint64(st.Blocks)*512)
	}
}

// mappings adds the files that a process has mapped (proc_pid_maps(5)).
func (p *pieces) mappings(of Proc) {
	b, err := of.read("maps")
	p.fails(of, err)
	for line := range strings.Lines(string(b)) {
		p.seen++
		f := strings.Fields(line)
		if len(f) > 5 && (strings.HasPrefix(f[5], "/memfd:") || f[5] == "/dev/zero") {
			p.mapped[f[3]+" "+f[4]] = true
		}
	}
}

// systemV returns the memory of all segments: column "rss" of /proc/sysvipc/shm (sysvipc(7)).
func systemV() (sum uint64) {
	b, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 {
			n, _ := strconv.ParseUint(f[len(f)-2], 10, 64) // 0 for the header of the table
			sum += n
		}
	}
	return sum
}
