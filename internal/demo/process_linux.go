package demo

import "syscall"

// bind makes the kernel kill the child when the thread that starts the child ends. The thread also ends when the process ends.
func bind(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
