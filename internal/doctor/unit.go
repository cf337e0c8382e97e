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

	"baton/internal/command/orphans"
	"baton/internal/config"
	"baton/internal/finding"
	"baton/internal/secret"
)

// UnitOf returns the name of the systemd unit from baton's packages that runs with this configuration file. For a file /etc/baton/NAME.yaml
// it is an instance of baton@.service. For any other file it is baton.service.
func UnitOf(configFile string) string {
	dir, file := filepath.Split(configFile)
	name, isYAML := strings.CutSuffix(file, ".yaml")
	if filepath.Clean(dir) == "/etc/baton" && isYAML && name != "" && name != "baton" {
		return "baton@" + name + ".service"
	}
	return "baton.service"
}

// unitProperties lists the properties to query from systemd. The list lacks two settings that systemctl does not always print as they were
// set: LoadCredential=, and WatchdogSec= while the unit is down. These two are read from the unit's text.
func unitProperties() string {
	return strings.Join([]string{
		"LoadState", "FragmentPath", "DropInPaths", "Type", "NotifyAccess", "KillMode", "SendSIGKILL", "Restart",
		"ExecReload", "ExecStopPost", "TimeoutStopUSec",
		"User", "RuntimeDirectory", "StateDirectory", "ProtectSystem", "ProtectHome", "PrivateTmp", "ReadWritePaths",
		"LimitNOFILE", "MemoryMax", "NeedDaemonReload", "AmbientCapabilities", "PrivateUsers", "SystemCallFilter",
	}, ",")
}

// unit describes a unit of systemd, as systemd reports it.
type unit struct {
	name  string // without .service, as people write it
	shown map[string]string
	text  map[string][]string // the directives in force in the unit's files
}

// examineUnit checks how systemd runs baton on this host.
func examineUnit(ctx context.Context, c config.Config, name string) []Finding {
	r := &report{subject: unitSubject(name)}
	shown, err := systemctl(ctx, "show", "--property="+unitProperties(), "--", name)
	if err != nil {
		r.add(finding.UncheckedUnit, fmt.Sprintf("how systemd runs baton could not be checked: %v", err),
			"missing settings appear only when a daemon crashes",
			"without systemd, make sure that a daemon that has ended is started again, "+
				"and that baton release --crashed runs after it")
		return r.findings
	}
	u := unit{name: strings.TrimSuffix(name, ".service"), shown: assignments(shown)}
	if u.shown["LoadState"] != "loaded" {
		r.add(finding.UncheckedUnit, "systemd has no such unit on this host ("+u.shown["LoadState"]+")",
			"nothing starts baton again after a crash",
			"install the package, or deploy/systemd/baton.service, baton@.service; for a unit with another name, add --unit NAME")
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
		r.add(finding.UnitFits, "systemd runs baton as it needs to be run", "", "")
	}
	return r.findings
}

func systemctl(ctx context.Context, verb string, arguments ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "systemctl", append([]string{verb, "--no-pager"}, arguments...)...)
	cmd.WaitDelay = abandonAfter
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	err := orphans.Run(cmd)
	if errors.As(err, new(*exec.ExitError)) && said.Len() > 0 {
		first, _, _ := strings.Cut(said.String(), "\n")
		return "", errors.New(first)
	}
	return out.String(), err
}

// assignments parses the output of the command `systemctl show`.
func assignments(text string) map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			all[name] = value
		}
	}
	return all
}

// directives parses the output of the command `systemctl cat`. If a directive has an empty value, its earlier values are removed.
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

