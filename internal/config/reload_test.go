package config

import (
	"testing"
	"time"
)

func TestOnlyWhatTheNodeIsTakesARestart(t *testing.T) {
	old, err := read(t, good, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := old
	c.Log.Level, c.MaxConcurrentJobs, c.Jobs = "debug", 7, nil
	c.Databases, c.Notify = nil, []Notify{{Name: "ops"}}
	if err := c.Reloadable(old); err != nil {
		t.Errorf("jobs, databases, notifications and the log's level: %v", err)
	}
	history := old
	history.History.Keep++
	if err := history.Reloadable(old); err == nil {
		t.Error("what nobody puts into force is taken over: history.keep")
	}
	c.Election.TTL, c.Redis.URL, c.Log.Format = 11*time.Second, "redis://elsewhere", "json"
	want := "election.ttl: the setting has changed, and the change needs a restart: systemctl restart baton, on one host after the other"
	problems, _ := c.Reloadable(old).(Problems) //nolint:errorlint // Reloadable returns exactly this type
	if len(problems) == 0 {
		t.Fatal("a node that is another one is taken over without a restart")
	}
	found := false
	for _, p := range problems {
		found = found || p.Path+": "+p.Message == want
	}
	if !found {
		t.Errorf("got %v, want among them %s", problems, want)
	}
}
