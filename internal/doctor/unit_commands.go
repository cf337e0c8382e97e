package doctor

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"baton/internal/config"
)

// surroundings checks whether the unit lets commands have what their jobs set.
func (r *report) surroundings(u unit, c config.Config, open []string) {
	for _, j := range c.Jobs {
		if !j.IsCommand() {
			continue
		}
		if missing := u.lacks(j); missing != "" {
			r.add(SeverityError, fmt.Sprintf("job %q has a user of its own, and the unit lacks %s", j.Name, missing),
				"the daemon does not start, as it could neither begin nor end the command",
				"the drop-in command-users.conf, which says its price; or a daemon of its own with that User=")
		}
		if filter := strings.Fields(u.shown["SystemCallFilter"]); j.Nice != 0 && forbids(filter, "setpriority") {
			r.add(SeverityError, fmt.Sprintf("job %q sets nice, and SystemCallFilter= forbids it", j.Name),
				"the daemon does not start", "the drop-in command-jobs.conf; or remove nice")
		}
		within := func(dir string) bool { return strings.HasPrefix(j.LogFile, strings.TrimSuffix(dir, "/")+"/") }
		if why := u.closed(within); j.LogFile != "" && why != "" && !slices.ContainsFunc(open, within) {
			r.add(SeverityError, fmt.Sprintf("the log file of job %q, %s, cannot be written in its sandbox (%s)", j.Name, j.LogFile, why),
				"its runs fail",
				"ReadWritePaths="+filepath.Dir(j.LogFile)+" in a drop-in: systemctl edit "+u.name+"; or keep it in "+u.stateDirectory())
		}
	}
}

// lacks returns the setting that the unit lacks for a command with a user of its own, or "".
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

// forbids reports whether SystemCallFilter=, as systemctl shows it, excludes a call. The filter
// lists the allowed calls or, after a ~, the forbidden ones.
func forbids(filter []string, call string) bool {
	if len(filter) == 0 {
		return false
	}
	first, denied := strings.CutPrefix(filter[0], "~")
	listed := first == call || slices.Contains(filter[1:], call)
	return listed == denied
}
