package hosts

import (
	"strings"
	"testing"
)

// reportJobs belong to a user of their own: one says who it is and what it may do, one stays and ignores TERM.
const reportJobs = `jobs:
- name: who
  schedule: "@every 1s"
  user: report
  command: [/bin/sh, -c, 'id -un; id -Gn; grep -E "^(CapEff|CapAmb|NoNewPrivs)" /proc/self/status']
- name: stays
  schedule: "@every 1s"
  user: report
  grace: 1s
  command: [/bin/bash, -c, 'trap "" TERM; while :; do read -t 1 <> <(:); done']
`

// Without the drop-in command-users.conf neither a reload nor a start takes a job with a user, and both name the
// drop-in. With it the job runs as that user, without the daemon's capabilities, and the daemon still ends it.
func TestAJobHasAUserOfItsOwnByTheDropIn(t *testing.T) {
	s := newSite(t, plan{hosts: 1})
	h := s.hosts[0]
	h.Must("useradd", "--system", "--user-group", "report")
	config, _ := h.Read(conffile)
	h.WriteMode(conffile, config+reportJobs, "0640")
	h.Must("chgrp", "baton", conffile)
	for _, order := range []string{"reload", "restart"} {
		if h.Run("systemctl", order, unit).Code == 0 {
			t.Errorf("a %s takes a job with a user, without the drop-in", order)
		}
		if journal := h.Journal(unit); !strings.Contains(journal, "jobs[0].user: ") || !strings.Contains(journal, "command-users.conf") {
			t.Errorf("after a %s the journal does not say what is missing:\n%s", order, journal)
		}
	}
	h.Shell("install -D -m 644 /usr/share/baton/command-users.conf /etc/systemd/system/baton.service.d/command-users.conf && systemctl daemon-reload")
	h.Must("systemctl", "restart", unit)
	var said string
	s.Await("the command to say who it is", func() bool {
		said = h.Run("baton", "job", "logs", "who").Stdout
		return strings.Contains(said, "NoNewPrivs")
	})
	want := "report report CapEff: 0000000000000000 CapAmb: 0000000000000000 NoNewPrivs: 1"
	if got := strings.Join(strings.Fields(said), " "); got != want {
		t.Errorf("the command says %q, want %q", got, want)
	}
	s.Await("the command that stays", func() bool { return h.Run("pgrep", "-u", "report", "bash").Code == 0 })
	h.Must("systemctl", "stop", unit)
	if left := h.Run("pgrep", "-u", "report").Stdout; left != "" {
		t.Errorf("processes of the job outlive the daemon: %q", left)
	}
}
