package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"baton/internal/text"
)

var (
	octalMask   = regexp.MustCompile(`^0?[0-7]{3}$`)
	accountName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.-]{0,31}|[0-9]{1,10})$`)
)

// surroundings checks the settings that make the process of a command different from the daemon's process.
func (v *validator) surroundings(path string, j Job) {
	v.absolute(path+".stdin", j.Stdin)
	v.absolute(path+".log_file", j.LogFile)
	v.choice(path+".stop_signal", j.StopSignal, StopSignals()...)
	for i, code := range j.SuccessExitCodes {
		at := fmt.Sprintf("%s.success_exit_codes[%d]", path, i)
		if code < 0 || code > 255 {
			v.fail(at, "%d: must be from 0 to 255", code)
		} else if slices.Contains(j.SuccessExitCodes[:i], code) {
			v.fail(at, "%d is there twice; remove one of them", code)
		}
	}
	if j.Umask != "" && !octalMask.MatchString(j.Umask) {
		v.fail(path+".umask", "%q: write three octal digits, for example 027", j.Umask)
	}
	if j.Nice < -20 || j.Nice > 19 {
		v.fail(path+".nice", "%d: must be from -20 (runs first) to 19 (runs last)", j.Nice)
	}
	v.limits(path+".limits", j.Limits)
	v.account(path+".user", j.User)
	v.account(path+".group", j.Group)
}

func (v *validator) limits(path string, l Limits) {
	for key, n := range map[string]int{
		"open_files": l.OpenFiles, "processes": l.Processes, "address_space": l.AddressSpace, "file_size": l.FileSize,
	} {
		if n < 0 {
			v.fail(path+"."+key, "%d: must be 1 or more", n)
		}
	}
	if l.OpenFiles > 0 && l.OpenFiles < leastFiles {
		v.fail(path+".open_files", "%d: must be %d or more; with fewer files a program cannot load its libraries", l.OpenFiles, leastFiles)
	}
	if l.AddressSpace > 0 && l.AddressSpace < leastMemory {
		v.fail(path+".address_space", "%d: the limit is in bytes and must be %d or more, because with less memory no program starts",
			l.AddressSpace, leastMemory)
	}
	if l.CPUTime%time.Second != 0 {
		v.fail(path+".cpu_time", "%s: must be whole seconds, for example 30s", text.Exact(l.CPUTime))
	}
}

// leastFiles and leastMemory are the smallest limits that a job may set for open files and for memory, in bytes, because no program starts
// with less.
const leastFiles, leastMemory = 8, 1 << 20

// account checks the name or the number of a user or group.
func (v *validator) account(path, name string) {
	number, err := strconv.Atoi(name)
	switch {
	case name == "":
	case !accountName.MatchString(name):
		v.fail(path, "%q: write a name that this host has, or its number", name)
	case name == "root" || err == nil && number == 0:
		v.fail(path, "a daemon that does not run as root cannot run a command as root; remove it, and let a separate daemon, "+
			"with User=root, run the commands of root")
	}
}
