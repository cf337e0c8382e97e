package doctor

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"baton/internal/config"
	"baton/internal/redislock"
)

// goodUnit returns the answer of a real systemd about the unit of the packages.
func goodUnit(t *testing.T) unit {
	t.Helper()
	read := func(verb string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "systemctl", "good."+verb))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	return unit{name: "baton", shown: assignments(read("show")), text: directives(read("cat"))}
}

func judgeUnit(u unit, c config.Config) []Finding {
	r := &report{subject: "unit"}
	r.ending(u, c)
	r.watched(u)
	r.rights(u, c)
	r.sandbox(u, c)
	return r.findings
}

// Each setting is wrong once, and each is reported separately, with its own severity.
func TestEachSettingOfAUnitIsJudgedByItself(t *testing.T) {
	there := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		setting, want string
	}{
		{"", ""},
		{"KillMode=control-group", "error: KillMode is control-group, not mixed: commands get SIGTERM at the same time"},
		{"KillMode=process", "error: KillMode is process, not mixed: commands outlive the daemon"},
		{"SendSIGKILL=no", "error: SendSIGKILL is no"},
		{"ExecStopPost=", "warning: ExecStopPost= does not run baton release --crashed"},
		{"Restart=no", "warning: Restart is no"}, {"Restart=on-success", "warning: Restart is on-success"}, {"Restart=on-failure", ""},
		{"TimeoutStopUSec=2s", "warning: TimeoutStopSec is 2s, and election.drain and the longest grace of a job are 2s"}, {"TimeoutStopUSec=2001ms", ""}, {"TimeoutStopUSec=infinity", ""},
		{"Type=simple", "warning: Type is simple, not notify"},
		{"!WatchdogSec=", "warning: WatchdogSec= is not set"}, {"!WatchdogSec=0", "warning: WatchdogSec= is not set"}, {"!WatchdogSec=infinity", "warning: WatchdogSec= is not set"}, {"!WatchdogSec=5min", ""},
		{"ExecReload=", "info: ExecReload= is not set"},
		{"RuntimeDirectory=", "warning: RuntimeDirectory= is not set"}, {"StateDirectory=", "info: StateDirectory= is not set"},
		{"NeedDaemonReload=yes", "warning: its files have changed"},
		{"User=", "warning: it runs as root"}, {"User=root", "warning: it runs as root"},
		{"LimitNOFILE=1023", "warning: LimitNOFILE is 1023"}, {"LimitNOFILE=1024", ""}, {"LimitNOFILE=infinity", ""},
		{"MemoryMax=67108863", "warning: MemoryMax is 63 MiB"}, {"MemoryMax=67108864", ""}, {"MemoryMax=infinity", ""},
		{"!LoadCredential=main.dsn:/nowhere/dsn", "error: LoadCredential= names a file that is not there: /nowhere/dsn"}, {"!LoadCredential=main.dsn:" + there, ""}, {"!LoadCredential=main.dsn:dsn", ""},
	} {
		u := goodUnit(t)
		u.shown, u.text = maps.Clone(u.shown), maps.Clone(u.text)
		name, value, _ := strings.Cut(c.setting, "=")
		switch name, inText := strings.CutPrefix(name, "!"); {
		case inText && value == "":
			delete(u.text, name)
		case inText:
			u.text[name] = []string{"1", value} // the last value counts, or all values count
		case name != "":
			u.shown[name] = value
		}
		conf := configOf("redis://127.0.0.1:1")
		conf.Election.Drain = 2 * time.Second
		conf.Jobs = []config.Job{flushOf("flush", config.From{}, config.To{})}
		conf.Jobs[0].Grace = time.Hour // the grace of a flush has no effect
		var told []string
		for _, f := range judgeUnit(u, conf) {
			told = append(told, string(f.Severity)+": "+f.What+": "+f.Consequence)
			if f.Consequence == "" || f.Remedy == "" {
				t.Errorf("%s: it lacks something: %+v", c.setting, f)
			}
		}
		if c.want == "" && len(told) > 0 || c.want != "" && (len(told) != 1 || !strings.HasPrefix(told[0], c.want)) {
			t.Errorf("%s: %q, want %q", c.setting, told, c.want)
		}
	}
}

