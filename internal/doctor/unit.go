package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"baton/internal/config"
	"baton/internal/secret"
)

// UnitOf is the unit of the packages that runs with a configuration file: an instance of
// baton@.service for each /etc/baton/NAME.yaml, else baton.service.
func UnitOf(configFile string) string {
	dir, file := filepath.Split(configFile)
	name, isYAML := strings.CutSuffix(file, ".yaml")
	if filepath.Clean(dir) == "/etc/baton" && isYAML && name != "" && name != "baton" {
		return "baton@" + name + ".service"
	}
	return "baton.service"
}

// unitProperties lists the properties to query from systemd. It does not print all settings
// as they were set: LoadCredential=, and WatchdogSec= while the unit is down. These are read
// from the unit's text.
func unitProperties() string {
	return strings.Join([]string{
		"LoadState", "FragmentPath", "DropInPaths", "Type", "NotifyAccess", "KillMode", "SendSIGKILL", "Restart",
		"ExecReload", "ExecStopPost", "TimeoutStopUSec",
		"User", "RuntimeDirectory", "StateDirectory", "ProtectSystem", "ProtectHome", "PrivateTmp", "ReadWritePaths",
		"LimitNOFILE", "MemoryMax", "NeedDaemonReload", "AmbientCapabilities", "PrivateUsers", "SystemCallFilter",
	}, ",")
}

// unit is a unit as systemd reports it.
type unit struct {
	name  string // as people write it: without .service
	shown map[string]string
	text  map[string][]string // the directives of its files that are in force
}

// examineUnit checks how systemd runs baton on this host.
func examineUnit(ctx context.Context, c config.Config, name string) []Finding {
	r := &report{subject: unitSubject(name)}
	shown, err := systemctl(ctx, "show", "--property="+unitProperties(), "--", name)
	if err != nil {
		r.add(SeverityInfo, fmt.Sprintf("how systemd runs baton could not be checked: %v", err),
			"missing settings show when a daemon crashes",
			"without systemd, see to it that a daemon that has ended is started again, "+
				"and that baton release --crashed runs after it")
		return r.findings
	}
	u := unit{name: strings.TrimSuffix(name, ".service"), shown: assignments(shown)}
	if u.shown["LoadState"] != "loaded" {
		r.add(SeverityInfo, "systemd has no such unit on this host ("+u.shown["LoadState"]+")",
			"nothing starts baton again after a crash",
			"install the package, or deploy/systemd/baton.service, baton@.service; a unit of another name: --unit NAME")
		return r.findings
	}
	text, err := systemctl(ctx, "cat", "--", name)
	if err == nil {
		u.text = directives(text)
	}
	r.ending(u, c)
	r.watched(u)
	r.rights(u, c)
	r.sandbox(u, c)
	if !r.grave() {
		r.add(SeverityOK, "systemd runs baton as it needs to be run", "", "")
	}
	return r.findings
}

func systemctl(ctx context.Context, verb string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "systemctl", append([]string{verb, "--no-pager"}, arguments...)...)
	cmd.WaitDelay = abandonAfter
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && len(failed.Stderr) > 0 {
		first, _, _ := strings.Cut(string(failed.Stderr), "\n")
		return "", errors.New(first)
	}
	return string(out), err
}

// assignments reads what systemctl show prints.
func assignments(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			all[name] = value
		}
	}
	return all
}

// directives parses the output of systemctl cat. An empty value resets its directive.
func directives(text string) map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		switch {
		case !ok || strings.HasPrefix(line, "#") || strings.HasPrefix(line, ";"):
		case value == "":
			delete(all, name)
		default:
			all[name] = append(all[name], value)
		}
	}
	return all
}

