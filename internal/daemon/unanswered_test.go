package daemon

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"baton/internal/diagnose"
)

// A server accepts connections and never answers: no request is refused, and no reply comes.
func TestWhatTheConfigurationSaysIsShownBeforeRedisHasAnswered(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	l := newJobLab(t)
	l.job("views", "@every 1h")
	l.config.Redis.URL = "redis://" + silent.Addr().String()
	r := start(t, l.config.WithDefaults(), nil)
	var s diagnose.Snapshot
	if err := json.Unmarshal([]byte(r.read("/api/v1/status")), &s); err != nil {
		t.Fatal(err)
	}
	if s.LockKey != "baton" || s.Redis.Host != silent.Addr().String() || len(s.Jobs) != 1 || s.Jobs[0].Name != "views" {
		t.Errorf("lock %q, redis %q, jobs %v", s.LockKey, s.Redis.Host, s.Jobs)
	}
	if s.Redis.OK || s.Redis.Error == "" || s.Error == "" {
		t.Errorf("redis %+v, %q: it has not answered", s.Redis, s.Error)
	}
	for _, p := range s.Problems {
		if p.Code == diagnose.CodeNoLeader {
			t.Error("no node leads, as is said: that is not known")
		}
	}
	page := r.read("/")
	for _, want := range []string{silent.Addr().String(), "views", "Leader not known yet", "baton doctor"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}
