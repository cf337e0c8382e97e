package demo

import "syscall"

// bind has the kernel kill the child when the thread that starts it ends, which
// it does with the process whatever happens to that.
func bind(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
