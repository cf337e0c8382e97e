package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/config"
	"baton/internal/daemon/adminsocket"
)

const (
	unitDir = "../../deploy/systemd"
	// stricter and looser are ten times the exposure that systemd 252 measures, so that the removal of a single directive of the sandbox
	// shows.
	stricter, looser, lender = "11", "15", "20"
)

// directives returns the settings of a unit file by their names, in order.
func directives(t *testing.T, name string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(unitDir, name))
	if err != nil {
		t.Fatal(err)
	}
	set := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			set[key] = append(set[key], value)
		}
	}
	return set
}

func TestTheUnitsCallCommandsThatThereAre(t *testing.T) {
	for name, file := range map[string]string{"baton.service": "/etc/baton/baton.yaml", "baton@.service": "/etc/baton/%i.yaml"} {
		unit := directives(t, name)
		for directive, want := range map[string]string{
			"ExecStart":    "/usr/bin/baton run --config " + file,
			"ExecReload":   "/usr/bin/baton reload",
			"ExecStopPost": "/usr/bin/baton release --crashed --config " + file,
		} {
			if !slices.Equal(unit[directive], []string{want}) {
				t.Errorf("%s: %s=%q, want %q", name, directive, unit[directive], want)
			}
			cmd, rest, err := newRootCommand(cmdline.Env{}).Find(strings.Fields(want)[1:])
			if err != nil {
				t.Fatalf("%s: %s: %v", name, directive, err)
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: %s: %v", name, directive, err)
			}
		}
	}
}

// TestTheUnitsTryAgainForEverAndSlowly checks that a host that boots before a mount is ready recovers by itself. A wrong configuration must
// be visible in the journal but must not fill it.
func TestTheUnitsTryAgainForEverAndSlowly(t *testing.T) {
	for _, name := range []string{"baton.service", "baton@.service"} {
		unit := directives(t, name)
		for directive, want := range map[string][]string{
			"Restart": {"always"}, "RestartSec": {"2s"}, "StartLimitIntervalSec": {"0"}, "RestartPreventExitStatus": nil, "SuccessExitStatus": nil,
		} {
			if !slices.Equal(unit[directive], want) {
				t.Errorf("%s: %s=%q, want %q", name, directive, unit[directive], want)
			}
		}
	}
}

// TestTheUnitsGiveTheDirectoriesThatTheDaemonLooksIn checks the runtime directory. There baton reload finds the daemon, in the unit and on
// the command line without --socket. The command that runs after a crash finds lease.json and credentials there.
func TestTheUnitsGiveTheDirectoriesThatTheDaemonLooksIn(t *testing.T) {
	for name, dir := range map[string]string{"baton.service": "baton", "baton@.service": "baton-%i"} {
		unit := directives(t, name)
		for directive, want := range map[string]string{
			"RuntimeDirectory": dir, "StateDirectory": dir, "RuntimeDirectoryMode": "0750", "StateDirectoryMode": "0700",
			"BindReadOnlyPaths": "-/run/credentials/%n:/run/" + dir + "/credentials",
			"Type":              "notify", "KillMode": "mixed", "Restart": "always", "User": "baton", "Group": "baton", "OOMPolicy": "continue", "LimitCORE": "0",
		} {
			if !slices.Equal(unit[directive], []string{want}) {
				t.Errorf("%s: %s=%q, want %q", name, directive, unit[directive], want)
			}
		}
		if unit["WatchdogSec"] == nil || unit["DynamicUser"] != nil {
			t.Errorf("%s: WatchdogSec=%q, DynamicUser=%q; want a watchdog, and a user that files can belong to", name, unit["WatchdogSec"], unit["DynamicUser"])
		}
	}
	none := func(string) (string, bool) { return "", false }
	if got := adminsocket.Path(none); got != "/run/baton/admin.sock" {
		t.Errorf("without $RUNTIME_DIRECTORY baton reload asks on %s, which is not that of baton.service", got)
	}
}

func TestTheTemplateIsTheServiceWithTheInstancesNames(t *testing.T) {
	service, template := directives(t, "baton.service"), directives(t, "baton@.service")
	mine := strings.NewReplacer("/etc/baton/%i.yaml", "/etc/baton/baton.yaml", "baton-%i", "baton", "baton %i:", "baton:")
	for key, values := range template {
		for i := range values {
			values[i] = mine.Replace(values[i])
		}
		if !slices.Equal(values, service[key]) {
			t.Errorf("%s=%q in baton@.service, %q in baton.service", key, values, service[key])
		}
	}
	for key := range service {
		if template[key] == nil {
			t.Errorf("%s= of baton.service is not in baton@.service", key)
		}
	}
}

