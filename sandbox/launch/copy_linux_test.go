package launch

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toold/toold/internal/must"
	"github.com/toold/toold/sandbox/internal/helper"
)

// What a new process has copied of the daemon's memory, the daemon meets as a fault at
// its next write to each page. It does not run beside other tests, which may start
// processes that do copy.
func TestStartingASandboxCopiesNoMemory(t *testing.T) {
	const pages = 1024
	size := os.Getpagesize()
	memory := must.Get(unix.Mmap(-1, 0, pages*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS))(t)
	defer unix.Munmap(memory)
	if err := unix.Madvise(memory, unix.MADV_NOHUGEPAGE); err != nil && err != unix.EINVAL { // a kernel without huge pages
		t.Fatal(err)
	}
	write := func() (faults int64) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		before := faultsOfThread(t)
		for i := 0; i < len(memory); i += size {
			memory[i]++
		}
		return faultsOfThread(t) - before
	}
	if n := write(); n < pages/2 {
		t.Skipf("the first %d writes met %d faults, so nothing can be seen of copies", pages, n)
	}
	if _, err := probe(t.Context(), helper.Spec{Namespaces: true}); err != nil {
		t.Skipf("no sandbox can be made: %v", err)
	}
	if n := write(); n > pages/2 {
		t.Errorf("after the start of a sandbox %d writes met %d faults", pages, n)
	}
}

func faultsOfThread(t *testing.T) int64 {
	var r unix.Rusage
	must.Do(t, unix.Getrusage(unix.RUSAGE_THREAD, &r))
	return int64(r.Minflt) // 32 bits on some systems
}
