package hosts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	lab "baton/internal/testsupport/hosts"
)

const (
	slotsPath = "/var/lib/baton/slots"
	tickJob   = `jobs:
- name: tick
  schedule: "@every 1s"
  command: [/bin/sh, -c, 'echo $BATON_SLOT $BATON_TRIGGER $BATON_EPOCH >> ` + slotsPath + `']
`
)

// The administrator upgrades one host after the other while a job runs each second. The
// configuration that was edited stays, the lead moves, and every slot is run once,
// but for those that everySlot allows.
func TestAnUpgradeKeepsTheConfigurationAndEverySlot(t *testing.T) {
	s := newSite(t, plan{config: "# edited\n" + tickJob})
	next := packageFile(t, "BATON_DEB_NEXT")
	s.Await("some runs", func() bool { return len(s.ranSlots()) >= 2 })
	gap := measure{what: "upgrade of the leader: from the release to the next term", limit: 500 * time.Millisecond}
	for range s.hosts {
		h := s.settled() // the leader each time: the hardest way
		if strings.Contains(h.Must("baton", "version"), "v999") {
			h = s.other(h)
		}
		before, _ := h.Read(conffile)
		old, epoch, leads := s.owner(), s.epoch(), s.leaderName() == h.Name
		repacked(t, h, next)
		if leads {
			led := s.successor(old)
			gap.add(led.Sub(s.releasedAt(epoch).Add(-time.Millisecond)))
		}
		s.Await("the new version to run", func() bool {
			return strings.Contains(h.Run("baton", "version").Stdout, "v999.0.0") && h.Property(unit, "ActiveState") == "active" && h.Run("pgrep", "dpkg").Code != 0
		})
		if now, _ := h.Read(conffile); now != before || !strings.Contains(now, "# edited") {
			t.Errorf("the configuration of %s has become:\n%s", h.Name, now)
		}
		h.Must("test", "-e", conffile+".dpkg-dist") // the package's own had changed
		s.settled()
		if _, body := s.get(h, "/api/v1/status"); !strings.Contains(body, "v999.0.0") {
			t.Errorf("%s runs the old version after its upgrade", h.Name)
		}
	}
	gap.report(t)
	ran := len(s.ranSlots())
	s.Await("some more runs", func() bool { return len(s.ranSlots()) >= ran+3 })
	s.everySlot()
}

// repacked starts the upgrade to a package whose own configuration differs from the old
// one's, and does not wait for its end.
func repacked(t *testing.T, h *lab.Host, deb string) {
	t.Helper()
	h.Write("/root/next.deb", read(t, deb))
	h.Shell(`cd /root; rm -rf next; dpkg-deb -R next.deb next; echo "# as of the next version" >> next/etc/baton/baton.yaml; dpkg-deb -Znone -b next next.deb >/dev/null`)
	h.Must("systemd-run", "--quiet", "--unit=upgrade", "--setenv=DEBIAN_FRONTEND=noninteractive", "dpkg", "--force-confold", "--force-unsafe-io", "-i", "/root/next.deb")
}

// ranSlots are the slots that the job has written, on any host, in order.
func (s *site) ranSlots() []int64 {
	s.t.Helper()
	var all []int64
	for _, h := range s.hosts {
		text, _ := h.Read(slotsPath)
		for line := range strings.Lines(text) {
			word, _, _ := strings.Cut(line, " ")
			at, err := time.Parse(time.RFC3339Nano, word)
			if err != nil {
				s.t.Fatalf("slot %q: %v", line, err)
			}
			all = append(all, at.Unix())
		}
	}
	slices.Sort(all)
	return all
}

// everySlot compares what has run with the calendar and with the history in Redis. On a
// busy machine the end of each host's leader may cancel one run before its command comes to write.
func (s *site) everySlot() {
	s.t.Helper()
	slots := s.ranSlots()
	states := map[int64]string{}
	entries, err := redis.Values(s.conn.Do("XRANGE", "{"+lockKey+"}:job:tick:runs", "-", "+"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, entry := range entries {
		fields, err := redis.StringMap(entry.([]any)[1], nil)
		if err != nil {
			s.t.Fatal(err)
		}
		ms, err := strconv.ParseInt(fields["slot"], 10, 64)
		if err != nil {
			s.t.Fatalf("history %v: %v", fields, err)
		}
		states[ms/1000] += fmt.Sprint(fields["state"], " ", fields["reason"], " ")
	}
	absent := 0
	for i := 1; i < len(slots); i++ {
		if slots[i] == slots[i-1] {
			s.t.Errorf("slot %d was run twice; the history: %s", slots[i], states[slots[i]])
		}
		for at := slots[i-1] + 1; at < slots[i]; at++ {
			absent++
			if state := strings.TrimSpace(states[at]); state != "cancelled" || absent > len(s.hosts) {
				s.t.Errorf("slot %d was not run; the history: %q", at, state)
			}
		}
	}
	note("%-66s %3d  absent %d, twice 0", "an upgrade of each host in turn: slots of @every 1s", len(slots), absent)
}
