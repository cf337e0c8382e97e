package demo

import "syscall"

// bind makes the kernel kill the child when the thread that starts it ends; the end of the process ends the thread in any case.
func bind(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