func TestCredentialsThatNobodyHandsOverAreTold(t *testing.T) {
	c := configOf("redis://127.0.0.1:1")
	c.Redis.PasswordFile = "/run/credentials/baton.service/redis"
	for _, given := range []string{"", "LoadCredential", "LoadCredentialEncrypted"} {
		u := goodUnit(t)
		if given != "" {
			u.text[given] = []string{"redis:redis"}
		}
		all := judgeUnit(u, c)
		if given == "" {
			wantFound(t, all, SeverityError, "unit", "it has no LoadCredential=, but the configuration reads "+c.Redis.PasswordFile)
		} else if len(all) != 0 {
			t.Errorf("%s: %+v", given, all)
		}
	}
	u := goodUnit(t)
	if u.text = nil; len(judgeUnit(u, c)) != 0 { // the unit's files could not be read, so nothing is known about them
		t.Errorf("%+v", judgeUnit(u, c))
	}
	c.Redis.PasswordFile = "/etc/baton/redis"
	if all := judgeUnit(goodUnit(t), c); len(all) != 0 {
		t.Errorf("a file that needs no credential: %+v", all)
	}
}

func TestWhereTheSandboxLetsADatabaseBe(t *testing.T) {
	for _, c := range []struct{ settings, path, closed string }{
		{"", "/srv/x.db", "ProtectSystem=strict"}, {"", "/root/x.db", "ProtectHome=yes"}, {"", "/run/user/1/x.db", "ProtectHome=yes"}, {"", "/var/tmp/x.db", "PrivateTmp=yes"},
		{"", "/var/lib/baton/x.db", ""}, {"ReadWritePaths=-/srv +/data/", "/srv/x.db", ""}, {"ReadWritePaths=-/srv +/data/", "/data/x.db", ""},
		{"ProtectHome=no", "/home/x.db", "ProtectSystem=strict"}, {"ProtectHome=no ProtectSystem=no", "/home/x.db", ""}, {"ProtectHome=", "/root/x.db", "ProtectSystem=strict"},
		{"PrivateTmp=no", "/tmp/x.db", ""}, {"PrivateTmp=no", "/var/tmp/x.db", ""},
		{"ProtectSystem=full", "/usr/x.db", "ProtectSystem=full"}, {"ProtectSystem=full", "/etc/x.db", "ProtectSystem=full"}, {"ProtectSystem=full", "/boot/x.db", "ProtectSystem=full"}, {"ProtectSystem=full", "/srv/x.db", ""},
		{"ProtectSystem=yes", "/usr/x.db", "ProtectSystem=yes"}, {"ProtectSystem=yes", "/boot/x.db", "ProtectSystem=yes"}, {"ProtectSystem=yes", "/etc/x.db", ""}, {"ProtectSystem=no", "/usr/x.db", ""},
	} {
		u := goodUnit(t)
		for i, setting := range strings.Split(c.settings, " Pro") {
			if i > 0 {
				setting = "Pro" + setting
			}
			if name, value, ok := strings.Cut(setting, "="); ok {
				u.shown[name] = value
			}
		}
		conf := configOf("redis://127.0.0.1:1")
		conf.Databases = map[string]config.Database{"main": {Driver: "sqlite", DSNInline: "file:" + c.path + "?mode=rw"}, "other": {Driver: "postgres", DSNInline: "/srv/socket"}, "memory": {Driver: "sqlite", DSNInline: "relative.db"}}
		all := judgeUnit(u, conf)
		if c.closed == "" && len(all) != 0 || c.closed != "" && (len(all) != 1 || !strings.Contains(all[0].What, c.path+", cannot be written in its sandbox ("+c.closed)) {
			t.Errorf("%s with %q: %+v, want %q", c.path, c.settings, all, c.closed)
		}
	}
	conf := configOf("redis://127.0.0.1:1")
	conf.Jobs = []config.Job{{Name: "j", Command: config.Command{"true"}}}
	for setting, told := range map[string]bool{"x=": true, "ProtectSystem=no": false, "ReadWritePaths=/srv": false, "DropInPaths=/etc/systemd/system/baton.service.d/command-jobs.conf": false} {
		u := goodUnit(t)
		name, value, _ := strings.Cut(setting, "=")
		u.shown[name] = value
		if all := judgeUnit(u, conf); len(all) > 0 != told {
			t.Errorf("commands with %s: %+v", setting, all)
		}
	}
}