// ending checks how the daemon is ended, and what happens then.
func (r *report) ending(u unit, c config.Config) {
	remedy := "take it from the unit of the package, and check for drop-ins: systemctl cat " + u.name
	if mode := u.shown["KillMode"]; mode != "mixed" {
		r.add(SeverityError, "KillMode is "+mode+", not mixed", map[bool]string{
			true: "commands get SIGTERM at the same time as the daemon, which then cannot end them in order; " +
				"one that ignores it holds up the release of the lock",
			false: "commands outlive the daemon, and may run beside those of the next leader",
		}[mode == "control-group"], remedy)
	}
	if u.shown["SendSIGKILL"] == "no" {
		r.add(SeverityError, "SendSIGKILL is no",
			"a command that ignores SIGTERM outlives the daemon, and may run beside those of the next leader", remedy)
	}
	if !strings.Contains(u.shown["ExecStopPost"], "release --crashed") {
		r.add(SeverityWarning, "ExecStopPost= does not run baton release --crashed",
			"after a crash no node leads for the rest of the lease, and processes that the daemon started may still run", remedy)
	}
	if restart := u.shown["Restart"]; restart == "no" || restart == "on-success" {
		r.add(SeverityWarning, "Restart is "+restart,
			"after a crash this host no longer stands by, unnoticed until the others are gone, too", remedy)
	}
	longest := time.Duration(0)
	for _, j := range c.Jobs {
		if j.IsCommand() {
			longest = max(longest, j.Grace)
		}
	}
	if stop, ok := systemdTime(u.shown["TimeoutStopUSec"]); ok && stop <= c.Election.Drain+longest {
		r.add(SeverityWarning,
			fmt.Sprintf("TimeoutStopSec is %v, and election.drain and the longest grace of a job are %v", stop, c.Election.Drain+longest),
			"at a stop the daemon is killed while its jobs are still ending: their runs count as lost",
			fmt.Sprintf("TimeoutStopSec=%v, or shorter times in the configuration",
				(c.Election.Drain+longest+10*time.Second).Round(time.Second)))
	}
}

// watched checks whether systemd and the daemon talk to each other.
func (r *report) watched(u unit) {
	if kind := u.shown["Type"]; kind != "notify" {
		r.add(SeverityWarning, "Type is "+kind+", not notify",
			"a start counts as done before the daemon is ready, and an upgrade goes on to the next host too soon",
			"Type=notify and NotifyAccess=main")
	}
	if watchdog := u.last("WatchdogSec"); u.text != nil && (watchdog == "" || watchdog == "0" || watchdog == "infinity") {
		r.add(SeverityWarning, "WatchdogSec= is not set",
			"a daemon that hangs is not started again; another node leads, but this one no longer stands by", "WatchdogSec=60s")
	}
	if u.shown["ExecReload"] == "" {
		r.add(SeverityInfo, "ExecReload= is not set", "systemctl reload fails", "ExecReload=/usr/bin/baton reload")
	}
	if u.shown["RuntimeDirectory"] == "" {
		r.add(SeverityWarning, "RuntimeDirectory= is not set",
			"there is no lease file: after a crash no node leads for the rest of the lease. And no admin socket",
			"RuntimeDirectory="+directoryOf(u.name))
	}
	if u.shown["StateDirectory"] == "" {
		r.add(SeverityInfo, "StateDirectory= is not set",
			"a Redis that has lost everything counts as a new one on this host, unless a database knows better",
			"StateDirectory="+directoryOf(u.name))
	}
	if u.shown["NeedDaemonReload"] == "yes" {
		r.add(SeverityWarning, "its files have changed since systemd read them", "the changes are not in force",
			"systemctl daemon-reload, and restart it")
	}
}