// ending checks how systemd ends the daemon, and what systemd does after the daemon has ended.
func (r *report) ending(u unit, c config.Config) {
	remedy := "copy the setting from the unit of the package, and check the drop-ins: systemctl cat " + u.name
	if mode := u.shown["KillMode"]; mode != "mixed" {
		r.add(finding.KillMode, "KillMode is "+mode+", not mixed", map[bool]string{
			true: "commands get SIGTERM at the same time as the daemon, which then cannot end them in order; " +
				"a command that ignores SIGTERM delays the release of the lock",
			false: "commands outlive the daemon, and may run beside those of the next leader",
		}[mode == "control-group"], remedy)
	}
	if u.shown["SendSIGKILL"] == "no" {
		r.add(finding.NoSIGKILL, "SendSIGKILL is no",
			"a command that ignores SIGTERM outlives the daemon, and may run beside those of the next leader", remedy)
	}
	if !strings.Contains(u.shown["ExecStopPost"], "release --crashed") {
		r.add(finding.NoRelease, "ExecStopPost= does not run baton release --crashed",
			"after a crash no node leads for the rest of the lease, and processes that the daemon started may still run", remedy)
	}
	if restart := u.shown["Restart"]; restart == "no" || restart == "on-success" {
		r.add(finding.NoRestart, "Restart is "+restart,
			"after a crash this host is no longer a standby, and nothing shows it until the other nodes are gone, too", remedy)
	}
	longest := time.Duration(0)
	for _, j := range c.Jobs {
		if j.IsCommand() {
			longest = max(longest, j.Grace)
		}
	}
	if stop, ok := systemdTime(u.shown["TimeoutStopUSec"]); ok && stop <= c.Election.Drain+longest {
		r.add(finding.ShortStop,
			fmt.Sprintf("TimeoutStopSec is %v, and election.drain and the longest grace of a job are %v", stop, c.Election.Drain+longest),
			"at a stop the daemon is killed while its jobs are still ending: their runs count as lost",
			fmt.Sprintf("TimeoutStopSec=%v, or shorter times in the configuration",
				(c.Election.Drain+longest+10*time.Second).Round(time.Second)))
	}
}

// watched checks whether systemd receives the daemon's notifications, and whether its watchdog watches the daemon.
func (r *report) watched(u unit) {
	if kind := u.shown["Type"]; kind != "notify" {
		r.add(finding.TypeNotNotify, "Type is "+kind+", not notify",
			"a start counts as done before the daemon is ready, and an upgrade goes on to the next host too soon",
			"Type=notify and NotifyAccess=main")
	}
	if watchdog := u.last("WatchdogSec"); u.text != nil && (watchdog == "" || watchdog == "0" || watchdog == "infinity") {
		r.add(finding.NoWatchdog, "WatchdogSec= is not set",
			"a daemon that hangs is not started again; another node leads, but this host is no longer a standby", "WatchdogSec=60s")
	}
	if u.shown["ExecReload"] == "" {
		r.add(finding.NoReload, "ExecReload= is not set", "systemctl reload fails", "ExecReload=/usr/bin/baton reload")
	}
	if u.shown["RuntimeDirectory"] == "" {
		r.add(finding.NoRuntimeDirectory, "RuntimeDirectory= is not set",
			"there is no lease file, so after a crash no node leads for the rest of the lease; there is also no admin socket",
			"RuntimeDirectory="+directoryOf(u.name))
	}
	if u.shown["StateDirectory"] == "" {
		r.add(finding.NoStateDirectory, "StateDirectory= is not set",
			"a Redis that has lost everything counts as a new one on this host, unless a database has its epochs",
			"StateDirectory="+directoryOf(u.name))
	}
	if u.shown["NeedDaemonReload"] == "yes" {
		r.add(finding.ChangedUnit, "its files have changed since systemd read them", "the changes are not in force",
			"run systemctl daemon-reload, and restart the unit")
	}
}

