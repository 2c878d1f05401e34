#include "textflag.h"

#define SYS_clone 220
#define SYS_exit_group 94
#define FLAGS 0x4111 // CLONE_VM, CLONE_VFORK, SIGCHLD

// func start(r *run) int
TEXT ·start(SB), NOSPLIT|NOFRAME, $0-16
	MOVD r+0(FP), R19 // system calls change only R0
	MOVD $SYS_clone, R8
	MOVD $FLAGS, R0
	MOVD $0, R1       // the stack stays, and the child does not use it
	MOVD $0, R2
	MOVD $0, R3
	MOVD $0, R4
	SVC
	CBZ  R0, child
	MOVD R0, ret+8(FP)
	RET

child:
	MOVD 0(R19), R20 // r.first
loop:
	MOVD 0(R20), R8  // number
	MOVD 8(R20), R0  // arguments
	MOVD 16(R20), R1
	MOVD 24(R20), R2
	MOVD 32(R20), R3
	MOVD 40(R20), R4
	MOVD 48(R20), R5
	SVC
	CMN  $4095, R0
	BHS  failed      // -4095 to -1, as unsigned numbers, are errors
	MOVD 56(R20), R9 // result
	CBZ  R9, next
	MOVD R0, (R9)
next:
	ADD  $64, R20
	B    loop

failed:
	NEG  R0, R0
	MOVD R20, 8(R19) // r.failed
	MOVD R0, 16(R19) // r.errno
	MOVD $SYS_exit_group, R8
	MOVD $125, R0
	SVC
	BRK              // it does not return
