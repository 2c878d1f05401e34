//go:build !unix

package service

import (
	"os"
	"syscall"
)

// terminate is the one signal that processes have there.
const terminate = syscall.SIGKILL

func ownSession() *syscall.SysProcAttr { return nil }

func keepOpenFiles() {}

func serves(pid int, _ string) bool { _, err := os.FindProcess(pid); return err == nil }
