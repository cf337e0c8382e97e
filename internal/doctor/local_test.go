package doctor

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"baton/internal/config"
	"baton/internal/redislock"
)

func wantNone(t *testing.T, all []Finding, what string) {
	t.Helper()
	for _, f := range all {
		if strings.Contains(f.What, what) {
			t.Errorf("%+v", f)
		}
	}
}

func wantRemedies(t *testing.T, all []Finding) {
	t.Helper()
	for _, f := range all {
		if f.Severity != SeverityOK && (f.Consequence == "" || f.Remedy == "" || f.Subject == "") {
			t.Errorf("it lacks something: %+v", f)
		}
	}
}

func TestAConfigurationThatIsAllowedAndSeldomMeantIsTold(t *testing.T) {
	c := configOf("redis://127.0.0.1:1").WithDefaults()
	c.Election.TTL = 5 * time.Minute
	c.HTTP.Listen = ":9747"
	flushTo := func(name string) config.Job {
		return config.Job{Name: name, Flush: config.Flush{To: config.To{Database: "main", Table: "users"}}}
	}
	c.Jobs = []config.Job{flushTo("one"), flushTo("two"), {Name: "long", Command: config.Command{"true"}, Policy: config.Policy{Grace: time.Hour}}}
	all := examineConfig(c, false)
	wantFound(t, all, SeverityWarning, "configuration", "election.ttl is 5m0s, which is long")
	wantFound(t, all, SeverityWarning, "configuration", "http.listen is :9747, reachable from other hosts, without http.tls")
	wantFound(t, all, SeverityInfo, `job "one"`, "other jobs write to its table users, too: two")
	wantFound(t, all, SeverityInfo, `job "long"`, "its grace is 1h0m0s")
	wantRemedies(t, all)
	for i := range 6 {
		c.Jobs = append(c.Jobs, config.Job{Name: fmt.Sprintf("long%d", i), Command: config.Command{"true"}, Policy: config.Policy{Grace: time.Hour}})
	}
	wantFound(t, examineConfig(c, false), SeverityInfo, "configuration", "7 jobs have a grace of election.ttl, 5m0s, or more: long, long0, long1, long2, long3 and 2 more")
	c.Jobs = c.Jobs[:3]

	c.Election.TTL, c.HTTP.TLS, c.Jobs = time.Second, &config.ServerTLS{}, c.Jobs[:1]
	all = examineConfig(c, false)
	wantFound(t, all, SeverityInfo, "configuration", "which is short")
	wantFound(t, all, SeverityInfo, "configuration", "http.listen is :9747, reachable from other hosts")
	wantNone(t, all, "too: ")
	for _, listen := range []string{"127.0.0.1:1", "[::1]:1", "localhost:1", "off"} {
		c.HTTP.Listen = listen
		wantNone(t, examineConfig(c, false), "http.listen")
	}
}

func TestNodesThatDifferAreTold(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	node := func(id, version, hash string, clock int64, ago time.Duration) redislock.Node {
		n := redislock.Node{ID: id, SeenMS: now.Add(-ago).UnixMilli()}
		n.Version, n.ConfigHash, n.ClockMS = version, hash, clock
		return n
	}
	c := configOf("redis://127.0.0.1:1").WithDefaults()
	c.Node.ID = "here"
	own := config.Hash(c)
	twin := node("d", "2", own, 0, 0)
	twin.Twin = "another"
	p := redislock.ElectionState{Now: now, Owner: "o", Leader: "a", Nodes: []redislock.Node{
		node("a", "2", own, 0, 0), node("b", "1", "other", -2500, 0), node("c", "1", "other", 9000, time.Hour), twin, node("here", "2", own, 900, 0),
	}}
	all := judgeNodes(p, c)
	wantFound(t, all, SeverityWarning, `node "b"`, "its clock is 2.5s behind that of Redis")
	wantFound(t, all, SeverityWarning, `node "b"`, "have another configuration than those of the leader, a")
	wantFound(t, all, SeverityInfo, `node "b"`, "its version is 1, and the leader, a, has 2")
	wantFound(t, all, SeverityError, `node "d"`, "two processes have this node.id")
	if len(all) != 4 {
		t.Errorf("%d findings: %+v", len(all), all)
	}
	wantRemedies(t, all)
	p.Nodes, p.Leader, p.Owner = []redislock.Node{node("here", "2", "old", 0, 0)}, "", ""
	wantFound(t, judgeNodes(p, c), SeverityWarning, `node "here"`, "it runs with other jobs than this configuration has")
}

