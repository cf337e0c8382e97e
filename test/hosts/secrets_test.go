package hosts

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	lab "baton/internal/testsupport/hosts"
)

// Secrets are root's files. The unit hands them over, and nobody sees them anywhere.
func TestCredentialsServeAndAreSeenNowhere(t *testing.T) {
	const redisPassword, token, dsnPassword = "pw-of-redis-5up3r", "token-of-http-5ecret-0123456789", "pw-of-database-h1dden"
	secrets := []string{redisPassword, token, dsnPassword}
	var pg *lab.Server
	s := newSite(t, plan{
		redisArgs: []string{"--requirepass", redisPassword}, password: redisPassword,
		redisYAML: "  password_file: ${CREDENTIALS_DIRECTORY}/redis-password\n",
		httpYAML:  "  token_file: ${CREDENTIALS_DIRECTORY}/http-token\n",
		dropIn: "[Service]\nLoadCredential=redis-password:/etc/baton/redis-password\n" +
			"LoadCredential=main.dsn:/etc/baton/main.dsn\nLoadCredential=http-token:/etc/baton/http-token\n",
		config: "databases:\n  main: {driver: postgres, dsn_file: \"${CREDENTIALS_DIRECTORY}/main.dsn\"}\njobs:\n" + viewsJob,
		before: func(s *site, _ *plan) {
			pg = s.Postgres("db")
			pg.Exec("CREATE TABLE articles (id VARCHAR(40) PRIMARY KEY, views BIGINT NOT NULL DEFAULT 0)")
		},
		prepare: func(h *lab.Host) {
			h.WriteMode("/etc/baton/redis-password", redisPassword+"\n", "0600")
			h.WriteMode("/etc/baton/http-token", token+"\n", "0600")
			h.WriteMode("/etc/baton/main.dsn", strings.Replace(pg.DSN(), "app@", "app:"+dsnPassword+"@", 1)+"\n", "0600")
		},
	})
	leader := s.settled()
	if _, err := s.conn.Do("HINCRBY", "views", "a", 7); err != nil {
		t.Fatal(err)
	}
	s.exact(pg.Rows, 7)
	// The daemon's own user cannot read the files; who asks without the token is refused.
	if r := leader.Run("runuser", "-u", "baton", "--", "cat", "/etc/baton/redis-password"); r.Code == 0 {
		t.Error("the user baton reads root's file")
	}
	if code, body := s.ask(leader, http.MethodPost, "/api/v1/stepdown", nil); code != http.StatusUnauthorized {
		t.Errorf("an order without the token is answered %d: %s", code, body)
	}
	if code, body := s.ask(leader, http.MethodPost, "/api/v1/stepdown", map[string]string{"Authorization": "Bearer " + token}); code != http.StatusOK {
		t.Errorf("an order with the token is answered %d: %s", code, body)
	}
	if s.settled() == leader {
		t.Error("the leader did not step down")
	}
	s.seenNowhere(secrets)

	// After a crash the release needs the password, too.
	now := s.settled()
	old := s.owner()
	now.Shell("kill -9 " + fmt.Sprint(now.MainPid(unit)))
	s.successor(old)
	s.settled()
	s.seenNowhere(secrets)
}

// seenNowhere looks for secrets wherever somebody may look who is not root.
func (s *site) seenNowhere(secrets []string) {
	s.t.Helper()
	for _, h := range s.hosts {
		places := map[string]string{
			"systemctl show":   h.Must("systemctl", "show", unit),
			"systemctl status": h.Must("systemctl", "status", unit),
			"systemctl cat":    h.Must("systemctl", "cat", unit),
			"/proc":            h.Shell("cd /proc; for p in [0-9]*; do cat $p/cmdline $p/environ 2>/dev/null || :; done"),
			"the journal":      h.Must("journalctl", "--no-pager", "-o", "verbose"),
			"config show":      h.Shell("CREDENTIALS_DIRECTORY=/run/credentials/baton.service baton config show"),
		}
		for _, path := range []string{"/", "/metrics", "/api/v1/status", "/api/v1/nodes", "/api/v1/events", "/api/v1/jobs/views", "/jobs/views", "/-/ready"} {
			_, places[path] = s.get(h, path)
		}
		for place, text := range places {
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					s.t.Errorf("host %s: %s tells %s", h.Name, place, secret)
				}
			}
		}
		if !strings.Contains(places["/"], "h1") {
			s.t.Errorf("host %s: the page does not look like one:\n%.300s", h.Name, places["/"])
		}
	}
}
