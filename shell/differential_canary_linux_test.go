package shell_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/toold/toold/internal/must"
)

// canary is the machine code of a program for amd64 that writes to descriptor 250,
// in one piece: the number of its arguments (8 bytes), each of them and the path it
// was started by, ended by NUL. If the path ends in o it prints its first argument;
// if it ends in q it fails. It does nothing else, and starts ten times as fast as a
// shell script that did the same.
const canary = "" +
	"\x48\x8b\x1c\x24" + //             mov rbx, [rsp]             argc
	"\x48\x8d\x74\xdc\x10" + //         lea rsi, [rsp+rbx*8+16]    envp
	"\x48\x8b\x2e" + //                 mov rbp, [rsi]             envp[0]: where the arguments end
	"\x48\xad" + //                  1: lodsq
	"\x48\x85\xc0" + //                 test rax, rax
	"\x75\xf9" + //                     jnz 1b                     past envp: auxv
	"\x48\xad" + //                  2: lodsq                      its type
	"\x48\x89\xc2" + //                 mov rdx, rax
	"\x48\xad" + //                     lodsq                      its value
	"\x83\xfa\x1f" + //                 cmp edx, AT_EXECFN
	"\x75\xf4" + //                     jne 2b
	"\x49\x89\xc4" + //                 mov r12, rax               the path
	"\x48\x85\xed" + //                 test rbp, rbp
	"\x49\x0f\x44\xec" + //             cmovz rbp, r12             without environment it follows the arguments
	"\x4c\x89\xe7" + //                 mov rdi, r12
	"\x31\xc0" + //                     xor eax, eax
	"\x48\x83\xc9\xff" + //             or rcx, -1
	"\xf2\xae" + //                     repne scasb
	"\x49\x89\xfe" + //                 mov r14, rdi
	"\x4d\x29\xe6" + //                 sub r14, r12               its length
	"\x4c\x8b\x6c\x24\x08" + //         mov r13, [rsp+8]           argv[0]
	"\x4c\x29\xed" + //                 sub rbp, r13               the length of all arguments
	"\x49\x89\xe7" + //                 mov r15, rsp
	"\x41\x56\x41\x54" + //             push r14; push r12         struct iovec, the last first
	"\x55\x41\x55" + //                 push rbp; push r13
	"\x6a\x08\x41\x57" + //             push 8; push r15
	"\xb8\x14\x00\x00\x00" + //         mov eax, SYS_writev
	"\xbf\xfa\x00\x00\x00" + //         mov edi, 250
	"\x48\x89\xe6" + //                 mov rsi, rsp
	"\xba\x03\x00\x00\x00" + //         mov edx, 3
	"\x0f\x05" + //                     syscall
	"\x43\x0f\xb6\x5c\x34\xfe" + //     movzx ebx, byte [r12+r14-2]
	"\x80\xfb\x6f" + //                 cmp bl, 'o'
	"\x75\x2a" + //                     jne 3f
	"\x49\x8b\x77\x10" + //             mov rsi, [r15+16]          argv[1]
	"\x48\x85\xf6" + //                 test rsi, rsi
	"\x74\x21" + //                     jz 3f
	"\x48\x89\xf7" + //                 mov rdi, rsi
	"\x31\xc0" + //                     xor eax, eax
	"\x48\x83\xc9\xff" + //             or rcx, -1
	"\xf2\xae" + //                     repne scasb
	"\xc6\x47\xff\x0a" + //             mov byte [rdi-1], '\n'
	"\x48\x89\xfa" + //                 mov rdx, rdi
	"\x48\x29\xf2" + //                 sub rdx, rsi
	"\xb8\x01\x00\x00\x00" + //         mov eax, SYS_write
	"\xbf\x01\x00\x00\x00" + //         mov edi, 1
	"\x0f\x05" + //                     syscall
	"\x31\xff" + //                  3: xor edi, edi
	"\x80\xfb\x71" + //                 cmp bl, 'q'
	"\x40\x0f\x94\xc7" + //             sete dil
	"\xb8\x3c\x00\x00\x00" + //         mov eax, SYS_exit
	"\x0f\x05" //                       syscall

// elf makes an executable file of machine code.
func elf(code string) []byte {
	const header, program, at = 64, 56, 0x400000
	size := uint64(header + program + len(code))
	var b bytes.Buffer
	b.WriteString("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00")
	for _, field := range []any{
		uint16(2), uint16(62), uint32(1), uint64(at + header + program), uint64(header), uint64(0), uint32(0), // executable, x86-64, version, entry, program headers, none of sections, flags
		uint16(header), uint16(program), uint16(1), uint16(64), uint16(0), uint16(0), // one program header, no section
		uint32(1), uint32(5), uint64(0), uint64(at), uint64(at), size, size, uint64(4096), // all of the file, to be read and run
	} {
		// Writing to a buffer does not fail.
		_ = binary.Write(&b, binary.LittleEndian, field)
	}
	b.WriteString(code)
	return b.Bytes()
}

// script is the canary where there is no machine code for it. It cannot take
// arguments whose number does not fit into a byte.
const script = "#!/bin/sh\n" + `n=$(printf '%o' $(($# + 1)))
{ printf "\\$n\0\0\0\0\0\0\0"; printf '%s\0' "$0" "$@" "$0"; } >&250
case $0 in *o) printf '%s\n' "$1" ;; *q) exit 1 ;; esac
`

// programs fills a directory with canaries, and with the real programs that scripts
// may use.
func programs(t testing.TB, bin string) {
	t.Helper()
	content := []byte(script)
	if runtime.GOARCH == "amd64" {
		content = elf(canary)
	}
	must.Program(t, bin+"/canary", content)
	for _, name := range []string{"p", "q", "r", "o", "evil", "npm", "helm", "cargo", "pip", "go", "gh"} {
		must.Do(t, os.Symlink("canary", filepath.Join(bin, name)))
	}
	for _, name := range []string{"bash", "sh", "cat", "env", "find", "ls", "nice", "nohup", "setsid", "sort", "stdbuf", "timeout", "xargs", "mkdir", "sed", "awk", "git", "make", "touch", "tee", "ln", "cp", "mv", "chmod", "grep", "tar", "python3", "mktemp", "echo", "true", "rmdir"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue // the scripts that need it find none
		}
		must.Do(t, os.Symlink(path, filepath.Join(bin, name)))
	}
}