func (u unit) last(name string) string {
	if all := u.text[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// directoryOf is the name of the directories below /run and /var/lib that the packages' unit
// has; "" stands for baton.service.
func directoryOf(unit string) string {
	return cmp.Or(strings.ReplaceAll(strings.TrimSuffix(unit, ".service"), "@", "-"), "baton")
}

func (u unit) stateDirectory() string {
	if dirs := strings.Fields(u.shown["StateDirectory"]); len(dirs) > 0 {
		return "/var/lib/" + dirs[0]
	}
	return "/var/lib/" + directoryOf(u.name)
}

// rights checks the daemon's user, its limits and its credentials.
func (r *report) rights(u unit, c config.Config) {
	const little, few = 64 << 20, fewFiles
	if user := u.shown["User"]; user == "" || user == "root" {
		r.add(SeverityWarning, "it runs as root", "an attacker who takes over a job, or the daemon, has the host",
			"User=baton, and for root's jobs a daemon of their own")
	}
	if n, err := strconv.ParseInt(u.shown["LimitNOFILE"], 10, 64); err == nil && n < few {
		r.add(SeverityWarning, fmt.Sprintf("LimitNOFILE is %d", n),
			"with many jobs, lanes and readers of the page connections are refused, and runs fail",
			"take it out: systemd's own limit does")
	}
	if n, err := strconv.ParseInt(u.shown["MemoryMax"], 10, 64); err == nil && n < little {
		r.add(SeverityWarning, fmt.Sprintf("MemoryMax is %d MiB", n>>20),
			"the kernel kills the daemon in the middle of a large batch, and its jobs with it: nothing is lost, "+
				"but the next one does not get further", "MemoryMax=256M or more, and the need of the commands on top")
	}
	for _, credential := range u.text["LoadCredential"] {
		_, path, _ := strings.Cut(credential, ":")
		if filepath.IsAbs(path) && missing(path) {
			r.add(SeverityError, "LoadCredential= names a file that is not there: "+path, "the daemon does not start",
				"write it, for root alone (mode 600), or take the line out")
		}
	}
	if len(u.text["LoadCredential"])+len(u.text["LoadCredentialEncrypted"]) > 0 || u.text == nil {
		return
	}
	for _, path := range secret.Files(c) {
		if strings.HasPrefix(path, "/run/credentials/") {
			r.add(SeverityError, "it hands over no credentials, and the configuration reads "+path,
				"the daemon does not start, or its jobs fail", "LoadCredential= in a drop-in: systemctl edit "+u.name)
		}
	}
}

// sandbox checks whether the daemon can write, in its sandbox, to all paths that the
// configuration writes to.
func (r *report) sandbox(u unit, c config.Config) {
	open := strings.Fields(u.shown["ReadWritePaths"])
	for i, path := range open {
		open[i] = strings.TrimLeft(path, "-+")
	}
	for dir := range strings.FieldsSeq(u.shown["StateDirectory"]) {
		open = append(open, "/var/lib/"+dir)
	}
	for _, path := range sqliteFiles(c) {
		within := func(dir string) bool { return strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/") }
		if why := u.closed(within); why != "" && !slices.ContainsFunc(open, within) {
			r.add(SeverityError, fmt.Sprintf("the file of a database, %s, cannot be written in its sandbox (%s)", path, why),
				"every batch fails; nothing is lost, the changes wait in Redis until its memory is full",
				"ReadWritePaths="+filepath.Dir(path)+" in a drop-in: systemctl edit "+u.name+"; or keep it in "+u.stateDirectory())
		}
	}
	r.surroundings(u, c, open)
	commands := slices.ContainsFunc(c.Jobs, config.Job.IsCommand)
	loosened := strings.Contains(u.shown["DropInPaths"], "command-jobs.conf") || len(strings.Fields(u.shown["ReadWritePaths"])) > 0
	if commands && u.shown["ProtectSystem"] == "strict" && !loosened {
		r.add(SeverityInfo, "its jobs run commands in the tight sandbox: they can write to "+u.stateDirectory()+" and /tmp only",
			"a command that writes elsewhere, or translates programs as it runs (Java, Node), fails",
			"try it out: baton job run NAME; then ReadWritePaths=, or the drop-in command-jobs.conf")
	}
}

// closed names the setting that makes a path read-only; "" if none does.
func (u unit) closed(within func(dir string) bool) string {
	system := u.shown["ProtectSystem"]
	switch {
	case u.shown["ProtectHome"] != "no" && u.shown["ProtectHome"] != "" && (within("/home") || within("/root") || within("/run/user")):
		return "ProtectHome=" + u.shown["ProtectHome"]
	case u.shown["PrivateTmp"] == "yes" && (within("/tmp") || within("/var/tmp")):
		return "PrivateTmp=yes: it is another one, which goes with the daemon"
	case system == "strict" && !within("/tmp") && !within("/var/tmp"):
		return "ProtectSystem=strict"
	case (system == "full" || system == "yes") && (within("/usr") || within("/boot") || system == "full" && within("/etc")):
		return "ProtectSystem=" + system
	}
	return ""
}

// systemdTime parses a time such as "1min 30s". It returns false for infinity, and for text
// that is not a time.
func systemdTime(text string) (time.Duration, bool) {
	units := map[string]time.Duration{"us": time.Microsecond, "ms": time.Millisecond, "s": time.Second,
		"min": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}
	total := time.Duration(0)
	for word := range strings.FieldsSeq(text) {
		at := strings.IndexFunc(word, func(c rune) bool { return (c < '0' || c > '9') && c != '.' })
		if at <= 0 {
			return 0, false
		}
		n, err := strconv.ParseFloat(word[:at], 64)
		scale, known := units[word[at:]]
		if err != nil || !known {
			return 0, false
		}
		total += time.Duration(n * float64(scale))
	}
	return total, text != ""
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