func TestSystemdFindsNothingWrongAndLittleExposed(t *testing.T) {
	for name, threshold := range map[string]string{"as shipped": stricter, "with the drop-in for programs": looser, "with that for users": lender} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			units := []string{"baton.service", "baton@.service"}
			for _, unit := range units {
				text, err := os.ReadFile(filepath.Join(unitDir, unit))
				if err != nil {
					t.Fatal(err)
				}
				// The program need not be installed on this host.
				put(t, filepath.Join(dir, unit), strings.ReplaceAll(string(text), "/usr/bin/baton", "/bin/true"))
				if file := map[string]string{looser: "command-jobs.conf", lender: "command-users.conf"}[threshold]; file != "" {
					drop, err := os.ReadFile(filepath.Join(unitDir, file))
					if err != nil {
						t.Fatal(err)
					}
					put(t, filepath.Join(dir, unit+".d", file), string(drop))
				}
			}
			for _, unit := range append(units, "baton@reports.service") {
				analyze(t, dir, "verify", "--man=no", unit)
			}
			for _, unit := range units {
				analyze(t, dir, "security", "--offline=true", "--no-pager", "--threshold="+threshold, filepath.Join(dir, unit))
			}
		})
	}
}

// TestTheDropInForProgramsLoosensNothingElse checks the directives of the drop-in, because the score alone does not show which directive
// was loosened.
func TestTheDropInForProgramsLoosensNothingElse(t *testing.T) {
	got := directives(t, "command-jobs.conf")
	want := map[string][]string{
		"MemoryDenyWriteExecute": {"no"}, "SystemCallFilter": {"", "@system-service"}, "ProcSubset": {"all"},
		"RestrictAddressFamilies": {"AF_NETLINK"}, "PrivateUsers": {"no"}, "UMask": {"0027"},
	}
	if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = directives(t, "command-users.conf")
	const capabilities = "CAP_SETUID CAP_SETGID CAP_KILL"
	want = map[string][]string{
		"AmbientCapabilities": {capabilities}, "CapabilityBoundingSet": {capabilities}, "PrivateUsers": {"no"}, "SystemCallFilter": {"@setuid"},
	}
	if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func analyze(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("systemd-analyze", args...)
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":")
	out, err := cmd.CombinedOutput()
	if err != nil || args[0] == "verify" && len(out) > 0 {
		t.Errorf("systemd-analyze %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestThePackagedConfigurationWaitsForALockKeyAndHasNoJobs(t *testing.T) {
	text, err := os.ReadFile("../../deploy/packages/baton.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "# yaml-language-server: $schema=/usr/share/baton/baton.schema.json\n") {
		t.Error("it does not name the schema for editors")
	}
	none := func(string) (string, bool) { return "", false }
	c, err := config.Load("../../deploy/packages/baton.yaml", none)
	if err != nil {
		t.Fatal(err)
	}
	c = c.WithDefaults()
	if err := c.Validate(config.Checks{}); !config.AwaitsLockKey(err) {
		t.Error(err)
	}
	if len(c.Jobs) != 0 || len(c.Databases) != 0 || c.Redis.URL != "redis://127.0.0.1:6379/0" || c.Election.LockKey != "" {
		t.Errorf("got %d jobs, %d databases, redis %q, lock key %q", len(c.Jobs), len(c.Databases), c.Redis.URL, c.Election.LockKey)
	}
	// The settings in comments must also be valid.
	all := strings.NewReplacer("# databases:", "databases:", "# jobs:", "jobs:", "\n#   ", "\n  ", "\n#\n", "\n").Replace(string(text))
	_, all, _ = strings.Cut(all, "\nredis:")
	all = "redis:" + strings.Replace(all, `lock_key: ""`, "lock_key: shop", 1)
	taken := filepath.Join(t.TempDir(), "baton.yaml")
	put(t, taken, all)
	if c, err = config.Load(taken, none); err != nil || len(c.Jobs) != 1 || c.WithDefaults().Validate(config.Checks{}) != nil {
		t.Errorf("with its comments taken in: %d jobs, %v\n%s", len(c.Jobs), err, all)
	}
}
