package hosts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	lab "baton/internal/testsupport/hosts"
)

func TestAStartWaitsForReadyAndTheStatusSaysWhoLeads(t *testing.T) {
	s := newSite(t, plan{})
	leader := s.settled()
	other := s.other(leader)
	if got, want := leader.Property(unit, "StatusText"), fmt.Sprintf("leading epoch %d", s.epoch()); got != want {
		t.Errorf("the leader's status is %q, want %q", got, want)
	}
	if got, want := other.Property(unit, "StatusText"), "standby, leader "+leader.Name; got != want {
		t.Errorf("the standby's status is %q, want %q", got, want)
	}
	for _, h := range s.hosts {
		if text := h.Must("systemctl", "status", unit); !strings.Contains(text, `Status: "`+h.Property(unit, "StatusText")) {
			t.Errorf("systemctl status of %s does not show it:\n%s", h.Name, text)
		}
		if kind := h.Property(unit, "Type"); kind != "notify" {
			t.Errorf("the unit is of type %s", kind)
		}
	}

	ready := measure{what: "systemctl start → READY, Redis there", limit: 3 * time.Second}
	for range 3 {
		other.Must("systemctl", "stop", unit)
		began := time.Now()
		other.Must("systemctl", "start", unit)
		ready.add(time.Since(began))
		// systemd has received READY, so the listener is bound.
		if code, _ := s.get(other, "/-/ready"); code != 200 {
			t.Errorf("ready, and /-/ready answers %d", code)
		}
	}
	ready.report(t)

	away := measure{what: "systemctl start → READY, Redis away", limit: 3 * time.Second}
	other.Must("systemctl", "stop", unit)
	s.Net.Unplug("redis")
	began := time.Now()
	other.Must("systemctl", "start", unit)
	away.add(time.Since(began))
	if state := other.Property(unit, "SubState"); state != "running" {
		t.Errorf("without Redis the service is %s", state)
	}
	if code, _ := s.get(other, "/-/ready"); code != 200 {
		t.Errorf("without Redis /-/ready answers %d", code)
	}
	if status := other.Property(unit, "StatusText"); strings.Contains(status, "leading") {
		t.Errorf("without Redis its status is %q", status)
	}
	away.report(t)
	s.Net.Plug("redis")
	s.settled()
}

// The test checks that a wrong configuration makes the start fail immediately, with the reason.
func TestAWrongConfigurationFailsTheStart(t *testing.T) {
	s := newSite(t, plan{hosts: 1})
	h := s.hosts[0]
	h.Must("systemctl", "stop", unit)
	good, _ := h.Read(conffile)
	h.WriteMode(conffile, good+"jobs:\n- {name: x, schedul: '@every 1s'}\n", "0644")
	if r := h.Run("systemctl", "start", unit); r.Code == 0 {
		t.Error("a wrong configuration was started")
	}
	if log := h.Journal(unit); !strings.Contains(log, "schedul") {
		t.Errorf("the journal does not name the mistake:\n%s", log)
	}
	h.WriteMode(conffile, good, "0644")
	h.Must("systemctl", "restart", unit)
	s.settled()
}

// The test checks that the daemon ends with exit code 0 and without an error message, whenever it is ordered to end.
func TestAnEndDuringTheStartWithoutRedisIsAnOrdinaryEnd(t *testing.T) {
	s := newSite(t, plan{hosts: 1})
	h := s.hosts[0]
	h.Must("systemctl", "stop", unit)
	for _, fault := range []string{"unplugged", "refused"} {
		if fault == "unplugged" {
			s.Net.Unplug("redis")
		} else {
			s.redis.Kill()
			s.Net.Heal()
		}
		for _, after := range []time.Duration{0, 10, 30, 60, 300} {
			stopDuringStart(t, h, fault, after*time.Millisecond)
		}
	}
	s.redis.Start()
}

func stopDuringStart(t *testing.T, h *lab.Host, fault string, after time.Duration) {
	t.Helper()
	cursor := strings.TrimSpace(h.Shell("journalctl --sync; journalctl -n 0 --show-cursor | sed -n 's/^-- cursor: //p'"))
	h.Must("systemctl", "start", "--no-block", unit)
	time.Sleep(after)
	began := time.Now()
	h.Must("systemctl", "stop", unit)
	if took := time.Since(began); took > 4*time.Second+heldUp {
		t.Errorf("%s, stopped %v after the start: that took %v", fault, after, took)
	}
	for name, want := range map[string]string{"Result": "success", "ActiveState": "inactive"} {
		if got := h.Property(unit, name); got != want {
			t.Errorf("%s, stopped %v after the start: %s is %s, want %s", fault, after, name, got, want)
		}
	}
	// If the signal itself ends the process before Go runs, SuccessExitStatus makes systemd accept this end.
	log := h.Must("journalctl", "--no-pager", "-o", "cat", "-u", unit, "--after-cursor="+cursor)
	for _, odd := range []string{"panic", "goroutine ", `"level":"error"`, "Failed", "status="} {
		if strings.Contains(log, odd) {
			t.Errorf("%s, stopped %v after the start: the journal has %q:\n%s", fault, after, odd, log)
		}
	}
}
