package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"baton/internal/config"
)

const (
	// fewFiles is a limit of open files that many jobs and databases may reach.
	fewFiles = 1024
	// Free space below littleSpace is a warning; below noSpace it is an error.
	littleSpace, noSpace = 256 << 20, 8 << 20
)

// examineMachine checks the node's needs of the kernel: a synchronized clock, enough open
// files and free space on the disk.
func examineMachine(c config.Config, o Options) []Finding {
	r := &report{subject: subjectHost}
	r.ntp(kernelClock())
	if limit, ok := openFiles(); ok && limit < fewFiles {
		r.add(SeverityWarning, fmt.Sprintf("a process may open %d files", limit),
			"with many jobs, lanes and readers of the page connections are refused, and runs fail",
			"LimitNOFILE= in the unit, or ulimit -n")
	}
	for _, dir := range placesOfState(c, o) {
		if free, ok := freeSpace(dir); ok {
			r.space(dir, free)
		}
	}
	if !r.grave() {
		r.add(SeverityOK, "its clock, its limits and its disks do", "", "")
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
		r.add(SeverityInfo, fmt.Sprintf("whether its clock is synchronized could not be checked: %v", s.why),
			"a clock that runs away has slots start early or late", "ask timedatectl")
	case !s.synchronized:
		r.add(SeverityWarning, "its clock is not synchronized",
			"nothing is lost: leases do not go by clocks. But it drifts by seconds a day, and slots start by the leader's clock",
			"run chrony, systemd-timesyncd or another NTP client; a guest may have its clock from its host, "+
				"then this can be passed over")
	}
}

func (r *report) space(dir string, free int64) {
	const consequence = "the highest epoch is not remembered on this host, and a database there takes no batch: the changes wait in Redis"
	switch {
	case free < noSpace:
		r.add(SeverityError, fmt.Sprintf("the disk of %s is full: %d MiB are free", dir, free>>20), consequence, "make room")
	case free < littleSpace:
		r.add(SeverityWarning, fmt.Sprintf("the disk of %s is nearly full: %d MiB are free", dir, free>>20),
			"soon "+consequence, "make room")
	}
}

// placesOfState are the directories on this host that are written to.
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

// usualState and usualRuntime are the directories that systemd makes for the unit.
func (o Options) usualState() string   { return filepath.Join("/var/lib", directoryOf(o.Unit)) }
func (o Options) usualRuntime() string { return filepath.Join("/run", directoryOf(o.Unit)) }
