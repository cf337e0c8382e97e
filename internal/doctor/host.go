package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"baton/internal/config"
	"baton/internal/finding"
)

const (
	// fewFiles is a low limit of open files, which many jobs and databases may reach.
	fewFiles = 1024
	// littleSpace and noSpace are numbers of bytes. Less free space than littleSpace is a warning, and less than noSpace is an error.
	littleSpace, noSpace = 256 << 20, 8 << 20
)

// examineMachine checks the properties of the host that a node needs: a synchronized clock, enough open files and free space on the
// disk.
func examineMachine(c config.Config, o Options) []Finding {
	r := &report{subject: subjectHost}
	r.ntp(kernelClock())
	if limit, ok := openFiles(); ok && limit < fewFiles {
		r.add(finding.FewFiles, fmt.Sprintf("a process may open %d files", limit),
			"with many jobs, lanes and readers of the page connections are refused, and runs fail",
			"LimitNOFILE= in the unit, or ulimit -n")
	}
	for _, dir := range placesOfState(c, o) {
		if free, ok := freeSpace(dir); ok {
			r.space(dir, free)
		}
	}
	if !r.grave() {
		r.add(finding.HostFits, "its clock, its limits and its disks are fine", "", "")
	}
	return r.findings
}

// clockState is the kernel's report on its clock.
type clockState struct {
	known, synchronized bool
	why                 error
}

func (r *report) ntp(s clockState) {
	switch {
	case !s.known:
		r.add(finding.UncheckedHostClock, fmt.Sprintf("whether its clock is synchronized could not be checked: %v", s.why),
			"with a wrong clock, slots start early or late", "check it with timedatectl")
	case !s.synchronized:
		r.add(finding.UnsyncedClock, "its clock is not synchronized",
			"nothing is lost: leases do not go by clocks. But it drifts by seconds a day, and slots start by the leader's clock",
			"run chrony, systemd-timesyncd or another NTP client; a virtual machine may get its time from its host, "+
				"then ignore this warning")
	}
}

func (r *report) space(dir string, free int64) {
	const consequence = "the highest epoch is not stored on this host, and a database on this disk accepts no batch: the " +
		"changes wait in Redis"
	switch {
	case free < noSpace:
		r.add(finding.FullDisk, fmt.Sprintf("the disk of %s is full: %d MiB are free", dir, free>>20), consequence, "free some disk space")
	case free < littleSpace:
		r.add(finding.NearlyFullDisk, fmt.Sprintf("the disk of %s is nearly full: %d MiB are free", dir, free>>20),
			"soon "+consequence, "free some disk space")
	}
}

// placesOfState returns the directories on this host in which the node writes files.
func placesOfState(c config.Config, o Options) []string {
	var dirs []string
	if dir, _, _ := strings.Cut(o.env("STATE_DIRECTORY"), ":"); dir != "" {
		dirs = append(dirs, filepath.Clean(dir))
	} else if _, err := os.Stat(o.usualState()); err == nil {
		dirs = append(dirs, o.usualState())
	}
	for _, path := range sqliteFiles(c) {
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

// usualState and usualRuntime return the state directory and the runtime directory that systemd makes for the unit.
func (o Options) usualState() string   { return filepath.Join("/var/lib", directoryOf(o.Unit)) }
func (o Options) usualRuntime() string { return filepath.Join("/run", directoryOf(o.Unit)) }
