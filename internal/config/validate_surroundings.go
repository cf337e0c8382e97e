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

// surroundings checks the settings that make a command's process differ from the daemon.
func (v *validator) surroundings(path string, j Job) {
	v.absolute(path+".stdin", j.Stdin)
	v.absolute(path+".log_file", j.LogFile)
	v.choice(path+".stop_signal", j.StopSignal, StopSignals()...)
	for i, code := range j.SuccessExitCodes {
		at := fmt.Sprintf("%s.success_exit_codes[%d]", path, i)
		if code < 0 || code > 255 {
			v.fail(at, "%d: want 0 to 255", code)
		} else if slices.Contains(j.SuccessExitCodes[:i], code) {
			v.fail(at, "%d is there twice; remove one of them", code)
		}
	}
	if j.Umask != "" && !octalMask.MatchString(j.Umask) {
		v.fail(path+".umask", "%q: want three octal digits, for example 027", j.Umask)
	}
	if j.Nice < -20 || j.Nice > 19 {
		v.fail(path+".nice", "%d: want -20, first of all, to 19, last of all", j.Nice)
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
			v.fail(path+"."+key, "%d: want 1 or more", n)
		}
	}
	if l.OpenFiles > 0 && l.OpenFiles < leastFiles {
		v.fail(path+".open_files", "%d: want %d or more; with less a program cannot read its libraries", l.OpenFiles, leastFiles)
	}
	if l.AddressSpace > 0 && l.AddressSpace < leastMemory {
		v.fail(path+".address_space", "%d: it is in bytes; want %d or more; with less no program starts", l.AddressSpace, leastMemory)
	}
	if l.CPUTime%time.Second != 0 {
		v.fail(path+".cpu_time", "%s: want whole seconds, for example 30s", text.Exact(l.CPUTime))
	}
}

// With less no program starts.
const leastFiles, leastMemory = 8, 1 << 20

// account checks the name or number of a user or group.
func (v *validator) account(path, name string) {
	number, err := strconv.Atoi(name)
	switch {
	case name == "":
	case !accountName.MatchString(name):
		v.fail(path, "%q: want a name of this host or its number", name)
	case name == "root" || err == nil && number == 0:
		v.fail(path, "a command does not get root's rights from a daemon without them; remove it, and let a daemon of its own, "+
			"with User=root, run what root must do")
	}
}
