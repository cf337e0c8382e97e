//go:build !linux

package demo

import "syscall"

func bind(*syscall.SysProcAttr) {}
