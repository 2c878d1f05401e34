package helper

import (
	"errors"
	"fmt"
	"iter"
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

// heldBy returns the shared memory in files that processes have open. all means that they have no other files.
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
	return held, all
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

// systemV returns the memory that System V IPC takes (sysvipc(7)): in segments, and in the kernel for semaphores and
// messages. A set of semaphores may have adjustments for each process (semop(2)). Without a namespace of its own, a call
// is not charged: the tables are the machine's.
func (s *Spec) systemV(processes int) (shared, kernel uint64) {
	const smallest = 64 // bytes of a semaphore or a message
	if !s.Namespaces {
		return 0, 0
	}
	for f := range rows("shm") {
		shared += number(f[len(f)-2])
	}
	for f := range rows("sem") {
		kernel += (number(f[3]) + 40) * (smallest + 2*uint64(processes))
	}
	for f := range rows("msg") {
		kernel += number(f[3]) + (number(f[4])+4)*smallest
	}
	return shared, kernel
}

// rows returns the fields of each line of a file in /proc/sysvipc. Those of the header are no numbers.
func rows(name string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		b, _ := os.ReadFile("/proc/sysvipc/" + name)
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) > 4 && !yield(f) {
				return
			}
		}
	}
}

func number(text string) uint64 {
	n, _ := strconv.ParseUint(text, 10, 64)
	return n
}
