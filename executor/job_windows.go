package executor

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// job is a job object of Windows, which holds the shell and whatever it starts from
// its first instruction on, and ends them all when this process ends.
type job struct{ handle windows.Handle }

// startJob starts the shell, which does not run before it is in the job.
func startJob(shell *exec.Cmd) (*job, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	j := &job{handle}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	if _, err = windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		return nil, j.abandon(err)
	}
	shell.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP}
	if err := shell.Start(); err != nil {
		return nil, j.abandon(err)
	}
	if err := j.hold(shell.Process.Pid); err != nil {
		_ = shell.Process.Kill()
		_ = shell.Wait()
		return nil, j.abandon(err)
	}
	return j, nil
}

func (j *job) abandon(err error) error {
	_ = windows.CloseHandle(j.handle)
	return err
}

// hold takes a suspended process into the job and lets it go on. Its only thread is
// known to the system alone, so the whole process is resumed.
func (j *job) hold(pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE|windows.PROCESS_SUSPEND_RESUME, false, uint32(pid))
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(process) }()
	if err := windows.AssignProcessToJobObject(j.handle, process); err != nil {
		return err
	}
	status, _, _ := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess").Call(uintptr(process))
	if status != 0 {
		return windows.NTStatus(status)
	}
	return nil
}

// gone tells that the shell has been waited for.
func (j *job) gone() {}

// alive reports whether a process of the job lives.
func (j *job) alive() bool {
	var counted struct {
		times                                [4]int64
		faults, processes, active, terminate uint32
	}
	err := windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&counted)), uint32(unsafe.Sizeof(counted)), nil)
	return err == nil && counted.active > 0
}

// runnable would need a look at every thread: a child that says nothing counts as
// one that waits.
func (j *job) runnable() bool { return false }

// terminate has no way to ask: a grace follows in which the command may end.
func (j *job) terminate() {}

// kill ends all.
func (j *job) kill() { _ = windows.TerminateJobObject(j.handle, 128+9) }

// end kills what outlived the shell. Its names are not known.
func (j *job) end() []Process {
	var left []Process
	if j.alive() {
		left = []Process{{Command: "processes in the background"}}
	}
	j.kill()
	_ = windows.CloseHandle(j.handle)
	return left
}

// signal does nothing: a program without a console gets none.
func (j *job) signal(string, bool) {}

// ended is the exit code of a process that has ended.
func ended(state *os.ProcessState) (code int, signal string) {
	if state == nil {
		return 1, ""
	}
	return state.ExitCode(), ""
}