func TestFilesThatOthersMayReadOrChangeAreTold(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := configOf("redis://:planted-password@127.0.0.1:1").WithDefaults()
	c.Databases = map[string]config.Database{"main": {Driver: "postgres", DSNInline: "postgres://u:planted-dsn@h/d"}, "env": {Driver: "mysql", DSNInline: "from-the-environment"}}
	c.Redis.PasswordFile = write("password", "x\n", 0o644)
	c.HTTP.TokenFile = write("token", "0123456789abcdef\n", 0o640)
	c.HTTP.TLS = &config.ServerTLS{KeyFile: write("key", "x\n", 0o602)}
	wantFound(t, examineFiles(c, Options{}), SeverityError, "configuration", "http.tls: open : no such file")
	c.HTTP.Listen = config.Off
	c.Jobs = []config.Job{{Name: "j", Command: config.Command{"true"}, EnvFile: write("env", "A=b\n", 0o604), Secrets: map[string]string{"S": write("secret", "x\n", 0o600)}}}
	file := write("baton.yaml", "redis: {url: redis://:planted-password@127.0.0.1:1}\ndatabases: {main: {dsn: postgres://u:planted-dsn@h/d}, env: {dsn: \"${DSN}\"}}\n", 0o644)
	state := filepath.Join(dir, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(state, 0o777); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "admin.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := os.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	c.HTTP.AdminSocket = socket
	o := Options{ConfigFile: file, Getenv: func(name string) (string, bool) {
		v, ok := map[string]string{"STATE_DIRECTORY": state}[name]
		return v, ok
	}}
	all := examineFiles(c, o)
	for path, what := range map[string]string{
		file: "it has secrets in it: databases.main.dsn, redis.url", c.Redis.PasswordFile: "it holds a secret", c.HTTP.TLS.KeyFile: "can write to it",
		c.Jobs[0].EnvFile: "it holds a secret", state: "can write to it", socket: "can write to it",
	} {
		wantFound(t, all, SeverityError, "file "+path, what)
	}
	if len(all) != 6 {
		t.Errorf("%d findings: %+v", len(all), all)
	}
	if text := fmt.Sprint(all); strings.Contains(text, "planted-password@") || strings.Contains(text, "planted-dsn") {
		t.Errorf("a secret is told: %s", text)
	}
	wantRemedies(t, all)
	for _, path := range []string{file, c.Redis.PasswordFile, c.HTTP.TLS.KeyFile, c.Jobs[0].EnvFile, state, socket} {
		if err := os.Chmod(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if all := examineFiles(c, o); len(all) != 0 {
		t.Errorf("all is mended: %+v", all)
	}
}

// The test asks the real kernel, and judges the possible answers.
func TestAClockThatNobodyKeepsRightIsTold(t *testing.T) {
	if s := kernelClock(); !s.known && s.why == nil {
		t.Errorf("%+v", s)
	}
	r := &report{subject: subjectHost}
	r.ntp(clockStateOf(5, unix.STA_UNSYNC, nil))
	wantFound(t, r.findings, SeverityWarning, "host", "its clock is not synchronized")
	r.ntp(clockStateOf(0, 0, unix.EPERM))
	wantFound(t, r.findings, SeverityInfo, "host", "could not be checked")
	wantRemedies(t, r.findings)
	r.findings = nil
	if r.ntp(clockStateOf(0, unix.STA_PLL, nil)); len(r.findings) != 0 {
		t.Errorf("%+v", r.findings)
	}
}

func TestAFullDiskIsTold(t *testing.T) {
	free, ok := freeSpace(t.TempDir())
	if !ok || free <= 0 {
		t.Fatalf("%d, %v", free, ok)
	}
	r := &report{subject: subjectHost}
	r.space("/a", noSpace-1)
	r.space("/b", littleSpace-1)
	r.space("/c", littleSpace)
	wantFound(t, r.findings, SeverityError, "host", "the disk of /a is full: 7 MiB are free")
	wantFound(t, r.findings, SeverityWarning, "host", "the disk of /b is nearly full: 255 MiB are free")
	if wantRemedies(t, r.findings); len(r.findings) != 2 {
		t.Errorf("%+v", r.findings)
	}
	c := configOf("redis://127.0.0.1:1")
	c.Databases = map[string]config.Database{"main": {Driver: "sqlite", DSNInline: "file:/srv/x/data.db?mode=rw"}}
	if dirs := placesOfState(c, Options{Getenv: func(string) (string, bool) { return "/var/lib/state", true }}); !slices.Equal(dirs, []string{"/var/lib/state", "/srv/x"}) {
		t.Errorf("%q", dirs)
	}
}

func TestTooFewFilesAreTold(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	low := before
	low.Cur = 512
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &before) }()
	wantFound(t, examineMachine(configOf("redis://127.0.0.1:1"), Options{}), SeverityWarning, "host", "a process may open 512 files")
}

// answering makes systemd answer with recorded texts. A real systemd (252) printed these texts about the unit in deploy, with and
// without drop-ins.
func answering(t *testing.T, name string) {
	t.Helper()
	texts, err := filepath.Abs(filepath.Join("testdata", "systemctl", name))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// Each recorded answer belongs to one unit.
	unit := "baton.service"
	if strings.HasPrefix(name, "instance") {
		unit = "baton@reports.service"
	}
	script := "#!/bin/sh\ncase \" $* \" in *' -- " + unit + " '*) exec /bin/cat '" + texts + "'.\"$1\";; esac\nexit 4\n"
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestTheShippedUnitIsAsItNeedsToBe(t *testing.T) {
	answering(t, "good")
	c := configOf("redis://127.0.0.1:1").WithDefaults()
	all := examineUnit(t.Context(), c, "baton.service")
	wantFound(t, all, SeverityOK, "unit baton.service", "as it needs to be run")
	if len(all) != 1 {
		t.Errorf("%+v", all)
	}
	c.Jobs = []config.Job{{Name: "j", Command: config.Command{"true"}, Policy: config.Policy{Grace: time.Minute}}}
	all = examineUnit(t.Context(), c, "baton.service")
	wantFound(t, all, SeverityInfo, "unit baton.service", "its jobs run commands in the tight sandbox")
	wantFound(t, all, SeverityWarning, "unit baton.service", "TimeoutStopSec is 30s, and election.drain and the longest grace of a job are 1m")
	wantRemedies(t, all)
	answering(t, "commands")
	wantNone(t, examineUnit(t.Context(), c, "baton.service"), "tight sandbox")
}

func TestAUnitThatLacksWhatIsNeededIsTold(t *testing.T) {
	answering(t, "bad")
	all := examineUnit(t.Context(), configOf("redis://127.0.0.1:1").WithDefaults(), "baton.service")
	for what, severity := range map[string]Severity{
		"KillMode is process, not mixed": SeverityError, "SendSIGKILL is no": SeverityError, "ExecStopPost= does not run": SeverityWarning, "Restart is no": SeverityWarning,
		"WatchdogSec= is not set": SeverityWarning, "it runs as root": SeverityWarning, "LimitNOFILE is 256": SeverityWarning, "MemoryMax is 32 MiB": SeverityWarning,
		"LoadCredential= names a file that is not there: /etc/baton/missing": SeverityError,
	} {
		wantFound(t, all, severity, "unit baton.service", what)
	}
	wantRemedies(t, all)
	c := configOf("redis://127.0.0.1:1").WithDefaults()
	c.Election.Drain = 6 * time.Second
	wantFound(t, examineUnit(t.Context(), c, "baton.service"), SeverityWarning, "unit baton.service", "TimeoutStopSec is 5s")
}

func TestAFileThatTheSandboxForbidsIsTold(t *testing.T) {
	of := func(path string) config.Config {
		c := configOf("redis://127.0.0.1:1").WithDefaults()
		c.Databases = map[string]config.Database{"main": {Driver: "sqlite", DSNInline: path}}
		return c
	}
	answering(t, "good")
	for path, why := range map[string]string{"/srv/data/x.db": "ProtectSystem=strict", "/home/me/x.db": "ProtectHome=yes", "/tmp/x.db": "PrivateTmp=yes", "/var/lib/baton/x.db": "", "/var/lib/batonx/x.db": "ProtectSystem=strict"} {
		all := examineUnit(t.Context(), of(path), "baton.service")
		if why == "" {
			wantNone(t, all, path)
			continue
		}
		wantFound(t, all, SeverityError, "unit baton.service", path+", cannot be written in its sandbox ("+why)
	}
	answering(t, "bad") // the drop-in sets ReadWritePaths=/srv/data
	wantNone(t, examineUnit(t.Context(), of("/srv/data/x.db"), "baton.service"), "sandbox")
}

func TestAHostWithoutTheUnitIsWorthKnowing(t *testing.T) {
	answering(t, "none")
	c := configOf("redis://127.0.0.1:1").WithDefaults()
	wantFound(t, examineUnit(t.Context(), c, "baton.service"), SeverityInfo, "unit baton.service", "systemd has no such unit on this host (not-found)")
	t.Setenv("PATH", t.TempDir())
	all := examineUnit(t.Context(), c, "baton.service")
	wantFound(t, all, SeverityInfo, "unit baton.service", "could not be checked")
	wantRemedies(t, all)
}

// A separate configuration has a separate instance of the unit, with its own directories.
func TestTheInstanceOfTheConfigurationIsLookedAt(t *testing.T) {
	for file, want := range map[string]string{
		"": "baton.service", "/etc/baton/baton.yaml": "baton.service", "/etc/baton/reports.yaml": "baton@reports.service", "/etc//baton/./reports.yaml": "baton@reports.service",
		"reports.yaml": "baton.service", "/srv/reports.yaml": "baton.service", "/etc/baton/old/reports.yaml": "baton.service", "/etc/baton/reports.yml": "baton.service", "/etc/baton/.yaml": "baton.service",
	} {
		if got := UnitOf(file); got != want {
			t.Errorf("%q: %s, want %s", file, got, want)
		}
	}
	const name, subject = "baton@reports.service", "unit baton@reports.service"
	answering(t, "instance")
	c := configOf("redis://127.0.0.1:1").WithDefaults()
	all := examineUnit(t.Context(), c, name)
	if wantFound(t, all, SeverityOK, subject, "as it needs to be run"); len(all) != 1 {
		t.Errorf("%+v", all)
	}
	c.Jobs = []config.Job{{Name: "j", Command: config.Command{"true"}}}
	c.Databases = map[string]config.Database{"own": {Driver: "sqlite", DSNInline: "/var/lib/baton-reports/x.db"}, "other": {Driver: "sqlite", DSNInline: "/var/lib/baton/x.db"}}
	all = examineUnit(t.Context(), c, name)
	wantFound(t, all, SeverityInfo, subject, "they can write to /var/lib/baton-reports and /tmp only")
	wantFound(t, all, SeverityError, subject, "/var/lib/baton/x.db, cannot be written in its sandbox")
	wantNone(t, all, "/var/lib/baton-reports/x.db,")
	if text := fmt.Sprint(all); !strings.Contains(text, "systemctl edit baton@reports; or keep it in /var/lib/baton-reports}") {
		t.Errorf("the remedy is another unit's: %s", text)
	}
	answering(t, "instance-none") // there is no package on this host
	all = examineUnit(t.Context(), c, name)
	wantFound(t, all, SeverityInfo, subject, "systemd has no such unit on this host (not-found)")
	wantRemedies(t, all)
}

func TestTimesOfSystemdAreRead(t *testing.T) {
	for text, want := range map[string]time.Duration{"30s": 30 * time.Second, "1min 30s": 90 * time.Second, "1h 500ms": time.Hour + 500*time.Millisecond, "infinity": 0, "": 0, "5": 0} {
		if got, ok := systemdTime(text); got != want || ok != (want != 0) {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}

// A finding has the same five texts in every output.
func TestAFindingIsFiveTexts(t *testing.T) {
	text, err := json.Marshal(Finding{Severity: SeverityError, Subject: "s", What: "w", Consequence: "c", Remedy: "r"})
	if err != nil || string(text) != `{"severity":"error","subject":"s","what":"w","consequence":"c","remedy":"r"}` {
		t.Errorf("%s, %v", text, err)
	}
}
