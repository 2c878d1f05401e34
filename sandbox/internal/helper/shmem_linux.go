package helper

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Shared memory (memfd_create(2), shmget(2), mmap(2) with MAP_SHARED) belongs to no process, and
// may stay when none has it mapped. The kernel reports its total on the machine, and the usage of
// the files that a process has open, but not of those it has only mapped: a call is charged with
// the size of those, up to the growth of the total since it began.

type sharedMemory struct {
	known bool
	least uint64
}

// growth returns by how much the total exceeds its minimum so far.
func (s *sharedMemory) growth(now uint64) uint64 {
	if !s.known || now < s.least {
		s.known, s.least = true, now
	}
	return now - s.least
}

// sharedNow is "Shmem" of /proc/meminfo (proc_meminfo(5)).
func sharedNow() (bytes uint64) {
	b, _ := os.ReadFile("/proc/meminfo")
	_, rest, _ := strings.Cut(string(b), "\nShmem:")
	_, _ = fmt.Sscan(rest, &bytes)
	return bytes << 10
}

// patience bounds the descriptors and mappings that are read. A process with more could hide memory
// among them.
const patience = 100_000

// heldBy returns the shared memory in files that processes have open, and in all shmget(2)
// segments. mapped is the size of the others, or more than any machine has if there are too many.
func heldBy(processes []Proc) (held, mapped uint64) {
	opened, sizes := map[string]uint64{}, map[string]uint64{}
	seen := 0
	for _, p := range processes {
		seen += openPieces(opened, p.PID) + mappedPieces(sizes, p.PID)
		if seen > patience {
			return 0, math.MaxUint64
		}
	}
	for _, size := range opened {
		held += size
	}
	for key, size := range sizes {
		if _, known := opened[key]; !known {
			mapped += size
		}
	}
	return held + systemV(), mapped
}

// openPieces adds the unlinked files that a process has open, and returns its number of
// descriptors.
func openPieces(pieces map[string]uint64, pid int) int {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	list, err := os.ReadDir(dir)
	if err != nil {
		return 0 // gone, or not dumpable
	}
	for _, f := range list {
		path := dir + "/" + f.Name()
		var st unix.Stat_t
		if to, err := os.Readlink(path); err != nil || !strings.HasPrefix(to, "/memfd:") || unix.Stat(path, &st) != nil {
			continue
		}
		// As in mappedPieces: hexadecimal devices.
		key := fmt.Sprintf("%02x:%02x %d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
		pieces[key] = max(pieces[key], uint64(st.Blocks)*512)
	}
	return len(list)
}

// mappedPieces adds the files that a process has mapped (proc_pid_maps(5)), by the size of the
// mappings, and returns the number of mappings.
func mappedPieces(pieces map[string]uint64, pid int) (n int) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		return 0
	}
	sizes := map[string]uint64{}
	for line := range strings.Lines(string(b)) {
		n++
		if f := strings.Fields(line); len(f) > 5 && (strings.HasPrefix(f[5], "/memfd:") || f[5] == "/dev/zero") {
			var from, to uint64
			_, _ = fmt.Sscanf(f[0], "%x-%x", &from, &to)
			sizes[f[3]+" "+f[4]] += to - from
		}
	}
	for key, size := range sizes {
		pieces[key] = max(pieces[key], size)
	}
	return n
}

// systemV returns the memory of all segments: column "rss" of /proc/sysvipc/shm (sysvipc(7)).
func systemV() (sum uint64) {
	b, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 {
			n, _ := strconv.ParseUint(f[len(f)-2], 10, 64) // 0 for the table's header
			sum += n
		}
	}
	return sum
}
