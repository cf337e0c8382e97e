package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFlagsGoOverEnvironmentOverFileOverDefaults(t *testing.T) {
	file := "election: {lock_key: file, ttl: 20s, poll_interval: 3s}\nlog: {level: warn}\n"
	env := map[string]string{"BATON_LOCK_KEY": "env", "BATON_TTL": "30s", "BATON_HTTP": ""}
	flags := map[string]string{"lock-key": "flag"}
	c, err := read(t, file, env, flags)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.Election.LockKey, c.Election.TTL, c.Election.PollInterval, c.Log.Level, c.HTTP.Listen, c.Log.Format}
	want := []any{"flag", 30 * time.Second, 3 * time.Second, "warn", "127.0.0.1:9747", "text"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("value %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

func TestEverySettingReachesItsField(t *testing.T) {
	values := map[string]string{
		"redis": "redis://other:1/2", "lock-key": "k", "ttl": "30s", "heartbeat-interval": "3s", "poll-interval": "4s",
		"node-id": "n2", "http": "off", "log-level": "debug", "log-format": "json",
	}
	for _, layer := range []Layer{Environment(), Flags()} {
		var given []string
		c, err := Overlay(Default(), layer, func(name string) (string, bool) {
			for _, s := range Settings() {
				if layer.Name(s) == name {
					given = append(given, s.Flag)
					return values[s.Flag], true
				}
			}
			return "", false
		})
		if err != nil || len(given) != len(values) {
			t.Fatalf("%v: %v", given, err)
		}
		want := Default()
		want.Redis.URL, want.Node.ID, want.HTTP.Listen = "redis://other:1/2", "n2", "off"
		e := &want.Election
		e.LockKey, e.TTL, e.HeartbeatInterval, e.PollInterval = "k", 30*time.Second, 3*time.Second, 4*time.Second
		want.Log = Log{Level: "debug", Format: "json"}
		c.places = nil
		if diff := cmp.Diff(want, c, cmp.AllowUnexported(Config{})); diff != "" {
			t.Error(diff)
		}
	}
}

func TestBadSettingNamesItsFlagOrVariable(t *testing.T) {
	for _, tc := range []struct {
		env, flags map[string]string
		want       string
	}{
		{map[string]string{"BATON_TTL": "10"}, nil, `BATON_TTL: election.ttl: bad duration "10": write a number and a unit, for example 500ms, 10s or 1m30s`},
		{nil, map[string]string{"ttl": "0.5s"}, `--ttl: election.ttl: 500ms is too short; a lease needs at least 1s`},
		{nil, map[string]string{"ttl": ""}, `--ttl: election.ttl: must not be empty; leave it out for the default`},
		{map[string]string{"BATON_LOG_LEVEL": "loud"}, nil, `BATON_LOG_LEVEL: log.level: "loud" is not known here; write debug, info, warn or error`},
		{map[string]string{"BATON_REDIS": "http://x"}, map[string]string{"redis": "ftp://x"}, "--redis: redis.url: " + wantURL},
		{nil, map[string]string{"heartbeat-interval": "4s"}, `--heartbeat-interval: election: 2·heartbeat_interval + attempt_timeout + drain + margin must be less than ttl, but 2·4s + 1s + 2s + 350ms = 11.35s and ttl is 10s; raise ttl, or leave the other settings out, because their defaults fit the ttl`},
	} {
		_, err := read(t, "", tc.env, tc.flags)
		if err == nil || err.Error() != tc.want {
			t.Errorf("got  %v\nwant %s", err, tc.want)
		}
	}
}

func TestURLOnTopTakesThePlaceOfSentinelsAndClusters(t *testing.T) {
	for _, file := range []string{
		`redis: {url: "rediss://old/3", tls: {}}`, `redis: {sentinel: {` + sentinels + `}, database: 3, tls: {}}`, `redis: {cluster: ["a:1"], tls: {}}`,
	} {
		for _, layer := range []struct{ env, flags map[string]string }{
			{env: map[string]string{"BATON_REDIS": "rediss://new/1"}}, {flags: map[string]string{"redis": "rediss://new/1"}},
		} {
			c, err := read(t, file, layer.env, layer.flags)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if diff := cmp.Diff(Redis{URL: "rediss://new/1", TLS: &TLS{}}, c.Redis); diff != "" {
				t.Errorf("%s: %s", file, diff)
			}
		}
	}
	// An encryption setting in the file must not be lost without an error.
	_, err := read(t, "redis:\n  cluster: [\"a:1\"]\n  tls: {}\n", nil, map[string]string{"redis": "redis://new"})
	if want := "baton.yaml:3:3: redis.tls: redis.url is not encrypted; write rediss:// there, or remove tls"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestOverlayLeavesItsArgumentAlone(t *testing.T) {
	before, err := parse("f", []byte("election: {ttl: 20s}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Overlay(before, Flags(), lookup(map[string]string{"ttl": "30s"})); err != nil {
		t.Fatal(err)
	}
	if p := before.Problem("election.ttl", ""); before.Election.TTL != 20*time.Second || p.Source != "f" {
		t.Errorf("changed to %v, %+v", before.Election.TTL, p)
	}
}

func TestTimingsThatFitAnyTTL(t *testing.T) {
	for _, ttl := range []time.Duration{time.Second, 1500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 10 * time.Second, time.Minute, 24 * time.Hour} {
		c := Default()
		c.Election.TTL = ttl
		c = c.WithDefaults()
		if err := c.Validate(Checks{}); err != nil {
			t.Errorf("ttl %v: %v", ttl, err)
		}
		e := c.Election
		if e.HeartbeatInterval > 2*time.Second || e.AttemptTimeout > time.Second || e.Drain > 2*time.Second || e.PollInterval > 2*time.Second {
			t.Errorf("ttl %v: beyond the promised defaults: %+v", ttl, e)
		}
	}
	if m := (Election{TTL: 2 * time.Second}).Margin(); m != 270*time.Millisecond {
		t.Errorf("margin of 2s is %v", m)
	}
}
