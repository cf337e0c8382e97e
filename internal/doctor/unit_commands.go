package doctor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"baton/internal/config"
	"baton/internal/finding"
)

// surroundings checks whether the unit lets the jobs' commands run with their settings.
func (r *report) surroundings(u unit, c config.Config, open []string) {
	for _, j := range c.Jobs {
		if !j.IsCommand() {
			continue
		}
		if missing := u.lacks(j); missing != "" {
			r.add(finding.NoRightToUsers, fmt.Sprintf("job %q has a user of its own, and the unit lacks %s", j.Name, missing),
				"the daemon does not start, because it could neither start nor end the command",
				"the drop-in command-users.conf, after reading its comments; or a separate daemon with that User=")
		}
		if filter := strings.Fields(u.shown["SystemCallFilter"]); j.Nice != 0 && forbids(filter, "setpriority") {
			r.add(finding.NoRightToNice, fmt.Sprintf("job %q sets nice, and SystemCallFilter= forbids it", j.Name),
				"the daemon does not start", "the drop-in command-jobs.conf; or remove nice")
		}
		within := func(dir string) bool { return strings.HasPrefix(j.LogFile, strings.TrimSuffix(dir, "/")+"/") }
		if why := u.closed(within); j.LogFile != "" && why != "" && !slices.ContainsFunc(open, within) {
			r.add(finding.LogFileInSandbox,
				fmt.Sprintf("the log file of job %q, %s, cannot be written in its sandbox (%s)", j.Name, j.LogFile, why),
				"its runs fail",
				"ReadWritePaths="+filepath.Dir(j.LogFile)+" in a drop-in: systemctl edit "+u.name+"; or keep it in "+u.stateDirectory())
		}
	}
}

// lacks returns the setting that the unit needs so that a command can run as its own user. It returns "" if no setting is missing.
func (u unit) lacks(j config.Job) string {
	if user := u.shown["User"]; j.User == "" && j.Group == "" || user == "" || user == "root" {
		return ""
	}
	if u.shown["PrivateUsers"] == "yes" {
		return "PrivateUsers=no"
	}
	given := strings.Fields(strings.ToLower(u.shown["AmbientCapabilities"]))
	for _, capability := range []string{"CAP_SETUID", "CAP_SETGID", "CAP_KILL"} {
		if !slices.Contains(given, strings.ToLower(capability)) {
			return "AmbientCapabilities=" + capability
		}
	}
	for _, call := range []string{"setresuid", "setresgid", "setgroups"} {
		if forbids(strings.Fields(u.shown["SystemCallFilter"]), call) {
			return "SystemCallFilter=@setuid"
		}
	}
	return ""
}

// forbids reports whether the unit's setting SystemCallFilter= forbids a system call. The argument filter is this setting as systemctl
// shows it. It lists the allowed calls, or the forbidden calls after a "~".
func forbids(filter []string, call string) bool {
	if len(filter) == 0 {
		return false
	}
	first, denied := strings.CutPrefix(filter[0], "~")
	listed := first == call || slices.Contains(filter[1:], call)
	return listed == denied
}
