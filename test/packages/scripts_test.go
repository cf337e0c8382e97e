package packages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stage is a host on which a maintainer script runs: its paths are below a directory, and
// the programs that it calls write down how they were called.
type stage struct {
	t      *testing.T
	dir    string
	called string
}

// newStage has those programs; "systemctl=text" prints text, "getent!" fails.
func newStage(t *testing.T, programs ...string) *stage {
	t.Helper()
	s := &stage{t: t, dir: t.TempDir()}
	s.called = filepath.Join(s.dir, "called")
	bin := filepath.Join(s.dir, "bin")
	for _, d := range []string{bin, "etc/systemd/system", "etc/baton", "var/lib"} {
		if !filepath.IsAbs(d) {
			d = filepath.Join(s.dir, d)
		}
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range append(programs, "chown", "chmod") {
		name, prints, _ := strings.Cut(p, "=")
		name, fails := strings.CutSuffix(name, "!")
		text := fmt.Sprintf("#!/bin/sh\necho %s \"$@\" >> '%s'\n", name, s.called)
		if prints != "" {
			text += "case $1 in list-units) printf '" + prints + "' ;; try-restart|restart) [ \"$2\" != baton@bad.service ] ;; esac\n"
		}
		if fails {
			text += "exit 1\n"
		}
		s.put("bin/"+name, text, 0o755)
	}
	// deb-systemd-invoke restarts baton@bad.service in vain
	for _, p := range []string{"rm", "rmdir", "find", "sed", "sort", "sh", "cat"} {
		path, err := exec.LookPath(p)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, p)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *stage) put(name, text string, mode os.FileMode) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

// booted is a host that systemd runs on.
func (s *stage) booted() *stage {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Join(s.dir, "run/systemd/system"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	return s
}

// play runs a script and returns the calls, its complaints, and whether it succeeded.
func (s *stage) play(script string, args ...string) (calls []string, complaints string, ok bool) {
	s.t.Helper()
	text, err := os.ReadFile("../../deploy/packages/" + script)
	if err != nil {
		s.t.Fatal(err)
	}
	here := string(text)
	for _, path := range []string{"/run/systemd/system", "/etc/systemd/system", "/etc/baton", "/var/lib/baton", "/usr/bin/deb-systemd-helper"} {
		here = strings.ReplaceAll(here, path, s.dir+strings.Replace(path, "/usr/bin", "/bin", 1))
	}
	_ = os.Remove(s.called)
	cmd := exec.Command("/bin/sh", append([]string{"-c", here, script}, args...)...)
	cmd.Env = []string{"PATH=" + filepath.Join(s.dir, "bin")}
	var b strings.Builder
	cmd.Stderr, cmd.Stdout = &b, &b
	err = cmd.Run()
	said, _ := os.ReadFile(s.called)
	return strings.FieldsFunc(strings.ReplaceAll(string(said), s.dir, ""), func(r rune) bool { return r == '\n' }), b.String(), err == nil
}

func (s *stage) wants(script string, args []string, want ...string) {
	s.t.Helper()
	calls, complaints, ok := s.play(script, args...)
	calls = slices.DeleteFunc(calls, func(c string) bool { return strings.Contains(c, "list-units") || strings.HasPrefix(c, "getent") })
	if !ok || !slices.Equal(calls, want) {
		s.t.Errorf("%s %q: %v, %s; it called\n%s\nwant\n%s", script, args, ok, complaints, strings.Join(calls, "\n"), strings.Join(want, "\n"))
	}
}

const running = `=baton.service loaded active\nbaton@bad.service loaded active\nbaton@two.service loaded active\n`

func TestAnInstallationOfTheRPMStartsNothing(t *testing.T) {
	newStage(t, "systemctl").booted().wants("rpm/post", []string{"1"}, "systemctl --no-reload preset baton.service", "systemctl daemon-reload")
	newStage(t, "systemctl").booted().wants("rpm/post", []string{"2"}, "systemctl daemon-reload")
	newStage(t, "systemctl").wants("rpm/post", []string{"2"}) // an image that is built
	newStage(t).booted().wants("rpm/post", []string{"1"})     // no systemd at all
}

// Also those after one that does not start again.
func TestAnUpgradeOfTheRPMRestartsWhatRunsOneByOne(t *testing.T) {
	s := newStage(t, "systemctl"+running).booted()
	s.wants("rpm/preun", []string{"1"})
	calls, complaints, ok := s.play("rpm/postun", "1")
	want := []string{"systemctl daemon-reload", "systemctl list-units --plain --no-legend --state=active,activating,reloading baton.service baton@*.service",
		"systemctl try-restart baton.service", "systemctl try-restart baton@bad.service", "systemctl try-restart baton@two.service"}
	if !ok || !slices.Equal(calls, want) || complaints != "baton: baton@bad.service does not start again; see journalctl -u baton@bad.service\n" {
		t.Errorf("%v, %q\n%s", ok, complaints, strings.Join(calls, "\n"))
	}
}

func TestARemovalOfTheRPMStopsAndDisablesAll(t *testing.T) {
	s := newStage(t, "systemctl").booted()
	s.put("etc/systemd/system/multi-user.target.wants/baton@two.service", "", 0o644)
	s.wants("rpm/preun", []string{"0"}, "systemctl --no-reload disable baton.service baton@two.service", "systemctl stop baton@*.service baton.service")
	s.wants("rpm/postun", []string{"0"}, "systemctl daemon-reload")
}

func TestTheUserIsMadeOnceAndByWhatThereIs(t *testing.T) {
	newStage(t, "getent", "useradd", "systemd-sysusers").wants("rpm/pre", []string{"1"})
	newStage(t, "getent!", "useradd", "systemd-sysusers").wants("rpm/pre", []string{"1"}, "systemd-sysusers --replace=/usr/lib/sysusers.d/baton.conf -")
	const useradd = "useradd --system --user-group --no-create-home --home-dir /var/lib/baton --shell /usr/sbin/nologin --comment baton, runs scheduled jobs baton"
	newStage(t, "getent!", "useradd").wants("rpm/pre", []string{"1"}, useradd)
	if _, complaints, ok := newStage(t, "getent!").play("rpm/pre", "1"); ok || !strings.Contains(complaints, "make it first") {
		t.Errorf("%v, %q", ok, complaints)
	}
	const helper = "deb-systemd-helper"
	newStage(t, "getent!", "useradd", "systemd-sysusers", helper).wants("deb/postinst", []string{"abort-upgrade"},
		helper+" debian-installed baton.service", helper+" --quiet was-enabled baton.service", helper+" enable baton.service")
	newStage(t, "getent!", "useradd", "systemd-sysusers", helper).wants("deb/postinst", []string{"configure", "1.0"}, "systemd-sysusers baton.conf",
		helper+" debian-installed baton.service", helper+" --quiet was-enabled baton.service", helper+" enable baton.service")
	newStage(t, "getent!", "useradd", helper).wants("deb/postinst", []string{"configure", "1.0"}, useradd,
		helper+" debian-installed baton.service", helper+" --quiet was-enabled baton.service", helper+" enable baton.service")
	if _, complaints, ok := newStage(t, "getent!", helper).play("deb/postinst", "configure", ""); ok || !strings.Contains(complaints, "then run dpkg --configure baton") {
		t.Errorf("%v, %q", ok, complaints)
	}
}

func TestTheDebGivesTheConfigurationToTheGroupOnceAndStartsTheService(t *testing.T) {
	const helper, first = "deb-systemd-helper", "deb-systemd-helper!"
	enabling := func(verdict string) []string {
		return []string{helper + " debian-installed baton.service", helper + " --quiet was-enabled baton.service", helper + " " + verdict + " baton.service", "systemctl --system daemon-reload"}
	}
	of := func(t *testing.T, programs ...string) *stage {
		s := newStage(t, append(programs, "getent", "dpkg-statoverride!", "deb-systemd-invoke=x")...).booted()
		s.put("etc/baton/baton.yaml", "", 0o600)
		return s
	}
	given := []string{"dpkg-statoverride --list /etc/baton", "chown root:baton /etc/baton", "chmod 0750 /etc/baton",
		"dpkg-statoverride --list /etc/baton/baton.yaml", "chown root:baton /etc/baton/baton.yaml", "chmod 0640 /etc/baton/baton.yaml"}
	of(t, first, "systemctl").wants("deb/postinst", []string{"configure", ""}, slices.Concat(given, enabling("update-state"), []string{"deb-systemd-invoke start baton.service"})...)
	of(t, helper, "systemctl"+running).wants("deb/postinst", []string{"configure", "1.0"}, append(enabling("enable"),
		"deb-systemd-invoke restart baton.service", "deb-systemd-invoke restart baton@bad.service", "deb-systemd-invoke restart baton@two.service")...)
	upgraded := of(t, helper, "systemctl"+running)
	calls, complaints, ok := upgraded.play("deb/postinst", "configure", "1.0")
	if !ok || complaints != "baton: baton@bad.service does not start again; see journalctl -u baton@bad.service\n" ||
		!slices.Contains(calls, "systemctl list-units --plain --no-legend --state=active,activating,reloading baton.service baton@*.service") {
		t.Errorf("%v, %q\n%s", ok, complaints, strings.Join(calls, "\n"))
	}
	dead := of(t, helper, "systemctl")
	dead.put("bin/deb-systemd-invoke", "#!/bin/sh\nexit 1\n", 0o755)
	if _, complaints, ok := dead.play("deb/postinst", "abort-remove"); !ok || !strings.Contains(complaints, "baton.service is not started") {
		t.Errorf("%v, %q", ok, complaints)
	}
	of(t, helper, "systemctl").wants("deb/postinst", []string{"abort-remove"}, append(enabling("enable"), "deb-systemd-invoke start baton.service")...)
	of(t, helper, "systemctl").wants("deb/postinst", []string{"triggered"})
}

func TestTheDebStopsAtARemovalOnlyAndAPurgeTakesNothingOfOthers(t *testing.T) {
	s := newStage(t, "deb-systemd-helper", "deb-systemd-invoke", "systemctl").booted()
	s.wants("deb/prerm", []string{"upgrade", "2.0"})
	s.wants("deb/prerm", []string{"remove"}, "deb-systemd-invoke stop baton@*.service baton.service")
	link := filepath.Join(s.dir, "etc/systemd/system/multi-user.target.wants/baton@two.service")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/usr/lib/systemd/system/baton@.service", link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"baton/epoch.json", "baton-two/epoch.json", "baton-two/data.db"} {
		s.put("var/lib/"+name, "x", 0o600)
	}
	left := func(name string) bool { _, err := os.Lstat(filepath.Join(s.dir, name)); return err == nil }
	const reload = "systemctl --system daemon-reload"
	s.wants("deb/postrm", []string{"upgrade"}, reload)
	if !left("etc/systemd/system/multi-user.target.wants/baton@two.service") || !left("var/lib/baton/epoch.json") {
		t.Error("an upgrade has taken something")
	}
	s.wants("deb/postrm", []string{"remove"}, "deb-systemd-helper --quiet was-enabled baton.service", "deb-systemd-helper purge baton.service", reload)
	if left("etc/systemd/system/multi-user.target.wants/baton@two.service") || !left("var/lib/baton/epoch.json") {
		t.Error("after a removal an instance is enabled still, or the epochs are forgotten")
	}
	calls, complaints, ok := s.play("deb/postrm", "purge")
	if !ok || !slices.Equal(calls, []string{"deb-systemd-helper purge baton.service", reload}) || !strings.Contains(complaints, "baton-two is not empty and is left as it is") {
		t.Errorf("%v, %q, %q", ok, calls, complaints)
	}
	if left("var/lib/baton") || left("var/lib/baton-two/epoch.json") || !left("var/lib/baton-two/data.db") {
		t.Error("a purge has left its own, or taken a job's database")
	}
}