func (u unit) last(name string) string {
	if all := u.text[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// directoryOf returns the name that the directories of the unit have below /run and /var/lib. The unit "" stands for baton.service.
func directoryOf(unit string) string {
	return cmp.Or(strings.ReplaceAll(strings.TrimSuffix(unit, ".service"), "@", "-"), "baton")
}

func (u unit) stateDirectory() string {
	if dirs := strings.Fields(u.shown["StateDirectory"]); len(dirs) > 0 {
		return "/var/lib/" + dirs[0]
	}
	return "/var/lib/" + directoryOf(u.name)
}

// rights checks the user, the resource limits and the credentials that the unit gives to the daemon.
func (r *report) rights(u unit, c config.Config) {
	const little, few = 64 << 20, fewFiles
	if user := u.shown["User"]; user == "" || user == "root" {
		r.add(finding.RunsAsRoot, "it runs as root", "an attacker who controls a job, or the daemon, controls the host",
			"User=baton, and a separate daemon for root's jobs")
	}
	if n, err := strconv.ParseInt(u.shown["LimitNOFILE"], 10, 64); err == nil && n < few {
		r.add(finding.UnitFewFiles, fmt.Sprintf("LimitNOFILE is %d", n),
			"with many jobs, lanes and readers of the page connections are refused, and runs fail",
			"remove it, because systemd's default limit is enough")
	}
	if n, err := strconv.ParseInt(u.shown["MemoryMax"], 10, 64); err == nil && n < little {
		r.add(finding.LittleMemory, fmt.Sprintf("MemoryMax is %d MiB", n>>20),
			"the kernel kills the daemon in the middle of a large batch, and its jobs with it: nothing is lost, "+
				"but the next daemon fails at the same batch", "MemoryMax=256M or more, plus the memory that the commands need")
	}
	for _, credential := range u.text["LoadCredential"] {
		_, path, _ := strings.Cut(credential, ":")
		if filepath.IsAbs(path) && missing(path) {
			r.add(finding.NoCredential, "LoadCredential= names a file that is not there: "+path, "the daemon does not start",
				"create it, readable by root only (mode 600), or remove the line")
		}
	}
	if len(u.text["LoadCredential"])+len(u.text["LoadCredentialEncrypted"]) > 0 || u.text == nil {
		return
	}
	for _, path := range secret.Files(c) {
		if strings.HasPrefix(path, "/run/credentials/") {
			r.add(finding.NoCredential, "it has no LoadCredential=, but the configuration reads "+path,
				"the daemon does not start, or its jobs fail", "LoadCredential= in a drop-in: systemctl edit "+u.name)
		}
	}
}

// sandbox checks whether the unit's sandbox allows the daemon to write to all paths in the configuration that it must write to.
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
			r.add(finding.DatabaseFileInSandbox,
				fmt.Sprintf("the file of a database, %s, cannot be written in its sandbox (%s)", path, why),
				"every batch fails; nothing is lost, the changes wait in Redis until its memory is full",
				"ReadWritePaths="+filepath.Dir(path)+" in a drop-in: systemctl edit "+u.name+"; or keep it in "+u.stateDirectory())
		}
	}
	r.surroundings(u, c, open)
	commands := slices.ContainsFunc(c.Jobs, config.Job.IsCommand)
	loosened := strings.Contains(u.shown["DropInPaths"], "command-jobs.conf") || len(strings.Fields(u.shown["ReadWritePaths"])) > 0
	if commands && u.shown["ProtectSystem"] == "strict" && !loosened {
		r.add(finding.TightSandbox, "its jobs run commands in the tight sandbox: they can write to "+u.stateDirectory()+" and /tmp only",
			"a command that writes elsewhere, or compiles code while it runs (Java, Node), fails",
			"test it with baton job run NAME; if the run fails, set ReadWritePaths=, or use the drop-in command-jobs.conf")
	}
}

// closed returns the setting of the unit that makes a path read-only, or "" if no setting does this. The function within reports whether
// the path is in a directory.
func (u unit) closed(within func(dir string) bool) string {
	system := u.shown["ProtectSystem"]
	switch {
	case u.shown["ProtectHome"] != "no" && u.shown["ProtectHome"] != "" && (within("/home") || within("/root") || within("/run/user")):
		return "ProtectHome=" + u.shown["ProtectHome"]
	case u.shown["PrivateTmp"] == "yes" && (within("/tmp") || within("/var/tmp")):
		return "PrivateTmp=yes: the daemon has its own /tmp, which is deleted with the daemon"
	case system == "strict" && !within("/tmp") && !within("/var/tmp"):
		return "ProtectSystem=strict"
	case (system == "full" || system == "yes") && (within("/usr") || within("/boot") || system == "full" && within("/etc")):
		return "ProtectSystem=" + system
	}
	return ""
}

// systemdTime parses a duration in systemd's format, such as "1min 30s". It returns false for "infinity", and for text that is not a
// duration.
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