func TestWhatSystemctlPrintsIsRead(t *testing.T) {
	text := "# /usr/lib/baton.service\n[Service]\n#KillMode=process\n; LimitNOFILE=1\nLoadCredential=a:/a\n LoadCredential=b:/b=c\nEnvironment=A=b\nEnvironment=\nUser=x\nUser=y\n"
	got := directives(text)
	want := map[string][]string{"LoadCredential": {"a:/a", "b:/b=c"}, "User": {"x", "y"}}
	if !maps.EqualFunc(got, want, func(a, b []string) bool { return strings.Join(a, "|") == strings.Join(b, "|") }) {
		t.Errorf("%q", got)
	}
	if u := (unit{text: got}); u.last("User") != "y" || u.last("Group") != "" {
		t.Errorf("%q, %q", u.last("User"), u.last("Group"))
	}
	for text, want := range map[string]bool{"1.5s": true, "3weeks": false, "s": false, "-5s": false, "2w 1d": true, "5 s": false} {
		if got, ok := systemdTime(text); ok != want || ok && got <= 0 {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte("#!/bin/sh\necho 'Failed to connect to bus: No such file' >&2\necho more >&2\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	all := examineUnit(t.Context(), configOf("redis://127.0.0.1:1"), "baton.service")
	if len(all) != 1 || !strings.HasSuffix(all[0].What, "could not be checked: Failed to connect to bus: No such file") {
		t.Errorf("%+v", all)
	}
}

// A node that checks itself is not compared with the part of its configuration that it passes.
func TestANodeIsComparedWithWhatItCanBeComparedWith(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	node := func(id, version, hash string, clock time.Duration) redislock.Node {
		n := redislock.Node{ID: id, SeenMS: now.UnixMilli()}
		n.Version, n.ConfigHash, n.ClockMS = version, hash, clock.Milliseconds()
		return n
	}
	c := configOf("redis://127.0.0.1:1")
	c.Node.ID = "here"
	own := config.Hash(c)
	at := func(n redislock.Node, ago time.Duration) redislock.Node { n.SeenMS -= ago.Milliseconds(); return n }
	for name, s := range map[string]struct {
		nodes []redislock.Node
		want  string // subjects and severities
	}{
		"a clock that is as good as right":    {[]redislock.Node{node("lead", "2", own, clockTolerance)}, ""},
		"a clock that is ahead":               {[]redislock.Node{node("lead", "2", own, clockTolerance+time.Millisecond)}, `warning node "lead" its clock is 1s ahead of`},
		"a clock that slots do not come by":   {[]redislock.Node{node("lead", "2", own, -time.Minute)}, `warning node "lead" its clock is 1m0s behind that of Redis nothing is lost: leases do not go by clocks. But while it leads, slots follow the clock of Redis`},
		"another node's file":                 {[]redislock.Node{node("lead", "2", "x", 0), node("else", "2", "x", 0)}, ""},
		"a node that is seen in time":         {[]redislock.Node{node("lead", "2", own, 0), at(node("old", "1", own, 0), redislock.GoneAfter)}, `info node "old" its version`},
		"a node that is gone":                 {[]redislock.Node{node("lead", "2", own, 0), at(node("old", "1", own, 0), redislock.GoneAfter+time.Millisecond)}, ""},
		"a leader that is not the first":      {[]redislock.Node{node("b", "1", own, 0), node("lead", "2", own, 0)}, `info node "b" its version is 1, and the leader, lead, has 2`},
		"the node itself, with another file":  {[]redislock.Node{node("lead", "2", "x", 0), node("here", "2", "x", 0)}, `warning node "here" it runs with other jobs`},
		"the node itself, as it is in force":  {[]redislock.Node{node("lead", "2", own, 0), node("here", "2", own, 0)}, ""},
		"a node otherwise than the leader is": {[]redislock.Node{node("lead", "2", own, 0), node("b", "2", "x", 0)}, `warning node "b" its jobs have another configuration`},
	} {
		all := judgeNodes(redislock.ElectionState{Now: now, Owner: "o", Leader: "lead", Nodes: s.nodes}, c)
		told := ""
		for _, f := range all {
			told += string(f.Severity) + " " + f.Subject + " " + f.What + " " + f.Consequence
		}
		if s.want == "" && told != "" || !strings.HasPrefix(told, s.want) || len(all) > 1 {
			t.Errorf("%s: %q, want %q", name, told, s.want)
		}
	}
}

func TestAListOfNodesThatIsCutIsTold(t *testing.T) {
	all := judgeNodes(redislock.ElectionState{Now: time.Now(), Cut: true, Nodes: make([]redislock.Node, 10_000)}, configOf("redis://127.0.0.1:1"))
	if len(all) != 1 || all[0].Severity != SeverityWarning || !strings.Contains(all[0].What, "10000 of its entries were read") {
		t.Errorf("%+v, want one warning", all)
	}
}

// The unit must allow the settings of the jobs' commands, or the daemon refuses to start.
func TestWhatAUnitKeepsFromCommandsIsTold(t *testing.T) {
	const given = "AmbientCapabilities=cap_kill cap_setgid cap_setuid"
	for _, c := range []struct {
		job  config.Job
		unit []string
		want string
	}{
		{config.Job{}, nil, ""},
		{config.Job{User: "report"}, nil, `error: job "j" has a user of its own, and the unit lacks AmbientCapabilities=CAP_SETUID`},
		{config.Job{Group: "report"}, []string{"PrivateUsers=yes", given}, `error: job "j" has a user of its own, and the unit lacks PrivateUsers=no`},
		{config.Job{User: "report"}, []string{"AmbientCapabilities=cap_setgid cap_setuid"}, `error: job "j" has a user of its own, and the unit lacks AmbientCapabilities=CAP_KILL`},
		{config.Job{User: "report"}, []string{given, "SystemCallFilter=read write"}, `error: job "j" has a user of its own, and the unit lacks SystemCallFilter=@setuid`},
		{config.Job{User: "report"}, []string{given, "PrivateUsers=no", "SystemCallFilter=setgroups setresgid setresuid"}, ""},
		{config.Job{User: "report"}, []string{"User=root"}, "warning: it runs as root"},
		{config.Job{Nice: 5}, []string{"SystemCallFilter=read write"}, `error: job "j" sets nice, and SystemCallFilter= forbids it`},
		{config.Job{Nice: 5}, []string{"SystemCallFilter=~mount setpriority"}, `error: job "j" sets nice, and SystemCallFilter= forbids it`},
		{config.Job{Nice: 5}, []string{"SystemCallFilter=~mount"}, ""}, {config.Job{Nice: 5}, []string{"SystemCallFilter=read setpriority"}, ""}, {config.Job{Nice: 5}, nil, ""},
		{config.Job{LogFile: "/srv/x.log"}, nil, `error: the log file of job "j", /srv/x.log, cannot be written in its sandbox (ProtectSystem=strict)`},
		{config.Job{LogFile: "/srv/x.log"}, []string{"ReadWritePaths=/srv"}, ""}, {config.Job{LogFile: "/var/lib/baton/x.log"}, nil, ""},
	} {
		u := goodUnit(t)
		u.shown = maps.Clone(u.shown)
		for _, setting := range append([]string{"DropInPaths=/etc/systemd/system/baton.service.d/command-jobs.conf"}, c.unit...) {
			name, value, _ := strings.Cut(setting, "=")
			u.shown[name] = value
		}
		conf := configOf("redis://127.0.0.1:1")
		c.job.Name, c.job.Command = "j", config.Command{"true"}
		conf.Jobs = []config.Job{c.job}
		var told []string
		for _, f := range judgeUnit(u, conf) {
			told = append(told, string(f.Severity)+": "+f.What)
		}
		if c.want == "" && len(told) > 0 || c.want != "" && (len(told) != 1 || !strings.HasPrefix(told[0], c.want)) {
			t.Errorf("%+v with %q: %q, want %q", c.job, c.unit, told, c.want)
		}
	}
}
