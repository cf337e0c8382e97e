package hosts

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	lab "baton/internal/testsupport/hosts"
)

func TestTheUnitIsTightAndClean(t *testing.T) {
	s := newSite(t, plan{hosts: 1, config: "jobs:\n- {name: one, schedule: '@every 1s', command: [/bin/true]}\n"})
	h := s.hosts[0]
	for _, u := range []string{unit, "baton@x.service"} {
		table := h.Must("systemd-analyze", "security", "--no-pager", "--threshold=15", u)
		score := regexp.MustCompile(`Overall exposure level for \S+: ([0-9.]+)`).FindStringSubmatch(table)
		if score == nil {
			t.Fatalf("no score in:\n%s", table)
		}
		if n, err := strconv.ParseFloat(score[1], 64); err != nil || n > 1.5 {
			t.Errorf("the exposure of %s is %s, above 1.5", u, score[1])
		}
		note("systemd-analyze security %-42s %s", u, score[1])
		if r := h.Run("systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/"+strings.Replace(u, "@x", "@", 1)); r.Code != 0 || r.Stdout+r.Stderr != "" {
			t.Errorf("systemd-analyze verify %s: code %d\n%s%s", u, r.Code, r.Stdout, r.Stderr)
		}
	}
	if r := h.Run("systemd-analyze", "verify", unit); strings.Contains(r.Stderr, "baton") {
		t.Errorf("systemd-analyze verify, with the manual pages: %s", r.Stderr)
	}
	// What systemd itself has to say of the unit, above information.
	if text := h.Run("journalctl", "--no-pager", "-o", "cat", "-p", "notice", "_PID=1", "-g", "baton", "--case-sensitive=no").Stdout; text != "" && text != "-- No entries --\n" {
		t.Errorf("systemd complains:\n%s", text)
	}
	if text := h.Must("systemctl", "status", unit); strings.Contains(strings.ToLower(text), "warn") {
		t.Errorf("systemctl status warns:\n%s", text)
	}
	if enabled := h.Must("systemctl", "is-enabled", unit); enabled != "enabled\n" {
		t.Errorf("after the installation the unit is %s", enabled)
	}
	if states := h.Must("systemctl", "--failed", "--no-legend", "--plain"); states != "" {
		t.Errorf("failed units: %s", states)
	}
}

func TestAnInstanceRunsBesideTheService(t *testing.T) {
	s := newSite(t, plan{hosts: 1})
	h := s.hosts[0]
	config, _ := h.Read(conffile)
	config = strings.ReplaceAll(strings.ReplaceAll(config, "lock_key: baton", "lock_key: second"), page, "127.0.0.1:9748")
	h.WriteMode("/etc/baton/two.yaml", config, "0644")
	h.Must("systemctl", "enable", "--now", "baton@two")
	s.Await("the instance to lead its own election", func() bool {
		return strings.HasPrefix(h.Property("baton@two", "StatusText"), "leading epoch ")
	})
	// Neither takes the other's directory or socket along.
	h.Must("systemctl", "restart", unit)
	h.Must("systemctl", "reload", "baton@two")
	h.Must("systemctl", "stop", unit)
	h.Must("systemctl", "reload", "baton@two")
	h.Must("test", "-e", "/run/baton-two/lease.json")
	h.Must("systemctl", "start", unit)
	h.Must("systemctl", "restart", "baton@two")
	h.Must("systemctl", "reload", unit)
	s.settled()
}

func TestARemovalLeavesTheConfigurationAndAPurgeNothing(t *testing.T) {
	s := newSite(t, plan{})
	leader := s.settled()
	old := s.owner()
	leader.Must("dpkg", "--remove", "baton")
	s.successor(old) // the other leads: it was stopped in good order
	if states := leader.Must("systemctl", "list-units", "--all", "--plain", "--no-legend", "baton*"); strings.Contains(states, "failed") {
		t.Errorf("after the removal: %s", states)
	}
	if _, ok := leader.Read(conffile); !ok {
		t.Error("a removal has taken the configuration")
	}
	reinstalled(s, leader)
	if now := s.settled(); now == leader {
		t.Error("who comes back leads")
	}
	leader.Must("dpkg", "--purge", "baton")
	left := leader.Shell(`find / -xdev \( -path /proc -o -path /sys \) -prune -o -name '*baton*' -print; ls -d /run/baton* 2>/dev/null || :`)
	for line := range strings.Lines(left) {
		switch path := strings.TrimSpace(line); path {
		case "/root/baton.deb": // the test's
		case "/var/lib/systemd/deb-systemd-helper-masked": // systemd's
		default:
			t.Errorf("a purge has left %s", path)
		}
	}
	if out := leader.Run("systemctl", "status", unit); out.Code != 4 {
		t.Errorf("after a purge systemctl status gives %d: %s", out.Code, out.Stdout)
	}
}

// reinstalled installs the package again; the configuration that was left is in force.
func reinstalled(s *site, h *lab.Host) {
	s.t.Helper()
	install(s.t, h, packageFile(s.t, "BATON_DEB"))
	if state := h.Property(unit, "ActiveState"); state != "active" {
		s.t.Errorf("after it was installed again the service is %s", state)
	}
}
